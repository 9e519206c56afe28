"""Programs of kernels."""
