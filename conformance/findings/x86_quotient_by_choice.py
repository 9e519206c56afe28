# On X86 the larger of two int8 divided by a chosen one of them is wrong.
# Class A, fused against split; ordinary values. Wrong on X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU:X86 ends with 1.
# By hand: the larger of 27 and 49 is 49, the choice is 27 as the condition is false, and
# 49 // 27 = 1. With contiguous() after both it is 1.
from tinygrad import Tensor, dtypes

a = Tensor([27], dtype=dtypes.int8).realize()
b = Tensor([49], dtype=dtypes.int8).realize()
c = Tensor([False]).realize()
larger, chosen = a.maximum(b), c.where(b, a)
got = (larger // chosen).tolist()
split = (larger.contiguous() // chosen.contiguous()).tolist()
print(f"{got} split: {split}")
raise SystemExit(got != [1])
