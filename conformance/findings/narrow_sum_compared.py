# A sum of uint8 is compared before it is cut to 8 bits.
# Class A, device against device; ordinary values. Wrong on CL, CPU
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 200 + 100 = 300 = 256 + 44, so the sum is 44, and 44 < 100 is true. The C that is
# rendered adds in int, where 300 < 100 is false; with contiguous() after the sum it is true.
from tinygrad import Tensor, dtypes

a = Tensor([200], dtype=dtypes.uint8).realize()
b = Tensor([100], dtype=dtypes.uint8).realize()
got = ((a + b) < 100).tolist()
print(got)
raise SystemExit(got != [True])
