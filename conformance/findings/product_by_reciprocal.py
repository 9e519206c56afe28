# x * (1 / y) is computed as x / y, which rounds once.
# Class A, fused against split; ordinary values; algebra. Wrong on CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 1/49 is rounded first, and 49 times that is 1 - 2**-53, not 1, as Python's floats show.
from tinygrad import Tensor, dtypes

x = Tensor([49.0], dtype=dtypes.float64).realize()
y = Tensor([49.0], dtype=dtypes.float64).realize()
got, split = (x * y.reciprocal()).tolist(), (x * y.reciprocal().contiguous()).tolist()
print(got, "split:", split)
raise SystemExit(got != [49.0 * (1 / 49.0)])
