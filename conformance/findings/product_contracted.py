# A product and a difference become one fused operation where C allows it.
# Class A, device against device; ordinary values; algebra. Wrong on CL, CPU
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: z is x * y as it was rounded and stored, so x * y - z is 0. Fused, the product is exact
# and the difference is its rounding error; with contiguous() after the product it is 0.
from tinygrad import Tensor, dtypes

x = Tensor([0.1], dtype=dtypes.float32).realize()
y = Tensor([0.1], dtype=dtypes.float32).realize()
z = (x * y).realize()
got = (x * y - z).tolist()
print(got)
raise SystemExit(got != [0.0])
