# A constant exponent of -1.8e308 cannot be compiled.
# Class A, constant against parameter; special values; crash. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 1 to any power is 1. With a realized exponent it is.
from sys import float_info

from tinygrad import Tensor, dtypes

x = Tensor([1.0], dtype=dtypes.float64).realize()
try:
    got = (x**-float_info.max).tolist()
except KeyError:
    got = "KeyError"
print(got)
raise SystemExit(got != [1.0])
