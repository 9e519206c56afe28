"""heuristic: the optimizations that the compiler chooses for large kernels."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from uop.compiler.pipeline import compile, lower
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.stages.optimize.choose import heuristic, in_groups
from uop.compiler.stages.optimize.stage import optimize
from uop.compiler.targets.cuda import CUDA
from uop.compiler.targets.opencl import OPENCL
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import DTypeArg, PermuteArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.graph import kernel_calls
from uop.spec.kernel.optimization import print_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param


def product(a: UOp, b: UOp) -> UOp:
    (m, k), n = a.shape, b.shape[1]
    left = UOp(Op.EXPAND, UOp(Op.RESHAPE, a, dims((m, k, 1))), dims((m, k, n)))
    right = UOp(Op.EXPAND, UOp(Op.RESHAPE, b, dims((1, k, n))), dims((m, k, n)))
    return UOp(Op.REDUCE, UOp(Op.MUL, left, right), arg=ReduceArg(Op.ADD, (1,)))


def turned(u: UOp) -> UOp:
    return UOp(Op.PERMUTE, u, arg=PermuteArg((1, 0)))


def x(*shape: int, slot: int = 0, dtype: DType = dtypes.float32) -> UOp:
    return param(slot, shape, dtype)


def widened(u: UOp) -> UOp:
    return UOp(Op.CAST, u, arg=DTypeArg(dtypes.float32))


def fold(u: UOp, axis: int) -> UOp:
    return UOp(Op.REDUCE, u, arg=ReduceArg(Op.ADD, (axis,)))


CASES = {
    "a product has a tile of 8 rows and 2 vectors, and 4 steps written out": (
        product(x(64, 64), x(64, 64, slot=1)),
        "SPLIT(0, 8, UPCAST, INNER); SPLIT(2, 16, UPCAST, INNER); SPLIT(4, 4, UNROLL, INNER)",
    ),
    "where the steps do not divide, one vector": (
        product(x(64, 63), x(63, 64, slot=1)),
        "SPLIT(0, 8, UPCAST, INNER); SPLIT(2, 8, UPCAST, INNER)",
    ),
    "with few rows it has more vectors": (
        product(x(4, 256), x(256, 64, slot=1)),
        "SPLIT(0, 4, UPCAST, INNER); SPLIT(2, 32, UPCAST, INNER); SPLIT(4, 4, UNROLL, INNER)",
    ),
    "where inputs are converted it has all that are worth it": (
        product(widened(x(64, 64, dtype=dtypes.float16)), x(64, 64, slot=1)),
        "SPLIT(0, 8, UPCAST, INNER); SPLIT(2, 32, UPCAST, INNER); SPLIT(4, 4, UNROLL, INNER)",
    ),
    "a product of rows by rows has vectors along the fold": (
        product(x(64, 64), turned(x(64, 64, slot=1))),
        "SPLIT(0, 4, UPCAST, INNER); SPLIT(2, 2, UPCAST, INNER); SPLIT(4, 8, UNROLL, INNER)",
    ),
    "one of columns by rows has them along the result": (
        product(turned(x(64, 64)), turned(x(64, 64, slot=1))),
        "SPLIT(0, 8, UPCAST, INNER); SPLIT(2, 16, UPCAST, INNER); SPLIT(4, 4, UNROLL, INNER)",
    ),
    "rows that no register tile divides": (
        product(x(67, 64), x(64, 64, slot=1)),
        "SPLIT(1, 64, UPCAST, INNER); SPLIT(3, 4, UNROLL, INNER)",
    ),
    "sums of rows have vectors along the row": (
        fold(x(256, 256), 1),
        "SPLIT(1, 32, UNROLL, INNER)",
    ),
    "sums of columns have vectors across": (fold(x(256, 256), 0), "SPLIT(0, 8, UPCAST, INNER)"),
    "each loop over a row has vectors": (
        UOp(Op.SUB, x(256, 256), UOp(Op.EXPAND, fold(x(256, 256), 1), dims((256, 256)))),
        "SPLIT(1, 32, UNROLL, INNER); SPLIT(3, 32, UNROLL, INNER)",
    ),
    "a short inner loop is written out": (
        fold(fold(UOp(Op.NEG, x(3, 128, 128)), 0), 1),
        "SPLIT(0, 8, UPCAST, INNER); SPLIT(3, 3, UNROLL, INNER)",
    ),
    "elementwise": (UOp(Op.NEG, x(1 << 16)), "SPLIT(0, 8, UPCAST, INNER)"),
    "float64 fills a register with 4": (
        UOp(Op.NEG, x(1 << 16, dtype=dtypes.float64)),
        "SPLIT(0, 4, UPCAST, INNER)",
    ),
    "a transpose has a tile, and groups along the rows that it reads": (
        UOp(Op.NEG, turned(x(256, 256))),
        "SPLIT(0, 8, UPCAST, INNER); SPLIT(0, 32, LOCAL, INNER); SPLIT(3, 16, UPCAST, INNER)",
    ),
    "an odd size has no vectors": (UOp(Op.NEG, x((1 << 16) + 1)), ""),
    "little work stays as it is": (UOp(Op.NEG, x(1 << 10)), ""),
}


def chosen(root: UOp) -> str:
    program = optimize(lower(root, "rangeify"))
    return print_optimizations(heuristic(kernel_calls(program)[0].src[0], OPENCL))


@pytest.mark.parametrize("name", CASES)
def test_what_it_chooses(name: str) -> None:
    root, expected = CASES[name]
    assert chosen(root) == expected


def test_a_target_without_vectors_has_none() -> None:
    program = optimize(lower(UOp(Op.NEG, x(1 << 16)), "rangeify"))
    assert heuristic(kernel_calls(program)[0].src[0], replace(CUDA, vectors=None)) == ()


IN_GROUPS = {
    "a product has tiles, small ones where large ones leave the device idle": (
        product(x(256, 64), x(64, 256, slot=1)),
        "SPLIT(0, 16, LOCAL, INNER); SPLIT(1, 2, UPCAST, INNER); SPLIT(3, 16, LOCAL, INNER); "
        "SPLIT(4, 2, UPCAST, INNER); SPLIT(6, 8, UNROLL, INNER)",
    ),
    "large ones": (
        product(x(2048, 64), x(64, 2048, slot=1)),
        "SPLIT(0, 128, LOCAL, INNER); SPLIT(1, 8, UPCAST, INNER); SPLIT(3, 128, LOCAL, INNER); "
        "SPLIT(4, 8, UPCAST, INNER); SPLIT(6, 8, UNROLL, INNER)",
    ),
    "what a tile does not divide is padded": (
        product(x(1000, 37), x(37, 1000, slot=1)),
        "PADTO(0, 64); SPLIT(0, 64, LOCAL, INNER); SPLIT(1, 4, UPCAST, INNER); PADTO(3, 64); "
        "SPLIT(3, 64, LOCAL, INNER); SPLIT(4, 4, UPCAST, INNER); PADTO(6, 8); "
        "SPLIT(6, 8, UNROLL, INNER)",
    ),
    "of two folds in a row the first one": (
        fold(UOp(Op.MUL, fold(x(8, 64, 128), 2), x(1, 64, 1, slot=1)), 1),
        "SPLIT(2, 128, GROUP_REDUCE, INNER)",
    ),
    "a group shares a fold": (
        fold(x(256, 1024), 1),
        "SPLIT(1, 1024, GROUP_REDUCE, INNER); SPLIT(2, 4, UNROLL, INNER)",
    ),
    "and all loops over a row": (
        UOp(Op.SUB, x(256, 300), UOp(Op.EXPAND, fold(x(256, 300), 1), dims((256, 300)))),
        "PADTO(1, 256); SPLIT(1, 256, GROUP_REDUCE, INNER); PADTO(3, 256); "
        "SPLIT(3, 256, GROUP_REDUCE, INNER)",
    ),
    "elementwise": (UOp(Op.NEG, x(1 << 16)), "SPLIT(0, 4, UPCAST, INNER)"),
    "a transpose has a small tile": (
        UOp(Op.NEG, turned(x(256, 256))),
        "SPLIT(0, 4, UPCAST, INNER); SPLIT(2, 4, UPCAST, INNER)",
    ),
    "little work stays as it is": (UOp(Op.NEG, x(1 << 10)), ""),
}


@pytest.mark.parametrize("name", IN_GROUPS)
def test_what_it_chooses_for_groups(name: str) -> None:
    root, expected = IN_GROUPS[name]
    program = optimize(lower(root, "rangeify"))
    body = kernel_calls(program)[0].src[0]
    assert print_optimizations(in_groups(body, CUDA)) == expected


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler g++ on this machine")
@pytest.mark.parametrize("name", IN_GROUPS)
def test_the_result_in_groups(name: str) -> None:
    root, _ = IN_GROUPS[name]
    inputs = {u.arg.slot: integers(u) for u in root.toposort() if u.op is Op.PARAM}  # type: ignore[union-attr]
    found = np.asarray(compile(root, "cuda-host").run(inputs))
    without = np.asarray(compile(root, "cuda-host", optimizations=()).run(inputs))
    np.testing.assert_array_equal(found, without)


def test_the_compiler_takes_its_choice_unless_there_is_another() -> None:
    root = CASES["elementwise"][0]
    assert "load_float8" in compile(root).source
    assert "load_float8" not in compile(root, optimizations=()).source


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_without_them(opencl: OpenCLDevice, name: str) -> None:
    root, _ = CASES[name]
    inputs = {u.arg.slot: integers(u) for u in root.toposort() if u.op is Op.PARAM}  # type: ignore[union-attr]
    found = np.asarray(compile(root).run(inputs, opencl))
    without = np.asarray(compile(root, optimizations=()).run(inputs, opencl))
    np.testing.assert_array_equal(found, without)


def integers(u: UOp) -> Array:
    """Small integers, whose sums are exact in every order."""
    numbers = np.random.default_rng(7).integers(-4, 5, u.shape)
    return numbers.astype(np_dtype(u.dtype))
