"""From a failure to a small program and its cause."""
