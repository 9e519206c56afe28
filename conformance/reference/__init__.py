"""Explains the spec: ops, constraints, decisions, rows of documents, and an op on given values."""
