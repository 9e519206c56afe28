# float64 is rounded to float32 before it is rounded to float16.
# Class A, constant against parameter; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 1 + 2**-11 + 2**-40 lies above the middle of 1 and 1 + 2**-10, neighbours in float16, so
# it rounds to 1 + 2**-10, bits 0x3c01. In float32 it is that middle, which goes to 1; as a
# constant it is right.
from tinygrad import Device, Tensor, dtypes

x = Tensor([1 + 2**-11 + 2**-40], dtype=dtypes.float64).realize()
got = x.cast(dtypes.float16).realize().bitcast(dtypes.uint16).tolist()
constant = Tensor(1 + 2**-11 + 2**-40, dtype=dtypes.float64).cast(dtypes.float16)
alone = constant.clone(Device.DEFAULT).bitcast(dtypes.uint16).tolist()
print(got, "constant:", alone)
raise SystemExit(got != [0x3C01])
