"""CUDA sources on the CPU: groups, barriers, shared memory, and what goes wrong."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from kernels import REVERSE

from uop.compiler.pipeline import compile
from uop.compiler.runtime import cuda_host
from uop.compiler.runtime.cuda_host import CUDAHostDevice, open_cuda_host
from uop.compiler.runtime.device import Contents, Launch
from uop.spec.dtype import dtypes
from uop.spec.errors import BackendError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param

needs_a_compiler = pytest.mark.skipif(
    shutil.which("g++") is None, reason="no C++ compiler g++ on this machine"
)

PARTING = """
extern "C" __global__ void parting(int* b0) {
  if (threadIdx.x < 2) __syncthreads();
  b0[threadIdx.x] = 7;
}
"""


@pytest.fixture(scope="module")
def device() -> CUDAHostDevice:
    return open_cuda_host()


def launched(device: CUDAHostDevice, source: str, launch: Launch, *buffers: Contents) -> Contents:
    return device.run(device.build(source), [launch], buffers)[0]


@needs_a_compiler
def test_items_of_a_group_share_memory_and_wait_for_each_other(device: CUDAHostDevice) -> None:
    given = np.arange(6, dtype=np.int32)
    launch = Launch("reverse", (0, 1), (2,), (3,), (100,))
    found = launched(device, REVERSE, launch, np.zeros(6, np.int32), given)
    assert found.tolist() == [102, 101, 100, 105, 104, 103]
    assert given.tolist() == [0, 1, 2, 3, 4, 5]


@needs_a_compiler
def test_a_compiler_may_fortify_what_it_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fortifying = tmp_path / "g++"
    fortifying.write_text('#!/bin/sh\nexec g++ -O1 -D_FORTIFY_SOURCE=2 "$@"\n')
    fortifying.chmod(0o755)
    monkeypatch.setenv("CXX", str(fortifying))
    test_items_of_a_group_share_memory_and_wait_for_each_other(open_cuda_host())


@needs_a_compiler
def test_items_that_part_at_a_barrier_are_reported(device: CUDAHostDevice) -> None:
    with pytest.raises(BackendError, match="kernel parting: divergent barrier"):
        launched(device, PARTING, Launch("parting", (0,), (1,), (3,)), np.zeros(3, np.int32))


@needs_a_compiler
def test_a_launch_of_no_groups_does_nothing(device: CUDAHostDevice) -> None:
    launch = Launch("reverse", (0, 0), (0,), (3,), (1,))
    assert launched(device, REVERSE, launch, np.full(3, 9, np.int32)).tolist() == [9, 9, 9]


@needs_a_compiler
def test_what_the_compiler_refuses_comes_with_its_log(device: CUDAHostDevice) -> None:
    with pytest.raises(BackendError, match="nonsense"):
        device.build('extern "C" __global__ void k(int* b0) { nonsense(b0); }')


@needs_a_compiler
def test_products_are_not_contracted() -> None:
    """2^-60 is lost where the product is rounded, and left where it is not."""
    x, y, z = (param(slot, (1,), dtypes.float64) for slot in range(3))
    root = UOp(Op.ADD, UOp(Op.MUL, x, y), z)
    inputs: Mapping[int, Contents] = {
        0: np.array([1 + 2.0**-30]),
        1: np.array([1 + 2.0**-30]),
        2: np.array([-(1 + 2.0**-29)]),
    }
    assert compile(root, "cuda-host").run(inputs) == np.array([0.0])


@needs_a_compiler
@pytest.mark.parametrize(("bits", "power"), [(0x7F800001, 0.0), (0x3F800000, np.nan)])
def test_powers_that_are_one_whatever_the_other_operand(bits: int, power: float) -> None:
    """IEEE 754 9.2.1, signalling NaN included, which the C library treats otherwise."""
    root = UOp(Op.POW, *(param(slot, (1,), dtypes.float32) for slot in range(2)))
    inputs = {0: np.array([bits], np.uint32).view(np.float32), 1: np.array([power], np.float32)}
    assert compile(root, "cuda-host").run(inputs) == np.float32([1.0])


@needs_a_compiler
def test_a_quotient_of_a_negation_beside_that_of_the_number() -> None:
    """The lowest integer is its own negation; g++ forgets that."""
    x, y = (param(slot, (1,), dtypes.int64) for slot in range(2))
    d = UOp(Op.OR, y, const(1, dtypes.int64))
    quotient, negated = UOp(Op.IDIV, x, d), UOp(Op.IDIV, UOp(Op.NEG, x), d)
    root = UOp(Op.TUPLE, UOp(Op.NEG, negated), quotient)
    inputs = {0: np.array([-(2**63)]), 1: np.array([17])}
    found = compile(root, "cuda-host").run(inputs)
    assert isinstance(found, tuple)
    assert [int(a[0]) for a in found] == [-(-(2**63) // 17), -(2**63) // 17]


def test_a_machine_without_a_compiler_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(cuda_host.COMPILER_VARIABLE, "no-such-compiler")
    with pytest.raises(UnsupportedError, match="no C\\+\\+ compiler 'no-such-compiler'"):
        open_cuda_host()
