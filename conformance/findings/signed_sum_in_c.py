# An int32 sum is rendered as a signed sum of C, whose overflow means anything.
# Class A, device against device; ordinary values. Wrong on CL, CPU
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 2147483647 + 1 = 2**31 = 2**32 - 2**31, so the int32 is -2**31, as an int64 too. The
# compiler may take the sum for 2**31; with contiguous() after it it is -2**31.
from tinygrad import Tensor, dtypes

x = Tensor([2147483647], dtype=dtypes.int32).realize()
y = Tensor([1], dtype=dtypes.int32).realize()
got = (x + y).cast(dtypes.int64).tolist()
print(got)
raise SystemExit(got != [-(2**31)])
