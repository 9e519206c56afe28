# A sum of bfloat16 rounds after every step, where matmul and float16 sums do not.
# Class A, sum against matmul; ordinary values. Wrong in ml_dtypes 0.6.0 (2026-11-24).
# By hand: 1000 ones are 1000, a bfloat16 number. From 256 on the next bfloat16 is 258: 257 is a
# tie, and goes back to 256, so the sum stays there.
import ml_dtypes
import numpy as np

x = np.ones((1, 1000), ml_dtypes.bfloat16)
got = float(x.sum())
print(got, "by matmul:", np.matmul(x, x.T).item())
raise SystemExit(int(got != 1000))
