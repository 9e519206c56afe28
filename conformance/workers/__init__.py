"""Runs backends in processes of their own."""

GARBAGE = 50_000, 20, 100
"""How often the command and its processes look for garbage, as `gc.set_threshold` takes it. Graphs
have no cycles: the usual 700 new objects between two looks cost a few percent of a run.
"""
