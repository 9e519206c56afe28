# Where float16 is emulated, a maximum of 16 of them, or their sum as float16, is refused.
# Class A, device against device; ordinary values; crash. Wrong on PYTHON, CL
# of tinygrad 0.14.0 (Python 3.11, PoCL 3.0). DEV=PYTHON ends with 1; DEV=CPU is right.
# By hand: the maximum of sixteen ones is 1. Of 8 or 17 elements, which are folded otherwise, it is
# given; of 16 the accumulator is declared a float16 and used as a float32.
from tinygrad import Tensor, dtypes

x = Tensor([1.0] * 16, dtype=dtypes.half).realize()
try:
    got = x.max().tolist()
except RuntimeError as error:
    got = str(error)[:45]
print(got)
raise SystemExit(got != 1.0)
