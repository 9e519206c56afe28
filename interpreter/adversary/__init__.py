"""Evaluate programs with every liberty that the spec leaves to a backend."""
