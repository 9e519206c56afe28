"""What must hold of programs and inputs, by label."""
