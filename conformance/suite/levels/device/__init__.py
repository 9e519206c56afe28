"""Programs on several devices."""
