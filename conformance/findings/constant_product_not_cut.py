# A product of int64 constants keeps more than 64 bits, and C does not take the literal.
# Class A, constant against parameter; ordinary values; crash. Wrong on CPU
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1.
# By hand: 2**32 times 2**32 is 2**64, which is 0 in 64 bits. With realized operands it is 0.
from subprocess import CalledProcessError

from tinygrad import Device, Tensor, dtypes

a = Tensor(2**32, dtype=dtypes.int64)
given = Tensor([2**32], dtype=dtypes.int64).realize()
parameter = (given * given).tolist()
try:
    got = (a * a + 1).clone(Device.DEFAULT).tolist()
except CalledProcessError as error:
    got = type(error).__name__
print(got, "parameter:", parameter)
raise SystemExit(got != 1)
