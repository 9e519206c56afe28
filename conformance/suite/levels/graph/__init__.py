"""Random graphs, functions, and graphs that must agree."""
