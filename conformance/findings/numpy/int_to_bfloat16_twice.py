# ml_dtypes rounds an integer to float32 before it rounds it to bfloat16.
# Class B: IEEE 754-2019 5.4.1, convertFromInt rounds once; ordinary values. Wrong in ml_dtypes
# 0.6.0 (2026-11-24).
# By hand: 16842753 = 2**24 + 2**16 + 1. A bfloat16 has 8 bits, so its neighbours are 2**24 and
# 2**24 + 2**17 = 16908288, and the middle is 2**24 + 2**16: the larger one is nearer. float32
# drops the 1, and the tie goes to 2**24.
import ml_dtypes
import numpy as np

got = int(np.array([16842753]).astype(ml_dtypes.bfloat16)[0])
print(got)
raise SystemExit(int(got != 16908288))
