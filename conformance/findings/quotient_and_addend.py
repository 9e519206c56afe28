# (x // c + a) // d becomes (x + a * c) // (c * d), though a * c leaves the dtype.
# Class A, fused against split; ordinary values. Wrong on PYTHON, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=PYTHON ends with 1.
# By hand: 9 // 3 = 3, and (3 + 1000000000) // 5 = 200000000. 9 + 3 * 1000000000 is no int32; with
# contiguous() after the first quotient it is 200000000.
from tinygrad import Tensor, dtypes

x = Tensor([9], dtype=dtypes.int32).realize()
got = ((x // 3 + 1000000000) // 5).tolist()
split = ((x // 3 + 1000000000).contiguous() // 5).tolist()
print(got, "split:", split)
raise SystemExit(got != [200000000])
