# The sine of a float64 near 4 pi is wrong in its last 8 bits where C may fuse.
# Class A, device against device; ordinary values. Wrong on CPU
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1.
# By hand: x = 0x1.9190debb1085p+3 is 4 pi - d, d = 0.0174..., so the sine is -sin d, in double
# -0x1.1da95dbf76294p-6; X86 and PYTHON are within 1 of that. Fused, the steps that subtract
# multiples of pi exactly are not exact any more.
from math import sin, ulp

from tinygrad import Tensor, dtypes

x = float.fromhex("0x1.9190debb1085p+3")
got = Tensor([x], dtype=dtypes.float64).realize().sin().tolist()[0]
off = abs(got - sin(x)) / ulp(sin(x))
print(got, "off by", off)
raise SystemExit(off > 16)
