"""Numbers: how numpy holds them, conversions, real functions."""
