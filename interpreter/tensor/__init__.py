"""The meaning of tensor graphs."""
