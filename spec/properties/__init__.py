"""The derived properties of a node, one file each."""
