"""Programs about one op."""
