"""The rules of the derived properties of a node, one module each."""
