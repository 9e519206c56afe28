# 2 to a float16 below -22 is 0, though float16 has numbers down to 2**-24.
# Class A, device against device; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 2**-22.5 is 2.83 * 2**-24, between 2 and 3 of the smallest number of float16, so its
# bits are 2 or 3. As a float32 it is 1.7e-07.
from tinygrad import Tensor, dtypes

x = Tensor([-22.5], dtype=dtypes.float16).realize()
got = x.exp2().realize().bitcast(dtypes.uint16).tolist()
print(got, "float32:", x.cast(dtypes.float32).exp2().tolist())
raise SystemExit(got not in ([2], [3]))
