"""Seeded faults: what the suite must find, each one change to the text of one module."""
