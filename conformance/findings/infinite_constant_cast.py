# A cast of a constant infinity to an integer cannot be compiled.
# Class A, constant against parameter; special values; crash. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: no integer is right, but the sum of 1 and a value that a gate does not choose is 1. Of a
# realized infinity CL, CPU and X86 give some integer, and 1 here.
from tinygrad import Tensor, dtypes

p = Tensor([False]).realize()
try:
    got = (p.where(Tensor(float("inf")).cast(dtypes.int32), 0) + 1).tolist()
except OverflowError as error:
    got = [error]
print(got)
raise SystemExit(got != [1])
