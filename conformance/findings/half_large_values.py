# Emulated float16 rounds 65510 to infinity instead of 65504.
# Class A, device against device; ordinary values. Wrong on PYTHON, CL
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=PYTHON ends with 1.
# By hand: 65504 is the largest float16, the next one would be 65536: infinite is what lies from
# 65520 on, the middle (IEEE 754, 4.3.1). 65510 is nearer to 65504, bits 0x7bff. Emulated it is
# infinite.
from tinygrad import Tensor, dtypes

x = Tensor([65510.0], dtype=dtypes.float32).realize()
got = x.cast(dtypes.float16).realize().bitcast(dtypes.uint16).tolist()
print(got)
raise SystemExit(got != [0x7BFF])
