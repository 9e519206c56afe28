# On CL a kernel that reads its last buffer but not the one before raises.
# Class A, device against device; ordinary values; crash. Wrong on CL
# of tinygrad 0.14.0 (Python 3.11, PoCL 3.0). DEV=CL ends with 1.
# By hand: the condition is false, so the value is y[0] = 2. The simplified kernel does not read x:
# it takes two buffers, and CLProgram.__call__ looks for them by their numbers, 0 and 2.
from tinygrad import Tensor, UOp, dtypes
from tinygrad.uop.ops import KernelInfo

no, info = UOp.const(False), KernelInfo(opts_to_apply=())
a, b, c = (Tensor([v], dtype=dtypes.int32).realize() for v in (0, 1, 2))
try:
    got = Tensor.custom_kernel(
        a, b, c, fxn=lambda out, x, y: out[0].store(no.where(x[0], y[0])).sink(arg=info)
    )[0].tolist()
except IndexError as error:
    got = [error]
print(got)
raise SystemExit(got != [2])
