# x * 0 is folded to 0, also where x is infinite.
# Class A, constant against parameter; special values; algebra. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: inf * 0 has no value: IEEE 754 (7.2) gives a NaN, and NaN * 0 is a NaN. Folded both are
# 0; with a realized zero both are NaN.
from math import inf, isnan, nan

from tinygrad import Tensor, dtypes

x = Tensor([inf, nan], dtype=dtypes.float32).realize()
got = (x * 0).tolist()
parameter = (x * Tensor([0.0, 0.0], dtype=dtypes.float32).realize()).tolist()
print(got, "parameter:", parameter)
raise SystemExit(not all(map(isnan, got)))
