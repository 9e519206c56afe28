# A store that is folded away takes the stores that come before it along.
# Class A, constant against parameter; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 5 is stored to x[0], 6 nowhere as its gate is false, and x[0] is copied to x[1]: 5, 5.
# The store under a constant gate becomes a NOOP, and so the first store has no user and is not
# made; as does a store of x[0] to x[0]. With a realized gate it is made.
from tinygrad import Tensor, UOp, dtypes
from tinygrad.uop.ops import KernelInfo

a, b = (Tensor(v, dtype=dtypes.int32).realize() for v in ([9, 9], [0]))
x, y = (UOp.placeholder((n,), dtypes.int32, slot) for slot, n in enumerate((2, 1)))
first, no, results = x.after(x[0].store(5)), UOp.invalid(), []
for gate in (UOp.const(False), y[0].ne(0)):
    second = x.after(first[gate.where(0, no)].store(6))
    kernel = second[1].store(second[0]).sink(arg=KernelInfo(opts_to_apply=()))
    results += Tensor.custom_kernel(a.clone(), b, fxn=lambda *_, k=kernel: k)[:1]
got, parameter = (result.tolist() for result in results)
print(got, "parameter:", parameter)
raise SystemExit(got != [5, 5])
