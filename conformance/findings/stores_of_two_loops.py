# Stores of two loops to neighbouring elements become one store in both loops, which is refused.
# Class A, fused against split; ordinary values; crash. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: the last i is 1 and the last j is 2. memory_coalescing joins the stores to x[0] and x[1],
# though neither is in the loop of the other; those to x[0] and x[2] are not joined and are right.
from tinygrad import Tensor, UOp, dtypes
from tinygrad.uop.ops import AxisType, KernelInfo

i, j = (UOp.range(n, id, AxisType.LOOP) for n, id in ((2, 0), (3, 1)))
x = UOp.placeholder((2,), dtypes.int32, 0)
stores = (x[n].store(r.cast(dtypes.int32)).end(r) for n, r in enumerate((i, j)))
kernel = UOp.group(*stores).sink(arg=KernelInfo(opts_to_apply=()))
try:
    a = Tensor([9, 9], dtype=dtypes.int32).realize()
    got = Tensor.custom_kernel(a, fxn=lambda _: kernel)[0].tolist()
except AssertionError as error:
    got = [error]
print(got)
raise SystemExit(got != [1, 2])
