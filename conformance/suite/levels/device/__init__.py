"""Generate programs on several devices."""
