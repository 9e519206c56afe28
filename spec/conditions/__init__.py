"""The labelled conditions on nodes, inputs and runs, and their errors."""
