"""What programs of kernels are, between the stages of a compiler."""
