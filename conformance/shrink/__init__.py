"""Shrinks a failing case to a small program with its data and accepted sets."""
