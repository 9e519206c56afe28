"""Tensors on top of the language: graphs built by numpy's operators, captured, differentiated."""
