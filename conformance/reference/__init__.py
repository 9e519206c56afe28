"""Says what the spec says: about an op, a constraint, a decision, a row, an op on given values."""
