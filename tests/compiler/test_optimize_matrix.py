"""TC: sums of products in tiles that a warp multiplies; integers make every order exact."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from uop.compiler.pipeline import compile, lower
from uop.compiler.runtime.cuda import nvrtc_compile
from uop.compiler.stages.optimize.axes import axes, type_of
from uop.compiler.stages.optimize.matrix import ALONG_K, place_in_columns, place_in_rows
from uop.conformance.judging.compare import compare
from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.fragments import SHAPES, fragments_of
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import DTypeArg, ReduceArg, WmmaArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.graph import calls
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

M, N, K = 32, 24, 64


def gemm(dtype: DType, m: int = M, n: int = N, k: int = K, fold: Op = Op.ADD) -> UOp:
    a, b = param(0, (m, k), dtype), param(1, (n, k), dtype)
    factors = (
        UOp(Op.CAST, UOp(Op.RESHAPE, u, dims(shape)), arg=DTypeArg(dtypes.float32))
        for u, shape in ((a, (m, 1, k)), (b, (1, n, k)))
    )
    return UOp(Op.REDUCE, UOp(Op.MUL, *factors), arg=ReduceArg(fold, (2,)))


def tiled(root: UOp, text: str) -> UOp:
    return lower(root, "optimize", optimizations=[parse_optimizations(text)])


INSTRUCTIONS = [
    (dtypes.float16, "m16n8k16"),
    (dtypes.float16, "m16n8k8"),
    (dtypes.fp8e4m3, "m16n8k32"),
    (dtypes.fp8e5m2, "m16n8k32"),
]
REST = [
    "",
    "; SPLIT(0, 2, LOCAL, INNER)",
    "; PADTO(3, 3); SPLIT(3, 3, UNROLL, INNER)",
    "; SWAP(1, 0)",
]


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize(("dtype", "shape"), INSTRUCTIONS, ids=lambda x: str(x))
def test_products_of_integers_are_exact(dtype: DType, shape: str, rest: str) -> None:
    program = tiled(gemm(dtype), f"TC(2, {shape}){rest}")
    assert sum(u.op is Op.WMMA for u in program.toposort()) == 1
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (rows, K)) for rows in (M, N))
    found = evaluate(program, {0: a.astype(np_dtype(dtype)), 1: b.astype(np_dtype(dtype))})
    assert isinstance(found, dict)
    (held,) = found.values()
    np.testing.assert_array_equal(held.reshape(M, N), a @ b.T)


def test_any_products_lie_in_the_sets_of_the_graph() -> None:
    root = UOp(Op.ADD, gemm(dtypes.float16), const(0.5, dtypes.float32))
    rng = np.random.default_rng(2)
    inputs = {k: rng.normal(size=(rows, K)).astype(np.float16) for k, rows in ((0, M), (1, N))}
    found = evaluate(tiled(root, "TC(2, m16n8k16)"), inputs)
    assert isinstance(found, dict)
    assert compare(accept(root, inputs), list(found.values())[-1:]).mismatch is None


def test_its_axes() -> None:
    (call,) = calls(tiled(gemm(dtypes.float16), "TC(2, m16n8k16)"))
    found = [(type_of(r).value, evaluate(r.src[0])) for r in axes(call.src[0])]
    assert found == [("g", 2), ("g", 3), ("w", 32), ("R", 4)]


def test_lanes_hold_what_the_instructions_say() -> None:
    """Against the lane maps of the interpreter, which are written the other way round."""
    for arg in SHAPES:
        maps, run = fragments_of(arg), 4 // arg.dtype_in.itemsize
        for which, width, columns in (
            (maps.a, run, False),
            (maps.b, run, True),
            (maps.acc, 2, False),
        ):
            for (row, column), lane in np.ndenumerate(which.lane):
                place = place_in_columns if columns else place_in_rows
                at = place(index_const(int(lane)), int(which.element[row, column]), width)
                assert [evaluate(i) for i in at] == [row, column], (arg, row, column)


def test_every_size_along_k_is_that_of_an_instruction() -> None:
    known = {(s.dtype_in, s.k) for s in SHAPES if s.dtype_in.bits < 32}
    assert {(d, k) for d, _ in known for k in ALONG_K[d.itemsize]} >= known
    for dtype, shape in INSTRUCTIONS:
        fragments_of(WmmaArg(16, 8, int(shape[6:]), dtype, dtypes.float32))


@pytest.mark.parametrize(
    ("label", "root", "text"),
    [
        ("TC.c2", gemm(dtypes.float16), "TC(3, m16n8k16)"),
        ("TC.c3", gemm(dtypes.float16), "TC(0, m16n8k16)"),
        ("TC.c3", gemm(dtypes.float32), "TC(2, m16n8k8)"),
        ("TC.c3", gemm(dtypes.bfloat16), "TC(2, m16n8k16)"),
        ("TC.c3", gemm(dtypes.float16, fold=Op.MAX), "TC(2, m16n8k16)"),
        ("TC.c3", gemm(dtypes.float16, fold=Op.MUL), "TC(2, m16n8k16)"),
        ("TC.c3", UOp(Op.NEG, param(0, (16,), dtypes.float16)), "TC(0, m16n8k16)"),
        ("TC.c4", gemm(dtypes.float16), "TC(2, m16n8k32)"),
        ("TC.c4", gemm(dtypes.float16), "TC(2, m8n8k4)"),
        ("TC.c4", gemm(dtypes.float16, 17), "TC(2, m16n8k16)"),
        ("TC.c4", gemm(dtypes.float16, k=24), "TC(2, m16n8k16)"),
        ("NOLOCALS.c1", gemm(dtypes.float16), "TC(2, m16n8k16); NOLOCALS()"),
    ],
)
def test_what_it_does_not_fit_is_refused_by_its_label(label: str, root: UOp, text: str) -> None:
    with pytest.raises(InvalidError) as error:
        tiled(root, text)
    assert error.value.label == label


def test_a_target_without_the_instruction_is_named() -> None:
    with pytest.raises(UnsupportedError, match="opencl has no matrix instruction for WMMA"):
        compile(gemm(dtypes.float16), optimizations=[parse_optimizations("TC(2, m16n8k16)")])
    with pytest.raises(UnsupportedError, match="opencl has no matrix instruction for WMMA"):
        compile(tiled(gemm(dtypes.float16), "TC(2, m16n8k16)"))


@pytest.mark.parametrize("stage", ["select", "linearize", "plan"])
def test_stages_keep_products(stage: str) -> None:
    sequence = parse_optimizations("TC(2, m16n8k16); SPLIT(0, 2, LOCAL, INNER)")
    program = lower(gemm(dtypes.float16), stage, "cuda-host", [sequence])
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (rows, K)) for rows in (M, N))
    found = evaluate(program, {0: a.astype(np.float16), 1: b.astype(np.float16)})
    assert isinstance(found, dict)
    np.testing.assert_array_equal(next(iter(found.values())).reshape(M, N), a @ b.T)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler g++ on this machine")
@pytest.mark.parametrize(("dtype", "shape"), INSTRUCTIONS, ids=lambda x: str(x))
def test_warps_on_the_cpu(dtype: DType, shape: str) -> None:
    sequence = parse_optimizations(f"TC(2, {shape}); SPLIT(0, 2, LOCAL, INNER)")
    program = compile(gemm(dtype), "cuda-host", optimizations=[sequence])
    assert program.source.count("= mma_m16n8k") == 1
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (rows, K)) for rows in (M, N))
    found = program.run({0: a.astype(np_dtype(dtype)), 1: b.astype(np_dtype(dtype))})
    np.testing.assert_array_equal(np.asarray(found).reshape(M, N), a @ b.T)


@pytest.mark.cuda
@pytest.mark.parametrize(("dtype", "shape"), INSTRUCTIONS, ids=lambda x: str(x))
def test_nvrtc_takes_each_instruction(dtype: DType, shape: str) -> None:
    sequence = parse_optimizations(f"TC(2, {shape})")
    source = compile(gemm(dtype), "cuda", optimizations=[sequence]).source
    if dtype.itemsize == 1:
        with pytest.raises(UnsupportedError, match=r"need compute capability 8.9, found 8.0"):
            nvrtc_compile(source, "sm_80")
    for architecture in ("sm_80" if dtype.itemsize == 2 else "sm_89", "sm_90"):
        assert nvrtc_compile(source, architecture)
