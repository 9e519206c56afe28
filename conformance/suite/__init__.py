"""Generate the test cases: groups of programs for each level, op and dtype."""
