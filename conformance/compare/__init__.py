"""Several backends side by side: what each conforms to, chooses, and gives where others differ."""
