# X86 negates 0 by subtracting it from 0.
# Class A, device against device; ordinary values in, a zero out. Wrong on X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU:X86 ends with 1.
# By hand: IEEE 754 (5.5.1): negation inverts the sign, of a zero too: -(0.0) is -0.0, bits
# 0x80000000. 0.0 - 0.0 is 0.0.
from tinygrad import Tensor, dtypes

x = Tensor([0.0], dtype=dtypes.float32).realize()
got = (-x).bitcast(dtypes.uint32).tolist()
print(got)
raise SystemExit(got != [0x80000000])
