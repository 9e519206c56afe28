"""The report of a run, and its forms."""
