# (x * c) * y is computed as (x * y) * c, which overflows.
# Class A, fused against split; ordinary values; algebra. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 1e30 * 2**-100 is 1e30 / 1.27e30, about 0.79, and times 1e30 about 7.9e29: finite. 1e30
# * 1e30 is infinite in float32; with contiguous() after the first product it is 7.9e29.
from tinygrad import Tensor, dtypes

x = Tensor([1e30], dtype=dtypes.float32).realize()
y = Tensor([1e30], dtype=dtypes.float32).realize()
got = ((x * 2.0**-100) * y).tolist()
split = ((x * 2.0**-100).contiguous() * y).tolist()
print(got, "split:", split)
raise SystemExit(not 7.8e29 < got[0] < 8.0e29)
