# (x + y) - x is folded to y, without the rounding of the sum.
# Class A, fused against split; ordinary values; algebra. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 1e20 + 1 rounds to 1e20 in float32, and 1e20 - 1e20 is 0. Folded it is 1; with
# contiguous() after the sum it is 0.
from tinygrad import Tensor, dtypes

x = Tensor([1e20], dtype=dtypes.float32).realize()
y = Tensor([1.0], dtype=dtypes.float32).realize()
got = ((x + y) - x).tolist()
split = ((x + y).contiguous() - x).tolist()
print(got, "split:", split)
raise SystemExit(got != [0.0])
