"""The commands that judge, and those on what was judged."""
