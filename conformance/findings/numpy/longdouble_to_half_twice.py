# A longdouble is rounded to float64 before it is rounded to float16.
# Class B: IEEE 754-2019 5.4.2, convertFormat rounds once; ordinary values. Wrong in numpy 2.4.6
# (2026-11-24).
# By hand: 1 + 2**-11 is the middle of the float16 numbers 1 and 1 + 2**-10, and x is above it by
# 2**-60: 1 + 2**-10 = 1.0009765625. float64 drops the 2**-60, and the tie goes to 1.
import numpy as np

one = np.longdouble(1)
got = float((one + one / 2**11 + one / 2**60).astype(np.float16))
print(got)
raise SystemExit(int(got != 1.0009765625))
