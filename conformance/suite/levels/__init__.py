"""Generate the levels: families of programs, from single ops to kernels and devices."""
