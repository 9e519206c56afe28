"""What is asked about given values: an op, an element of a case, a knob."""
