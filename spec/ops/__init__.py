"""The op names, and the declarations of the ops, one module per section of the spec."""
