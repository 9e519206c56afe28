"""The meaning of programs of kernels."""
