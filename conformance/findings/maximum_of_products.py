# A factor is moved out of a maximum, though integer products wrap.
# Class A, fused against split; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 100 * 3 = 300 = 256 + 44 and 50 * 3 = 150, so the largest product is 150. max(100, 50) *
# 3 is 44; with contiguous() after the product it is 150.
from tinygrad import Tensor, dtypes

x = Tensor([100, 50], dtype=dtypes.uint8).realize()
y = Tensor([3], dtype=dtypes.uint8).realize()
got = (x * y).max().tolist()
split = (x * y).contiguous().max().tolist()
print(got, "split:", split)
raise SystemExit(got != 150)
