"""Runs the suite: options, the pool of processes, known failures."""
