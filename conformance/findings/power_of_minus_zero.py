# -0.0 to the power of 1 loses its sign.
# Class A, constant against parameter; a zero. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: IEEE 754 (9.2.1): a zero to the power of an odd integer above 0 is a zero of its sign,
# bits 0x80000000. With a constant exponent it is.
from tinygrad import Tensor, dtypes

x = Tensor([-0.0], dtype=dtypes.float32).realize()
y = Tensor([1.0], dtype=dtypes.float32).realize()
got = (x**y).bitcast(dtypes.uint32).tolist()
print(got, "constant:", (x**1.0).bitcast(dtypes.uint32).tolist())
raise SystemExit(got != [0x80000000])
