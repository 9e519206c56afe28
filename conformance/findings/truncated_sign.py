# Truncation loses the sign of a zero.
# Class A, device against device; ordinary values in, a zero out. Wrong on PYTHON
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=PYTHON ends with 1.
# By hand: IEEE 754 (5.9, 6.3): rounded to an integer, a zero has the sign of what was rounded:
# trunc(-0.5) is -0.0, bits 0x80000000.
from tinygrad import Tensor, dtypes

x = Tensor([-0.5], dtype=dtypes.float32).realize()
got = x.trunc().bitcast(dtypes.uint32).tolist()
print(got)
raise SystemExit(got != [0x80000000])
