"""Explains given values: an op on them, an element of a case, a knob."""
