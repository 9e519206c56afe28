"""NVRTC compiles the whole prelude and every spelled op, as IEEE arithmetic without contraction."""

from __future__ import annotations

import pytest

from uop.compiler.pipeline import compile
from uop.compiler.runtime.cuda import nvrtc_compile
from uop.compiler.targets.cstyle import Operation, c_type, spell
from uop.compiler.targets.cuda import CUDA
from uop.compiler.targets.prelude import all_helpers
from uop.spec.args import ConstArg, DTypeArg
from uop.spec.dtype import DTYPES, FLOATS, DType, dtypes
from uop.spec.errors import BackendError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, param

pytestmark = pytest.mark.cuda

COMPARISONS = (Op.CMPLT, Op.CMPNE, Op.CMPGT, Op.CMPGE, Op.CMPLE, Op.CMPEQ)
VALUES = [dtype for dtype in DTYPES.values() if dtype is not dtypes.void]


def operations() -> list[Operation]:
    """Every op that C spells, on every dtype that the spec allows and the target computes in."""
    found = []
    for op in sorted(CUDA.ops - {Op.CAST, Op.BITCAST, Op.WHERE}, key=lambda op: op.name):
        declaration = DECLARATIONS[op]
        operands = tuple(f"x{i}" for i, _ in enumerate(declaration.src))
        for dtype in declaration.dtypes:
            if dtype in CUDA.native:
                result = dtypes.bool if op in COMPARISONS else dtype
                found.append(Operation(op, result, (dtype,) * len(operands), operands))
    for a in VALUES:
        found.append(Operation(Op.WHERE, a, (dtypes.bool, a, a), ("x0", "x1", "x2")))
        for b in VALUES:
            if not (a.is_float and b is dtypes.index):
                found.append(Operation(Op.CAST, b, (a,), ("x0",)))
            if a.itemsize == b.itemsize and dtypes.index not in (a, b):
                found.append(Operation(Op.BITCAST, b, (a,), ("x0",)))
    return found


def kernel(name: str, chosen: list[Operation]) -> str:
    lines = []
    for i, operation in enumerate(chosen):
        loads = [
            f"{c_type(d)} {x} = *({c_type(d)}*)(memory + {16 * j});"
            for j, (x, d) in enumerate(zip(operation.args, operation.of, strict=True))
        ]
        out = c_type(operation.dtype)
        store = f"*({out}*)(memory + {64 + 16 * i}) = t;"
        lines.append(f"{{ {' '.join(loads)} {out} t = {spell(operation)}; {store} }}")
    return "\n".join([f"{CUDA.dialect.kernel} {name}(u8* memory) {{", *lines, "}"])


def test_every_spelled_op_compiles() -> None:
    chosen = operations()
    assert {operation.op for operation in chosen} == CUDA.ops
    kernels = [kernel(f"k{i}", chosen[i : i + 50]) for i in range(0, len(chosen), 50)]
    ptx = nvrtc_compile(CUDA.source(kernels))
    assert ptx.count(b".visible .entry") == len(kernels)


def test_the_whole_prelude_compiles() -> None:
    heads = [f"#define {head} {CUDA.dialect.function_apart}" for head in ("FN", "APART")]
    texts = [helper.text for helper in all_helpers().values()]
    declared = CUDA.dialect.declarations.values()
    nvrtc_compile("\n\n".join([CUDA.dialect.header, *declared, *heads, *texts]))


def float_ops(dtype: DType) -> list[Operation]:
    return [
        Operation(op, dtype, (dtype,) * arity, ("x0", "x1", "x2")[:arity])
        for op, arity in ((Op.MULACC, 3), (Op.DIV, 2), (Op.RECIP, 1), (Op.SQRT, 1))
    ]


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d in CUDA.native], ids=lambda d: d.name)
def test_arithmetic_rounds_once_per_op(dtype: DType) -> None:
    ptx = nvrtc_compile(CUDA.source([kernel("k", float_ops(dtype))])).decode()
    body = ptx[ptx.index(".visible .entry") :]
    suffix = f"rn.f{dtype.bits}"
    for instruction in ("mul", "add", "div", "rcp", "sqrt"):
        assert f"{instruction}.{suffix}" in body
    assert "fma" not in body
    assert "approx" not in body
    assert ".ftz" not in body


def test_float32_functions_stay_float32() -> None:
    chosen = [
        Operation(op, dtypes.float32, (dtypes.float32,) * arity, ("x0", "x1")[:arity])
        for op, arity in ((Op.EXP2, 1), (Op.LOG2, 1), (Op.POW, 2), (Op.SQRT, 1), (Op.TRUNC, 1))
    ]
    assert b".f64" not in nvrtc_compile(CUDA.source([kernel("k", chosen)]))


def test_a_refused_source_says_why() -> None:
    with pytest.raises(BackendError, match="expected an expression"):
        nvrtc_compile("int x = ;")


def test_small_floats_have_no_arithmetic() -> None:
    half = dtypes.float16
    with pytest.raises(UnsupportedError, match="ADD on float16"):
        spell(Operation(Op.ADD, half, (half, half), ("x", "y")))


def ptx_of(root: UOp) -> str:
    return nvrtc_compile(compile(root, "cuda").source).decode()


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int16], ids=lambda d: d.name)
def test_no_int16_is_negated_in_16_bits(dtype: DType) -> None:
    x, least = param(0, (), dtype), const(-1, dtype)
    negated = [UOp(Op.NEG, x), UOp(Op.MUL, x, least), UOp(Op.IDIV, x, least)]
    negated += [UOp(Op.MUL, x, const(-64, dtype)), UOp(Op.SUB, const(0, dtype), x)]
    for u in negated:
        assert "neg.s16" not in ptx_of(UOp(Op.CAST, u, arg=DTypeArg(dtypes.int32)))


def test_a_choice_beside_a_constant_is_no_maximum() -> None:
    x, most = param(0, (), dtypes.float32), const(1.5, dtypes.float32)
    ptx = ptx_of(UOp(Op.WHERE, UOp(Op.CMPLT, x, most), most, x))
    # The condition is a number in between.
    assert "selp.u32" in ptx


def test_a_signalling_literal_is_not_folded() -> None:
    x = param(0, (), dtypes.float64)
    signalling = UOp(Op.CONST, arg=ConstArg(0x7FF0000000000003, dtypes.float64))
    ptx = ptx_of(UOp(Op.CAST, UOp(Op.ADD, x, signalling), arg=DTypeArg(dtypes.float32)))
    assert "cvt.rn.f32.f64" in ptx
