# Emulated float16 reads its small values as 0.
# Class A, device against device; ordinary values. Wrong on PYTHON, CL
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=PYTHON ends with 1.
# By hand: float16 has 1/32768 = 2**-15, between its smallest normal value 2**-14 and its smallest
# one 2**-24; doubled it is 2**-14, bits 0x0400. Emulated it is read as 0.
from tinygrad import Tensor, dtypes

x = Tensor([0x0200], dtype=dtypes.uint16).realize().bitcast(dtypes.float16)
got = (x * 2).bitcast(dtypes.uint16).tolist()
print(got)
raise SystemExit(got != [0x0400])
