"""Which points of the spec a run exercised."""
