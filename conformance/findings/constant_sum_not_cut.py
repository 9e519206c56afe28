# A sum of int8 constants is folded without being cut to 8 bits.
# Class A, constant against parameter; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 100 + 100 = 200 = 256 - 56, so the sum is -56, as an int32 too. Folded it stays 200;
# with realized operands it is -56.
from tinygrad import Device, Tensor, dtypes

a = Tensor(100, dtype=dtypes.int8)
got = (a + a).cast(dtypes.int32).clone(Device.DEFAULT).tolist()
given = Tensor([100], dtype=dtypes.int8).realize()
parameter = (given + given).contiguous().cast(dtypes.int32).tolist()
print(got, "parameter:", parameter)
raise SystemExit(got != -56)
