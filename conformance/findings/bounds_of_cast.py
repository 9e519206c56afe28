# The bounds of a cast to a narrower integer are clamped, and a comparison is folded by them.
# Class A, fused against split; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: (63 & 63) + 100 = 163 = 256 - 93, so the int8 is -93, and -93 < 0 is true. The bounds of
# the cast are taken for 100..127; with contiguous() after the cast it is true.
from tinygrad import Tensor, dtypes

x = Tensor([63], dtype=dtypes.int32).realize()
got = (((x & 63) + 100).cast(dtypes.int8) < 0).tolist()
split = (((x & 63) + 100).cast(dtypes.int8).contiguous() < 0).tolist()
print(got, "split:", split)
raise SystemExit(got != [True])
