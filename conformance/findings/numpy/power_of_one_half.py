# power(x, 0.5) with a 0-dimensional 0.5 is sqrt(x), whose zero and infinity are others.
# Class A, scalar against array; special values. Wrong in numpy 2.4.6 (2026-11-24).
# By hand: IEEE 754-2019 9.2.1 makes pow(-0, y) +0 and pow(-infinity, y) +infinity for a finite y
# > 0 that is no odd integer, as an exponent in an array gives.
import numpy as np

with np.errstate(invalid="ignore"):
    x = np.array([-0.0, -np.inf])
    by_scalar, by_array = np.power(x, 0.5), np.power(x, np.array([0.5, 0.5]))
print(by_scalar, "by array:", by_array)
raise SystemExit(int(by_scalar.tobytes() != by_array.tobytes()))
