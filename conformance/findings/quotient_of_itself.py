# x / x is folded to 1, also where x is 0.
# Class A, fused against split; ordinary values in, NaN out; algebra. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 0 / 0 has no value: IEEE 754 (7.2) gives a NaN. Folded it is 1; with contiguous() after
# the reciprocal it is a NaN.
from math import isnan

from tinygrad import Tensor, dtypes

x = Tensor([0.0], dtype=dtypes.float32).realize()
got = (x / x).tolist()
split = (x * x.reciprocal().contiguous()).tolist()
print(got, "split:", split)
raise SystemExit(not isnan(got[0]))
