# X86 divides an int8 product before it is cut to 8 bits.
# Class A, device against device; ordinary values. Wrong on X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU:X86 ends with 1.
# By hand: 100 * 3 = 300 = 256 + 44, so the product is 44, and 44 % 5 = 4. 300 % 5 is 0; with
# contiguous() after the product it is 4.
from tinygrad import Tensor, dtypes

x = Tensor([100], dtype=dtypes.int8).realize()
got = ((x * 3) % 5).tolist()
print(got)
raise SystemExit(got != [4])
