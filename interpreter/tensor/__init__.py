"""Evaluate tensor graphs by the reference."""
