# sort leaves an array of bfloat16 or float8 with a NaN unsorted.
# Class B: numpy's documents of sort: "In numpy versions >= 1.4.0 nan values are sorted to the
# end"; special values. Wrong in ml_dtypes 0.6.0 (2026-11-24).
# By hand: 1, 2 and 3 come first in this order, then the NaN, as for float32.
import ml_dtypes
import numpy as np

x = np.array([3, np.nan, 1, 2], np.float32)
got = np.sort(x.astype(ml_dtypes.bfloat16)).astype(np.float32)
print(got, "float32:", np.sort(x))
raise SystemExit(int(not np.array_equal(got, np.sort(x), equal_nan=True)))
