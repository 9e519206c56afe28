"""Evaluate kernel programs by the reference."""
