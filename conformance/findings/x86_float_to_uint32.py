# X86 converts float32 to uint32 by way of int32.
# Class A, device against device; ordinary values. Wrong on X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU:X86 ends with 1.
# By hand: 4e9 is 2**11 * 1953125, a float32, and below 2**32 = 4294967296: as a uint32 it is
# 4000000000.
from tinygrad import Tensor, dtypes

x = Tensor([4e9], dtype=dtypes.float32).realize()
got = x.cast(dtypes.uint32).tolist()
print(got)
raise SystemExit(got != [4000000000])
