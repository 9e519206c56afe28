"""Judges a case: lowers it for the backend, computes accepted sets, compares, and decides."""
