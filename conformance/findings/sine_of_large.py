# The sine of a large float64 is that of another angle.
# Class A, device against device; ordinary values. Wrong on CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 2 pi is 6.28318530717958647692528676656, and 159154943091895 times that is
# 10**15 - 2.1097. So it is sin(2.1097) = sin(pi - 2.1097) = sin(1.0319) = 0.858.
from tinygrad import Tensor, dtypes

got = Tensor([1e15], dtype=dtypes.float64).realize().sin().tolist()
print(got)
raise SystemExit(abs(got[0] - 0.858) > 0.001)
