"""What devices can do and how they spell it."""
