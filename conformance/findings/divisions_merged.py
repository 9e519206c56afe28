# (x // c) // d becomes x // (c * d), though c * d leaves the dtype.
# Class A, fused against split; ordinary values. Wrong on PYTHON, CL, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=PYTHON ends with 1.
# By hand: 2000000000 // 65535 = 30517, and 30517 // 65538 = 0. 65535 * 65538 = 4295032830 is no
# int32; with contiguous() after the first division it is 0.
from tinygrad import Tensor, dtypes

x = Tensor([2000000000, 100], dtype=dtypes.int32).realize()
got = ((x // 65535) // 65538).tolist() + ((x // 65536) // 65536).tolist()
split = ((x // 65535).contiguous() // 65538).tolist()
print(got, "split:", split)
raise SystemExit(got != [0, 0, 0, 0])
