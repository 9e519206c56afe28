"""Generate graphs that write memory: in every order, and as models do."""
