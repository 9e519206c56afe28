"""Differential fuzzing: random programs without an end, as long as a time allows."""
