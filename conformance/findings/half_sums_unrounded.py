# A sum of float16 is not rounded to float16 before it is used.
# Class A, device against device; ordinary values; algebra. Wrong on PYTHON, CL, CPU
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: float16 has 11 significant bits: between 2048 and 4096 it holds even numbers only. 2048
# + 1 lies in the middle of 2048 and 2050 and goes to the even significand, 2048; so does 2048 + 1
# again.
from tinygrad import Tensor, dtypes

x = Tensor([2048.0], dtype=dtypes.float32).cast(dtypes.float16).realize()
y = Tensor([1.0], dtype=dtypes.float32).cast(dtypes.float16).realize()
z = Tensor([1.0], dtype=dtypes.float32).cast(dtypes.float16).contiguous().realize()
got = ((x + y) + z).cast(dtypes.float32).tolist()
print(got)
raise SystemExit(got != [2048.0])
