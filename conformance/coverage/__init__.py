"""Spec coverage of a run."""
