"""Define, per class of ops, which results are accepted for operands that are sets."""
