"""Generate programs of kernels."""
