"""Graphs that are read from text in the syntax of Python: rewrites, and what programs write."""
