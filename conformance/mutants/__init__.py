"""Measures the suite by seeded faults (mutants): each changes the code of one module."""
