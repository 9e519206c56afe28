"""Tiles in LOCAL memory: what is copied, in which kernels, and that no stage changes a result."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from uop.compiler.pipeline import compile, lower
from uop.compiler.runtime.cuda import nvrtc_compile
from uop.compiler.stages.render.body import blocks_of, copies
from uop.interpreter.evaluate import evaluate
from uop.spec.args import AddrSpace, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.graph import base_of
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param

Numbers = NDArray[np.int32]
STAGES = ("optimize", "expand", "select", "linearize", "plan")
GROUPS = "SPLIT(0, 4, LOCAL); SPLIT(1, 2, UPCAST); SPLIT(3, 4, LOCAL); SPLIT(4, 2, UPCAST)"
TILED = f"{GROUPS}; SPLIT(6, 4, UNROLL)"
M, N, K = 8, 12, 16


def product(dtype: DType = dtypes.int32, k: int = K) -> UOp:
    a = UOp(Op.RESHAPE, param(0, (M, k), dtype), dims((M, k, 1)))
    b = UOp(Op.RESHAPE, param(1, (k, N), dtype), dims((1, k, N)))
    return UOp(Op.REDUCE, UOp(Op.MUL, a, b), arg=ReduceArg(Op.ADD, (1,)))


def inputs(k: int = K) -> dict[int, Numbers]:
    rng = np.random.default_rng(k)
    return {n: rng.integers(-9, 9, shape, np.int32) for n, shape in ((0, (M, k)), (1, (k, N)))}


def expected(k: int = K) -> Numbers:
    held = inputs(k)
    return held[0] @ held[1]


def tiles(root: UOp, text: str, stage: str = "optimize") -> list[int]:
    """The sizes of the LOCAL memories of a program behind a stage."""
    program = lower(root, stage, optimizations=[parse_optimizations(text)])
    found = (u for u in program.toposort() if u.op is Op.BUFFER)
    return sorted(u.shape[0] for u in found if u.addrspace is AddrSpace.LOCAL)


def totals(outcome: object) -> Numbers:
    assert isinstance(outcome, dict)
    (held,) = outcome.values()
    return cast(Numbers, held.reshape(M, N))


def test_each_iteration_has_a_tile_and_the_loop_two() -> None:
    assert tiles(product(), TILED) == [4 * 16, 4 * 16]
    assert tiles(product(), TILED, "select") == [2 * 16, 2 * 16]


@pytest.mark.parametrize(
    "text",
    [
        "SPLIT(0, 2, UPCAST); SPLIT(3, 4, UNROLL)",  # No group.
        f"{GROUPS}; SPLIT(6, 2, GROUP_REDUCE)",  # Items that share a fold read other elements.
        "SPLIT(0, 4, LOCAL)",  # A tile of one column has less than an element for each item.
    ],
)
def test_other_kernels_have_none(text: str) -> None:
    assert tiles(product(), text) == []


def test_what_data_decides_is_not_copied() -> None:
    a = UOp(Op.INDEX, param(0, (K, K), dtypes.int32), param(2, (M,), dtypes.int32))
    b = UOp(Op.RESHAPE, param(1, (K, N), dtypes.int32), dims((1, K, N)))
    value = UOp(Op.MUL, UOp(Op.RESHAPE, a, dims((M, K, 1))), b)
    assert tiles(UOp(Op.REDUCE, value, arg=ReduceArg(Op.ADD, (1,))), TILED) == [4 * 16]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("k", [4, 8, 12, 16])
def test_no_stage_changes_a_result(stage: str, k: int) -> None:
    program = lower(product(k=k), stage, optimizations=[parse_optimizations(TILED)])
    np.testing.assert_array_equal(totals(evaluate(program, inputs(k))), expected(k))


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_tiles_of_any_shape(data: st.DataObject) -> None:
    """Padded axes, groups of any size, and vectors of any width."""
    one_of = lambda *sizes: data.draw(st.sampled_from(sizes))  # noqa: E731
    text = (
        f"PADTO(1, {one_of(4, 16)}); PADTO(2, {one_of(1, 6)}); SPLIT(0, {one_of(2, 4, 8)}, LOCAL); "
        f"SPLIT(1, {one_of(1, 2)}, UPCAST); SPLIT(3, {one_of(1, 4)}, LOCAL); "
        f"SPLIT(4, 1, UPCAST); SPLIT(6, {one_of(1, 2)}, UNROLL)"
    )
    for stage in ("optimize", "select"):
        program = lower(product(), stage, optimizations=[parse_optimizations(text)])
        np.testing.assert_array_equal(totals(evaluate(program, inputs())), expected())


@pytest.mark.parametrize("target", ["opencl", "cuda-host"])
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler g++ on this machine")
def test_on_devices(target: str) -> None:
    program = compile(product(), target, optimizations=[parse_optimizations(TILED)])
    found = np.asarray(program.run(inputs()))
    np.testing.assert_array_equal(found.reshape(M, N), expected())


@pytest.mark.cuda
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler g++ on this machine")
@pytest.mark.parametrize(
    ("text", "copied"),
    [
        (TILED, 2),
        (f"PADTO(2, 20); {TILED}", 0),  # Gates.
        ("SPLIT(0, 4, LOCAL)", 0),  # No tile.
    ],
)
def test_cuda_copies_tiles_on_its_own(text: str, copied: int) -> None:
    """`cuda-host` copies as late as a device may."""
    compiled = compile(product(), "cuda-host", optimizations=[parse_optimizations(text)])
    kernel = compiled.source.partition('extern "C"')[2]
    assert kernel.count("copy_async(") == copied
    assert kernel.count("wait_for_copies();") == bool(copied)
    found = np.asarray(compiled.run(inputs())).reshape(M, N)
    np.testing.assert_array_equal(found, expected())
    assert "cp.async" not in nvrtc_compile(compiled.source, "compute_75").decode()
    assert ("cp.async.ca" in nvrtc_compile(compiled.source, "compute_80").decode()) == bool(copied)


def test_what_is_no_copy_or_is_read_without_a_barrier() -> None:
    linear = lower(product(), "linearize", "cuda", optimizations=[parse_optimizations(TILED)])
    (body,) = (u for u in linear.toposort() if u.op is Op.LINEAR)

    def found(changed: UOp) -> int:
        return len(copies(changed, blocks_of(changed)))

    def rewritten(op: Op, change: Callable[[UOp], UOp]) -> UOp:
        new: dict[UOp, UOp] = {}
        for u in body.toposort():
            same = u.with_src([new[s] for s in u.src])
            new[u] = change(same) if u.op is op else same
        return new[body]

    assert found(body) == 2
    written = next(base_of(u.src[0]) for u in reversed(body.src) if u.op is Op.STORE)
    read = {base_of(u.src[0]): written for u in body.src if u.op is Op.LOAD}
    others = {memory: new for memory, new in read.items() if memory.op is Op.PARAM}
    assert found(body.substitute(others)) == 0
    assert found(rewritten(Op.BARRIER, lambda u: UOp(Op.GROUP, *u.src))) == 0
    gate = const(True, dtypes.bool)
    gated = rewritten(Op.STORE, lambda u: UOp(Op.STORE, *u.src, _wide(gate, u.src[1].shape)))
    assert found(gated) == 0


def _wide(gate: UOp, shape: tuple[int, ...]) -> UOp:
    return UOp(Op.STACK, *(gate,) * shape[0]) if shape else gate
