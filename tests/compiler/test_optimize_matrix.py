"""TC: sums of products in tiles that a warp multiplies; integers make every order exact."""

from __future__ import annotations

import shutil
from collections import Counter
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uop.compiler.loops import axes, type_of
from uop.compiler.pipeline import compile, lower
from uop.compiler.runtime.cuda import nvrtc_compile
from uop.compiler.stages.optimize.matrix import ALONG_K, place_in_columns, place_in_rows
from uop.compiler.stages.select.stage import select
from uop.compiler.targets.cuda import CUDA
from uop.conformance.judging.compare import compare
from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.fragments import SHAPES, fragments_of
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import AddrSpace, AxisType, DTypeArg, ReduceArg, WmmaArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.graph import base_of, calls
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
    "; SPLIT(1, 3, UPCAST, INNER); SPLIT(0, 2, UPCAST, INNER)",
    "; SPLIT(1, 3, LOCAL); SPLIT(0, 2, LOCAL)",
    "; PADTO(0, 4); SPLIT(1, 3, LOCAL); SPLIT(0, 4, LOCAL); SPLIT(1, 2, UPCAST)",
    "; PADTO(1, 2); SPLIT(3, 2, UNROLL, INNER); SPLIT(1, 2, UPCAST); SPLIT(0, 2, LOCAL)",
]
TILES = "; SPLIT(0, 4, UPCAST); SPLIT(2, 4, UPCAST)"
"""Four by four tiles in each warp."""
SHARED = "; SPLIT(1, 8, LOCAL); SPLIT(2, 4, UPCAST); SPLIT(0, 4, LOCAL); SPLIT(1, 2, UPCAST)"
"""Two by two warps in each group."""


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


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize("stage", ["expand", "select", "linearize", "plan"])
def test_stages_keep_products(stage: str, rest: str) -> None:
    sequence = parse_optimizations(f"TC(2, m16n8k16){rest}")
    program = lower(gemm(dtypes.float16), stage, "cuda-host", [sequence])
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (rows, K)) for rows in (M, N))
    found = evaluate(program, {0: a.astype(np.float16), 1: b.astype(np.float16)})
    assert isinstance(found, dict)
    np.testing.assert_array_equal(next(iter(found.values())).reshape(M, N), a @ b.T)


def divisors(n: int) -> st.SearchStrategy[int]:
    return st.sampled_from([k for k in range(1, n + 1) if n % k == 0])


@settings(max_examples=20, deadline=None)
@given(st.data(), st.sampled_from(INSTRUCTIONS))
def test_tiles_of_any_size_lie_in_the_sets_of_the_graph(
    data: st.DataObject, instruction: tuple[DType, str]
) -> None:
    dtype, shape = instruction
    tiles = [data.draw(st.integers(1, most)) for most in (4, 4, 3)]
    m, n, k = (n * size for n, size in zip(tiles, (16, 8, int(shape[6:])), strict=True))
    root = UOp(Op.ADD, gemm(dtype, m, n, k), const(0.5, dtypes.float32))
    splits = [f"TC(2, {shape})", f"SPLIT(3, {data.draw(divisors(tiles[2]))}, UNROLL)"]
    for axis in (1, 0):
        local = data.draw(divisors(tiles[axis]))
        splits += [f"SPLIT({axis}, {local}, LOCAL)"]
        splits += [f"SPLIT({axis + 1}, {data.draw(divisors(local))}, UPCAST)"]
    rng = np.random.default_rng(4)
    inputs = {
        slot: (rng.integers(-9, 10, (rows, k)) / 8).astype(np_dtype(dtype))
        for slot, rows in ((0, m), (1, n))
    }
    accepted = accept(root, inputs)
    sequence = parse_optimizations("; ".join(splits))
    for stage in ("optimize", "expand", "plan"):
        found = evaluate(lower(root, stage, "cuda-host", [sequence]), inputs)
        assert isinstance(found, dict)
        assert compare(accepted, list(found.values())[-1:]).mismatch is None


def test_a_warp_reads_the_fragments_of_its_tiles_once() -> None:
    sequence = parse_optimizations(f"TC(2, m16n8k16){TILES}")
    program = lower(gemm(dtypes.float16, 64, 64), "select", "cuda", [sequence])
    nodes = program.toposort()
    products = [u for u in nodes if u.op is Op.WMMA]
    assert len(products) == 16
    assert len({u.src[0] for u in products}) == len({u.src[1] for u in products}) == 4
    # Each adds to a fragment of its own, in registers.
    held = {u.src[2] for u in products}
    assert {u.op for u in held} == {Op.LOAD}
    assert len({base_of(u.src[0]) for u in held}) == 16
    assert all(u.src[0].addrspace is AddrSpace.REG and u.shape == (4,) for u in held)
    loads = [u for u in nodes if u.op is Op.LOAD and u.dtype is dtypes.float16]
    assert sum(prod(u.shape) for u in loads) == 4 * 8 + 4 * 4


def test_warps_of_a_group_copy_the_fragments_that_they_share() -> None:
    """In LOCAL memory a fragment of A is 16 bytes and one of B 8: a lane reads each at once."""
    sequence = parse_optimizations(f"TC(2, m16n8k16){SHARED}")
    program = lower(gemm(dtypes.float16, 64, 64), "select", "cuda", [sequence])
    nodes = program.toposort()
    shared = {u: u.shape[0] for u in nodes if u.op is Op.BUFFER and u.addrspace is AddrSpace.LOCAL}
    tiles = {8: 4, 4: 8}
    assert sorted(shared.values()) == sorted(2 * n * 32 * size for size, n in tiles.items())
    for op, places in ((Op.STORE, {8: 1, 4: 2}), (Op.LOAD, {8: 2, 4: 4})):
        found = (u.src[0] for u in nodes if u.op is op and u.src[0].addrspace is AddrSpace.LOCAL)
        assert Counter(prod(place.shape) for place in found) == places
    assert sum(u.op is Op.BARRIER for u in nodes) == 1


def test_an_element_whose_number_is_computed_is_refused() -> None:
    program = tiled(gemm(dtypes.float16), "TC(2, m16n8k16)")
    order = program.toposort()
    (lane,) = (u for u in order if u.op is Op.RANGE and type_of(u) is AxisType.WARP)
    element = next(u for u in order if u.op is Op.INDEX and u.addrspace is None)
    other = UOp(Op.INDEX, element.src[0], UOp(Op.MOD, lane, index_const(2)))
    with pytest.raises(UnsupportedError, match="an element of a fragment whose number is computed"):
        select(program.substitute({element: other}), CUDA)


def test_products_that_may_overflow_do_not_add_to_each_other() -> None:
    """Such a WMMA may pass through infinity and come back, which a sum of products may not."""
    sequence = parse_optimizations("TC(2, m16n8k16); SPLIT(0, 2, UPCAST)")
    program = lower(gemm(dtypes.float16), "optimize", optimizations=[sequence])
    wide = WmmaArg(16, 8, 16, dtypes.bfloat16, dtypes.float32)
    a = {u: UOp(Op.CAST, u, arg=DTypeArg(dtypes.bfloat16)) for u in program.toposort()
         if u.op is Op.LOAD}  # fmt: skip
    (narrow,) = (u for u in program.toposort() if u.op is Op.WMMA)
    factors = [UOp(Op.STACK, *map(a.__getitem__, s.src)) for s in narrow.src[:2]]
    mixed = program.substitute({narrow: UOp(Op.WMMA, *factors, narrow.src[2], arg=wide)})
    nodes = lower(mixed, "select", "cuda-host").toposort()
    products = [u for u in nodes if u.op is Op.WMMA]
    assert len(products) == 2
    assert all(u.src[2].op is Op.STACK for u in products)


@pytest.mark.sampled(3)
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler g++ on this machine")
@pytest.mark.parametrize(
    ("rest", "products"),
    [
        ("SPLIT(0, 2, LOCAL)", 1),
        ("SPLIT(1, 3, UPCAST); SPLIT(4, 2, UNROLL)", 6),
        ("SPLIT(1, 3, LOCAL); SPLIT(0, 2, UPCAST)", 2),
    ],
)
@pytest.mark.parametrize(("dtype", "shape"), INSTRUCTIONS, ids=lambda x: str(x))
def test_warps_on_the_cpu(dtype: DType, shape: str, rest: str, products: int) -> None:
    sequence = parse_optimizations(f"TC(2, {shape}); {rest}")
    program = compile(gemm(dtype), "cuda-host", optimizations=[sequence])
    assert program.source.count("= mma_m16n8k") == products
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (rows, K)) for rows in (M, N))
    found = program.run({0: a.astype(np_dtype(dtype)), 1: b.astype(np_dtype(dtype))})
    np.testing.assert_array_equal(np.asarray(found).reshape(M, N), a @ b.T)


@pytest.mark.cuda
@pytest.mark.parametrize("tiles", ["", TILES, SHARED])
@pytest.mark.parametrize(("dtype", "shape"), INSTRUCTIONS, ids=lambda x: str(x))
def test_nvrtc_takes_each_instruction(dtype: DType, shape: str, tiles: str) -> None:
    sequence = parse_optimizations(f"TC(2, {shape}){tiles}")
    source = compile(gemm(dtype, 64, 64), "cuda", optimizations=[sequence]).source
    if dtype.itemsize == 1:
        with pytest.raises(UnsupportedError, match=r"need compute capability 8.9, found 8.0"):
            nvrtc_compile(source, "sm_80")
    for architecture in ("sm_80" if dtype.itemsize == 2 else "sm_89", "sm_90"):
        assert nvrtc_compile(source, architecture)
