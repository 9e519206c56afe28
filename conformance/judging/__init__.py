"""From a case to its verdict."""
