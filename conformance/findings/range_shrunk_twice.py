# A loop under a gate i < c that is merged with the loop inside it is cut short twice.
# Class A, constant against parameter; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: i < 2 is true for i = 0 and 1, j is 0 and 1, so elements 2 i + j = 0 to 3 are stored. The
# loops of 4 and 2 become one of 8, which k < 4 cuts to 4: that is the first loop again, and i < 2
# cuts it to 2. With a realized 2 all four are stored.
from tinygrad import Tensor, UOp, dtypes
from tinygrad.uop.ops import KernelInfo

i, j, info = UOp.range(4, 0), UOp.range(2, 1), KernelInfo(opts_to_apply=())
a, b = (Tensor(v, dtype=dtypes.int32).realize() for v in ([9] * 4, [2]))
out, two = (UOp.placeholder((n,), dtypes.int32, slot) for slot, n in enumerate((4, 1)))
gates = (i < 2, i < two[0])
stores = (out[gate.where(i * 2 + j, UOp.invalid())].store(1) for gate in gates)
kernels = [store.end(i, j).sink(arg=info) for store in stores]
got, parameter = (
    Tensor.custom_kernel(a.clone(), b, fxn=lambda *_, k=k: k)[0].tolist() for k in kernels
)
print(got, "parameter:", parameter)
raise SystemExit(got != [1] * 4)
