"""Generate programs about one op."""
