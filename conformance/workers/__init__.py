"""The processes of backends."""
