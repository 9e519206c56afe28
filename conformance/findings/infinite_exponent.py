# A constant infinite exponent cannot be compiled.
# Class A, constant against parameter; special values; crash. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 0.5**inf is 0 and 2**inf is infinite, by IEEE 754 (9.2.1) and by Python's own operator.
# On CL, CPU and X86 a realized exponent gives just that; a constant one raises.
from math import inf

from tinygrad import Tensor, dtypes

x = Tensor([0.5, 2.0], dtype=dtypes.float32).realize()
try:
    got = (x**inf).tolist()
except OverflowError as error:
    got = [error]
print(got)
raise SystemExit(got != [0.0, inf])
