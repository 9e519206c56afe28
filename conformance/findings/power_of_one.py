# A realized infinite or NaN exponent raises on PYTHON; elsewhere 1 to the power of it is NaN.
# Class A, device against device; special values; crash. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 1**inf is 1 and 2**inf is infinite, by IEEE 754 (9.2.1) and by Python's own operator. A
# power asks whether its exponent is an integer by casting it to one, which PYTHON cannot; elsewhere
# 1**inf is exp2(log2(1) * inf), and 0 * inf is NaN.
from math import inf

from tinygrad import Tensor, dtypes

x = Tensor([1.0, 2.0], dtype=dtypes.float32).realize()
y = Tensor([inf, inf], dtype=dtypes.float32).realize()
try:
    got = (x**y).tolist()
except OverflowError as error:
    got = [error]
print(got)
raise SystemExit(got != [1.0, inf])
