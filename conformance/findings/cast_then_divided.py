# A cast of a uint8 to int8 counts as not negative, and so its floor division truncates.
# Class A, fused against split; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 165 = 256 - 91, so the int8 is -91; -91 / 20 = -4.55, floor -5. Truncated it is -4; with
# contiguous() after the cast it is -5.
from tinygrad import Tensor, dtypes

x = Tensor([165], dtype=dtypes.uint8).realize()
got = (x.cast(dtypes.int8) // 20).tolist()
split = (x.cast(dtypes.int8).contiguous() // 20).tolist()
print(got, "split:", split)
raise SystemExit(got != [-5])
