# copysign of 0 and a negative number is NaN where the dtype has no -0.
# Class B: numpy's documents of copysign: "Change the sign of x1 to that of x2"; special values.
# Wrong in ml_dtypes 0.6.0 (2026-11-24).
# By hand: float8_e4m3fnuz has one zero, which is 0 with either sign: 0. Its bits with the sign
# bit set are the NaN.
import ml_dtypes
import numpy as np

t = ml_dtypes.float8_e4m3fnuz
got = float(np.copysign(t(0), t(-2)))
print(got)
raise SystemExit(int(got != 0))
