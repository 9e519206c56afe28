# x + 0 is folded to x, also where x is -0.
# Class A, constant against parameter; a zero; algebra. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: -0 + 0 is +0, by IEEE 754 (6.3), bits 0. With a realized 0 it is.
from tinygrad import Tensor, dtypes

x, zero = Tensor([-0.0]).realize(), Tensor([0.0]).realize()
got = (x + 0.0).realize().bitcast(dtypes.uint32).tolist()
parameter = (x + zero).realize().bitcast(dtypes.uint32).tolist()
print(got, "parameter:", parameter)
raise SystemExit(got != [0])
