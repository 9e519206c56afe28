# On X86 a store whose gate is false overwrites what a gated load gives otherwise.
# Class A, device against device; ordinary values. Wrong on X86
# of tinygrad 0.14.0 (Python 3.11). DEV=CPU:X86 ends with 1; DEV=CPU is right.
# By hand: element i is x[0] = 0 below 24, else 1; element 13 is not stored and stays 9. The store
# at 13 goes to the place on the stack that holds the 1, so later elements are 0.
from tinygrad import Tensor, UOp, dtypes
from tinygrad.uop.ops import KernelInfo

i, no = UOp.range(33, 0), UOp.invalid()
out, x = (UOp.placeholder((n,), dtypes.uint8, slot) for slot, n in enumerate((33, 1)))
value = (i < 24).where(x[(i < 24).where(0, no)], 1)
store = out[i.ne(13).where(i, no)].store(value)
kernel = store.end(i).sink(arg=KernelInfo(opts_to_apply=()))
a, b = (Tensor(v, dtype=dtypes.uint8).realize() for v in ([9] * 33, [0]))
got = Tensor.custom_kernel(a, b, fxn=lambda *_: kernel)[0].tolist()
print(got[13], got[14], got[24:])
raise SystemExit(got != [0] * 13 + [9] + [0] * 10 + [1] * 9)
