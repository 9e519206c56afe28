# A gated load in the index of another load under the same gate loses its gate.
# Class A, device against device; ordinary values; crash. Wrong on PYTHON
# of tinygrad 0.14.0 (Python 3.11). DEV=PYTHON ends with 1; DEV=CPU reads beyond the buffer.
# By hand: where i is 2 the gate is false: x[2] is not read, the value is 0; else it is y[0] = 7.
from tinygrad import Tensor, UOp, dtypes
from tinygrad.uop.ops import KernelInfo

i, no = UOp.range(3, 0), UOp.invalid()
out, x, y = (UOp.placeholder((n,), dtypes.int64, slot) for slot, n in enumerate((3, 2, 4)))
inner = (i < 2).where(x[(i < 2).where(i, no)], 0).cast(dtypes.weakint) % 5
value = (i < 2).where(y[(i < 2).where(inner, no)], 0)
kernel = out[i].store(value).end(i).sink(arg=KernelInfo(opts_to_apply=()))
a, b, c = (Tensor([v] * n, dtype=dtypes.int64).realize() for v, n in ((0, 3), (0, 2), (7, 4)))
try:
    got = Tensor.custom_kernel(a, b, c, fxn=lambda *_: kernel)[0].tolist()
except IndexError as error:
    got = [error]
print(got)
raise SystemExit(got != [7, 7, 0])
