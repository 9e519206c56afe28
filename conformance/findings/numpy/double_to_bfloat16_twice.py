# ml_dtypes rounds a float64 to float32 before it rounds it to bfloat16 or a float8.
# Class B: IEEE 754-2019 5.4.2, convertFormat rounds once; ordinary values. Wrong in ml_dtypes
# 0.6.0 (2026-11-24).
# By hand: 1 + 2**-8 is the middle of the bfloat16 numbers 1 and 1 + 2**-7, and x is above it by
# 2**-40: 1 + 2**-7 = 1.0078125. float32 drops the 2**-40, and the tie goes to 1. The same for the
# float8 dtypes.
import ml_dtypes
import numpy as np

x = np.array([1 + 2**-8 + 2**-40])
got = float(x.astype(ml_dtypes.bfloat16)[0])
print(got)
raise SystemExit(int(got != 1.0078125))
