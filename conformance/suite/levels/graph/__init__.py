"""Generate random graphs, functions, and graphs that must agree."""
