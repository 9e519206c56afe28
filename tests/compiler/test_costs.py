"""The arithmetic and the memory of kernels, against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest

from uop.compiler.execute import open_device
from uop.compiler.pipeline import compile, find_target
from uop.compiler.timing import Cost, copy_bandwidth, cost_of, kernel_times
from uop.spec.args import ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.frontend.compositions import gemm
from uop.spec.frontend.tensor import Tensor
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param, variable

A = Tensor(param(0, (4, 6), dtypes.float32))
B = Tensor(param(1, (6, 8), dtypes.float32))


def first_cost(root: UOp, optimizations: str = "") -> Cost:
    compiled = compile(root, "cuda-host", optimizations=(parse_optimizations(optimizations),))
    return cost_of(compiled.executable.kernels[0])


def test_a_gemm_multiplies_and_adds() -> None:
    moved = 4 * (4 * 6 + 6 * 8 + 4 * 8)
    assert first_cost(gemm(A, B).uop) == Cost(2 * 4 * 6 * 8, moved)
    parted = first_cost(gemm(A, B).uop, "SPLIT(2, 2, UNROLL, INNER)")
    assert parted.bytes == moved
    assert parted.flops >= 2 * 4 * 6 * 8


def test_indices_comparisons_and_moves_count_nothing() -> None:
    x = param(0, (3, 5), dtypes.int16)
    rows = Tensor(x).transpose(0, 1).cast(dtypes.float32)
    assert first_cost((rows + 1).uop) == Cost(15, 15 * 2 + 15 * 4)
    assert first_cost(UOp(Op.CMPLT, x, x)).flops == 0


def test_memory_counts_as_far_as_it_is_reached() -> None:
    """Two of a thousand elements are read, and all of what is written."""
    x = Tensor(param(0, (1000,), dtypes.int32)).shrink_to(2)
    assert first_cost((x + 1).uop) == Cost(2, 2 * 4 + 2 * 4)


def test_sizes_are_those_of_the_launch() -> None:
    n = variable(0, 0, 100)
    total = UOp(Op.REDUCE, param(1, (n, 3), dtypes.float32), arg=ReduceArg(Op.ADD, (1,)))
    compiled = compile(total, "cuda-host")
    for rows in (7, 0):
        given = {0: np.array(rows), 1: np.zeros((rows, 3), np.float32)}
        step = compiled.executable.bound(given).kernels[0]
        assert cost_of(step) == Cost(3 * rows, 4 * (3 * rows + rows))


def test_every_kernel_has_a_time() -> None:
    device = open_device(find_target("cuda-host"))
    x = np.ones((4, 6), np.float32)
    total = A * A.sum()
    with compile(total.sum(0).uop, "cuda-host").load(device) as loaded:
        times = kernel_times(loaded, {0: x}, turns=1)
        np.testing.assert_array_equal(np.asarray(loaded.run({0: x})), np.full(6, 96))
    assert [t.launch.kernel for t in times] == [one.kernel for one in loaded.executable.launches()]
    assert all(t.seconds > 0 for t in times)
    assert times[0].flops == pytest.approx(times[0].cost.flops / times[0].seconds)
    assert copy_bandwidth(device, turns=1) > 0
