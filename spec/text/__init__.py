"""Programs, cases, profiles and values as text, and programs as JSON and drawings."""
