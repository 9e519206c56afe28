"""Rewrite graphs by rules: the engine, the table of rules, their patterns, and simplify."""
