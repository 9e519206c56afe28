# An index that is computed and cast to uint64 is computed as a float32.
# Class A, constant against parameter; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 0 + 16777217 = 2**24 + 1, which no float32 is. cast_weak_srcs computes in the dtype that
# holds uint64 and int32, which is a float. As uint32 or with a realized addend it is right; a
# remainder, i % 3, is refused, as floats have none.
from tinygrad import Tensor, UOp, dtypes
from tinygrad.uop.ops import KernelInfo

n, i, info = 2**24 + 1, UOp.range(2, 0), KernelInfo(opts_to_apply=())
a = Tensor([9, 9], dtype=dtypes.uint64).realize()
b = Tensor([n], dtype=dtypes.int32).realize()
out, y = UOp.placeholder((2,), dtypes.uint64, 0), UOp.placeholder((1,), dtypes.int32, 1)
sums = (i + n, i + y[0])
kernels = [out[i].store(s.cast(dtypes.uint64)).end(i).sink(arg=info) for s in sums]
got, parameter = (
    Tensor.custom_kernel(a.clone(), b, fxn=lambda *_, k=k: k)[0].tolist() for k in kernels
)
print(got, "parameter:", parameter)
raise SystemExit(got != [n, n + 1])
