# The logarithm of a negative subnormal is -infinity.
# Class A, device against device; special values. Wrong on CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: a negative number has no logarithm, so it is NaN (IEEE 754, 9.2.1), as that of the normal
# -1e-30 is. -1e-40 lies below 2**-126, the smallest normal float32.
from tinygrad import Tensor, dtypes

x = Tensor([-1e-40, -1e-30], dtype=dtypes.float32).realize()
got = x.log2().tolist()
print(got)
raise SystemExit(got[0] == got[0])
