# X86 compares a uint8 that was spilled with 16 bits, of which 8 are left over from something else.
# Class A, device against device; ordinary values. Wrong on X86
# of tinygrad 0.14.0 (Python 3.11). DEV=CPU:X86 ends with 1; DEV=CPU is right.
# By hand: p is false, so the outer choice is 2 everywhere, and 2 differs from 2 nowhere.
from tinygrad import Tensor, dtypes

p, q, r = (Tensor([False] * 8).realize() for _ in range(3))
z = Tensor([0] * 8, dtype=dtypes.uint8).realize()
two, a, b, c = (Tensor(v, dtype=dtypes.uint8) for v in (2, 22, 35, 40))
got = (p.where(q.where(r.where(a, c).maximum(z), b), two) != 2).tolist()
print(sum(got), "of 8 differ")
raise SystemExit(any(got))
