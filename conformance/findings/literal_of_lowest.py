# The lowest int64 as a literal is unsigned in C, and so is what is computed with it.
# Class A, device against device; the lowest int64. Wrong on CPU
# of tinygrad 0.14.0 (Python 3.11, clang 19). DEV=CPU ends with 1.
# By hand: no int64 is below the lowest one, and both 1 and -5 are above it. Its literal is rendered
# as -9223372036854775808l: the minus of 9223372036854775808, which no long holds, so clang takes
# it as unsigned, and 1 < 2**63 (C17 6.4.4.1 gives it no type).
from tinygrad import Tensor, dtypes

x = Tensor([1, -5], dtype=dtypes.int64).realize()
got = (Tensor(-(2**63), dtype=dtypes.int64) < x).tolist()
print(got)
raise SystemExit(got != [True, True])
