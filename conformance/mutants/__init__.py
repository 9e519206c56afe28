"""Seeded faults that the suite must find: each changes the code of one module."""
