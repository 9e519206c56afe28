# A constant factor is moved out of a sum, which then overflows.
# Class A, fused against split; ordinary values; algebra. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 3e38 / 4 is 0.75e38, and twice that is 1.5e38. 3e38 + 3e38 is above 3.4e38, the largest
# float32, so infinite; with contiguous() after the product it is 1.5e38.
from tinygrad import Tensor, dtypes

x = Tensor([3e38, 3e38], dtype=dtypes.float32).realize()
got = (x * 0.25).sum().tolist()
split = (x * 0.25).contiguous().sum().tolist()
print(got, "split:", split)
raise SystemExit(not 1.4e38 < got < 1.6e38)
