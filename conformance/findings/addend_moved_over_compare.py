# x + c < d is rewritten as x < d - c, which ignores that the sum wraps.
# Class A, fused against split; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 100 + 200 = 300 = 256 + 44, so the sum is 44, and 44 < 100 is true. 100 < 100 - 200 is
# false; with contiguous() after the sum it is true.
from tinygrad import Tensor, dtypes

x = Tensor([100], dtype=dtypes.uint8).realize()
got = ((x + 200) < 100).tolist()
split = ((x + 200).contiguous() < 100).tolist()
print(got, "split:", split)
raise SystemExit(got != [True])
