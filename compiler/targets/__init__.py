"""The targets: what devices compute, and their dialects of C."""
