# a * b + c is rewritten as MULACC, which rounds once.
# Class A, fused against split; ordinary values; algebra. Wrong on PYTHON, CL, CPU
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=PYTHON ends with 1;
# CL and CPU fuse where C allows it.
# By hand: x * x is 1 + 2**-11 + 2**-24, halfway between two float32, and rounds to 1 + 2**-11;
# less 1 it is 2**-11 = 0.00048828125. Fused, 2**-24 is kept.
from tinygrad import Tensor, dtypes

x = Tensor([1 + 2**-12], dtype=dtypes.float32).realize()
got = (x * x - 1).tolist()
split = ((x * x).contiguous() - 1).tolist()
print(got, "split:", split)
raise SystemExit(got != [2**-11])
