# THREEFRY of two constants is folded to another number.
# Class A, constant against parameter; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: Random123's known answer of Threefry 2x32 with 20 rounds for counter 0 and key 0 is
# 6b200159 99ba4efe. Of realized operands tinygrad gives just that; so does a PAD beside a constant
# key fold to another number, as its zeros are constants.
from tinygrad import Device, Tensor, dtypes
from tinygrad.uop.ops import Ops

zero = Tensor(0, dtype=dtypes.uint64)
got = Tensor(zero.uop.alu(Ops.THREEFRY, zero.uop)).clone(Device.DEFAULT).tolist()
given = Tensor([0], dtype=dtypes.uint64).realize()
parameter = Tensor(given.uop.alu(Ops.THREEFRY, given.uop)).tolist()
print(hex(got), "parameter:", hex(parameter[0]))
raise SystemExit(got != 0x99BA4EFE6B200159)
