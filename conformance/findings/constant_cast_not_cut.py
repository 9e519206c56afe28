# A cast of a constant to a narrower integer keeps the value that does not fit.
# Class A, constant against parameter; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 165 = 256 - 91, so the uint8 165 is the int8 -91, as an int32 too. Folded it stays 165;
# with a realized operand it is -91.
from tinygrad import Device, Tensor, dtypes

a = Tensor(165, dtype=dtypes.uint8)
got = a.cast(dtypes.int8).cast(dtypes.int32).clone(Device.DEFAULT).tolist()
given = Tensor([165], dtype=dtypes.uint8).realize()
parameter = given.cast(dtypes.int8).contiguous().cast(dtypes.int32).tolist()
print(got, "parameter:", parameter)
raise SystemExit(got != -91)
