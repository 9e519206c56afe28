# (x * y) / y is folded to x, though the product overflows.
# Class A, fused against split; ordinary values; algebra. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 1e30 * 1e30 is above 3.4e38, the largest float32, so infinite, and so is inf / 1e30.
# Folded it is 1e30; with contiguous() after the product it is infinite.
from math import inf

from tinygrad import Tensor, dtypes

x = Tensor([1e30], dtype=dtypes.float32).realize()
y = Tensor([1e30], dtype=dtypes.float32).realize()
got = ((x * y) / y).tolist()
split = ((x * y).contiguous() / y).tolist()
print(got, "split:", split)
raise SystemExit(got != [inf])
