# A cast of a large constant to an integer cannot be compiled, though nothing reads it.
# Class A, constant against parameter; ordinary values; crash. Wrong on CPU
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1.
# By hand: the gate is false, so the value is 0 and the sum 1. The constant becomes a literal of
# 39 digits. Of a realized one there is some integer, and 1 here.
from subprocess import CalledProcessError

from tinygrad import Tensor, dtypes

p = Tensor([False]).realize()
try:
    got = (p.where(Tensor(-3e38, dtype=dtypes.float64).cast(dtypes.int8), 0) + 1).tolist()
except CalledProcessError as error:
    got = type(error).__name__
print(got)
raise SystemExit(got != [1])
