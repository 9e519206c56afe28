# heaviside takes the smallest float8_e8m0fnu for a zero.
# Class B: numpy's documents of heaviside: 1 if x1 > 0; special values. Wrong in ml_dtypes 0.6.0
# (2026-11-24).
# By hand: the bits 0 of this dtype, which has no zero, are 2**-127, which is above 0: the result
# is 1.
import ml_dtypes
import numpy as np

t = ml_dtypes.float8_e8m0fnu
got = float(np.heaviside(t(2.0**-127), t(4)))
print(got)
raise SystemExit(int(got != 1))
