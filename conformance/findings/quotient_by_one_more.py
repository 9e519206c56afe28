# x / (1 + x) is computed as 1 - 1 / (1 + x), which cancels.
# Class A, fused against split; ordinary values; algebra. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 1 + 1e-9 rounds to 1 in float32, and 1e-9 / 1 is 1e-9. 1 - 1/1 is 0; with contiguous()
# after 1 + x it is 1e-9.
from tinygrad import Tensor, dtypes

x = Tensor([1e-9], dtype=dtypes.float32).realize()
got = (x / (1 + x)).tolist()
split = (x / (1 + x).contiguous()).tolist()
print(got, "split:", split)
raise SystemExit(not 0.9e-9 < got[0] < 1.1e-9)
