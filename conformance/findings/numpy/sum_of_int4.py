# sum and mean of int4 wrap, since numpy does not know int4 as an integer.
# Class B: numpy's documents of sum: an integer "of less precision than the default platform
# integer" is summed as that one; ordinary values. Wrong in ml_dtypes 0.6.0 (2026-11-24).
# By hand: 7 + 7 = 14, as for int8; in 4 bits it is -2.
import ml_dtypes
import numpy as np

x = np.array([7, 7], np.int8)
got = int(x.astype(ml_dtypes.int4).sum())
print(got, "int8:", x.sum())
raise SystemExit(int(got != 14))
