"""The targets: the dtypes and ops of devices, and their dialects of C."""
