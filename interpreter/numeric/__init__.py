"""Store numbers in numpy, convert between dtypes, compute real functions correctly rounded."""
