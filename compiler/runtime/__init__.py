"""Runs compiled kernels: one module per device library, imported on use."""
