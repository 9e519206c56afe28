# The bounds of an unsigned -y ignore that it wraps, and a maximum with it is folded away.
# Class A, fused against split; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: -116 = 256 - 116 = 140 as a uint8, so the maximum of 5 and -y is 140. The bounds of -y
# are taken for -255..0, and so x for the larger one; with contiguous() after -y it is 140.
from tinygrad import Tensor, dtypes

x = Tensor([5], dtype=dtypes.uint8).realize()
y = Tensor([116], dtype=dtypes.uint8).realize()
got = x.maximum(-y).tolist()
split = x.maximum((-y).contiguous()).tolist()
print(got, "split:", split)
raise SystemExit(got != [140])
