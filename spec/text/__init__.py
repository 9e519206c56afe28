"""Reads and prints programs, `.uop` files, profiles and values; also JSON and drawings."""
