"""What an op may return for operands that may be several values."""
