# X86 drops a cast of int64 to uint32 and back.
# Class A, device against device; ordinary values. Wrong on X86
# of tinygrad 0.14.0 (Python 3.11). DEV=CPU:X86 ends with 1; DEV=CPU is right.
# By hand: a uint32 is the number modulo 2**32: -3 is 4294967293, and 5000000000 is 705032704; as an
# int64 both stay that.
from tinygrad import Tensor, dtypes

x = Tensor([-3, 5000000000], dtype=dtypes.int64).realize()
got = x.cast(dtypes.uint32).cast(dtypes.int64).tolist()
print(got)
raise SystemExit(got != [4294967293, 705032704])
