"""Compute which results the spec accepts, by arithmetic on sets of values."""
