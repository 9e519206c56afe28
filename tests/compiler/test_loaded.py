"""Programs that stay on a device: their arrays, their memory, and what is refused."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from uop.compiler.execute import open_device
from uop.compiler.loaded import DeviceArray, Loaded, from_array, from_dlpack
from uop.compiler.pipeline import compile, find_target
from uop.compiler.runtime.device import Around, Built, Device, Launch
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.spec.args import BufferArg
from uop.spec.dtype import dtypes
from uop.spec.errors import (
    BackendError,
    InvalidError,
    LaunchError,
    OutOfMemoryError,
    UnsupportedError,
)
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param, variable

X = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
A = param(0, (2, 3), dtypes.int32)


class Watched(Around):
    """A device that notes what it allocates, builds, launches and waits for."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        object.__setattr__(self, "seen", [])

    def allocate(self, size: int) -> Any:
        self.seen.append("allocate")
        return self.device.allocate(size)

    def build(self, source: str) -> Built:
        self.seen.append("build")
        return self.device.build(source)

    def launch(self, built: Built, launch: Launch, held: Sequence[Any]) -> None:
        self.seen.append("launch")
        self.device.launch(built, launch, held)

    def read(self, memory: Any, size: int) -> Any:
        self.seen.append("read")
        return self.device.read(memory, size)

    def free(self, memory: Any) -> None:
        self.seen.append("free")
        self.device.free(memory)

    seen: list[str]


@pytest.fixture(params=["opencl", "cuda-host"])
def device(request: pytest.FixtureRequest) -> Watched:
    if request.param == "opencl":
        return Watched(request.getfixturevalue("opencl"))
    return Watched(open_device(find_target("cuda-host")))


def target(device: Watched) -> str:
    return "opencl" if isinstance(device.device, OpenCLDevice) else "cuda-host"


def loaded(root: UOp, device: Watched) -> Loaded:
    return compile(root, target(device)).load(device)


def chain() -> UOp:
    """Two kernels: a sum, and one of its multiples."""
    t = Tensor(A)
    total = Tensor.of(Op.CONTIGUOUS, t.sum().reshape(1, 1))
    return (t * total).sum(1).uop


def test_results_stay_on_the_device_and_go_on(device: Watched) -> None:
    double = loaded(UOp(Op.ADD, A, A), device)
    once = double.run_kept({0: X})
    assert isinstance(once, DeviceArray)
    twice = double.run_kept({0: once})
    assert isinstance(twice, DeviceArray)
    assert "read" not in device.seen
    np.testing.assert_array_equal(once.numpy(), 2 * X)
    np.testing.assert_array_equal(twice.numpy(), 4 * X)
    assert (twice.dtype, twice.shape) == (X.dtype, X.shape)


def test_kernels_follow_each_other_without_a_wait(device: Watched) -> None:
    with loaded(chain(), device) as program:
        assert np.asarray(program.run({0: X})).tolist() == [126, 315]
    assert device.seen.count("launch") >= 2
    assert device.seen.index("read") > device.seen.index("launch", device.seen.index("launch") + 1)
    assert device.seen.count("read") == 1


def test_a_second_run_builds_and_allocates_nothing(device: Watched) -> None:
    program = loaded(chain(), device)
    program.run({0: X})
    del device.seen[:]
    assert np.asarray(program.run({0: X + 1})).tolist() == [243, 486]
    assert not {"build", "allocate", "free"} & set(device.seen)


def test_the_memory_of_a_forgotten_result_is_used_again(device: Watched) -> None:
    program = loaded(UOp(Op.NEG, A), device)
    first = program.run_kept({0: X})
    del first
    gc.collect()
    before = device.seen.count("allocate")
    second = program.run_kept({0: X})
    assert device.seen.count("allocate") == before
    third = program.run_kept({0: X + 1})
    assert isinstance(second, DeviceArray)
    assert isinstance(third, DeviceArray)
    np.testing.assert_array_equal(second.numpy(), -X)
    np.testing.assert_array_equal(third.numpy(), -X - 1)


def test_results_outlive_the_program(device: Watched) -> None:
    with loaded(UOp(Op.NEG, A), device) as program:
        kept = program.run_kept({0: X})
    assert isinstance(kept, DeviceArray)
    np.testing.assert_array_equal(kept.numpy(), -X)
    kept.close()
    assert device.seen.count("free") == device.seen.count("allocate")
    with pytest.raises(UnsupportedError, match="a closed array"):
        kept.numpy()
    with pytest.raises(UnsupportedError, match="closed"):
        program.run({0: X})


def test_a_program_stores_to_an_array_in_place(device: Watched) -> None:
    counter = UOp(Op.BUFFER, dims((2, 3)), arg=BufferArg(0, dtypes.int32))
    step = UOp(
        Op.SINK, UOp(Op.STORE, counter, UOp(Op.ADD, counter, param(1, (2, 3), dtypes.int32)))
    )
    program = loaded(step, device)
    state = from_array(np.zeros_like(X), device)
    for _ in range(3):
        result = program.run_kept({0: state, 1: X})
        assert isinstance(result, dict)
        assert result[0] is state
    np.testing.assert_array_equal(state.numpy(), 3 * X)
    data = np.zeros_like(X)
    program.run({0: data, 1: X})
    assert not data.any()
    with pytest.raises(UnsupportedError, match="array of two slots"):
        program.run({0: state, 1: state})


def test_sizes_are_arguments_of_a_run(device: Watched) -> None:
    n = variable(0, 1, 64)
    program = loaded(UOp(Op.NEG, param(1, (n, 2), dtypes.int32)), device)
    for rows in (2, 5, 3):
        data = np.arange(2 * rows, dtype=np.int32).reshape(rows, 2)
        kept = program.run_kept({0: np.array(rows), 1: from_array(data, device)})
        assert isinstance(kept, DeviceArray)
        np.testing.assert_array_equal(kept.numpy(), -data)
    assert device.seen.count("build") <= 1
    with pytest.raises(InvalidError, match=r"INPUT\.c4"):
        program.run({0: np.array(3), 1: from_array(X, device)})


def test_arrays_that_a_program_cannot_use(device: Watched) -> None:
    program = loaded(UOp(Op.NEG, A), device)
    for wrong in (X.astype(np.int64), X[:1]):
        with pytest.raises(InvalidError, match=r"INPUT\.c4"):
            program.run({0: from_array(wrong, device)})
    with pytest.raises(UnsupportedError, match="slot 0: an array on"):
        program.run({0: from_array(X, Watched(device.device))})
    closed = from_array(X, device)
    closed.close()
    with pytest.raises(UnsupportedError, match="a closed array"):
        program.run({0: closed})
    np.testing.assert_array_equal(np.asarray(program.run({0: X})), -X)


def test_dlpack_shares_memory(device: Watched) -> None:
    program = loaded(UOp(Op.NEG, A), device)
    kept = program.run_kept({0: X})
    assert isinstance(kept, DeviceArray)
    one, two = np.from_dlpack(kept), np.from_dlpack(kept)
    assert np.shares_memory(one, two)
    assert not one.flags.writeable
    kept.close()
    del kept
    program.run_kept({0: X + 7})
    np.testing.assert_array_equal(one, -X)
    assert not hasattr(from_array(X, device), "__cuda_array_interface__")


def aligned(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy at an address that devices use in place."""
    memory = np.empty(data.nbytes + 128, np.uint8)
    first = -memory.ctypes.data % 128
    copy = memory[first : first + data.nbytes].view(data.dtype).reshape(data.shape)
    copy[...] = data
    return copy


def test_memory_of_other_libraries_is_used_in_place(device: Watched) -> None:
    data = aligned(X)
    counter = UOp(Op.BUFFER, dims((2, 3)), arg=BufferArg(0, dtypes.int32))
    program = loaded(UOp(Op.SINK, UOp(Op.STORE, counter, UOp(Op.ADD, counter, counter))), device)
    shared = from_dlpack(data, device)
    program.run_kept({0: shared})
    np.testing.assert_array_equal(shared.numpy(), 2 * X)
    np.testing.assert_array_equal(data, 2 * X)
    data.flags.writeable = False
    with pytest.raises(UnsupportedError, match="memory for reading"):
        program.run_kept({0: from_dlpack(data, device)})
    transposed = from_dlpack(X.T, device)
    np.testing.assert_array_equal(transposed.numpy(), X.T)
    with pytest.raises(UnsupportedError, match="complex64"):
        from_dlpack(np.zeros(2, np.complex64), device)
    with pytest.raises(UnsupportedError, match="by DLPack"):
        from_dlpack([1, 2], device)


def test_memory_that_is_lacking_costs_no_other(opencl: OpenCLDevice) -> None:
    program = compile(UOp(Op.NEG, A)).load(opencl)
    kept = program.run_kept({0: X})
    with pytest.raises(OutOfMemoryError, match=r"4,611,686,018,427,387,904 bytes"):
        opencl.allocate(1 << 62)
    assert isinstance(kept, DeviceArray)
    np.testing.assert_array_equal(kept.numpy(), -X)
    assert issubclass(OutOfMemoryError, LaunchError)


def test_a_failed_launch_leaves_the_program_usable(device: Watched) -> None:
    program = loaded(UOp(Op.NEG, A), device)
    given = from_array(X, device)
    refused = Launch("absent", (0,), (1,), (1,))
    built = device.build(program.source)
    with pytest.raises((BackendError, AttributeError)):
        device.launch(built, refused, [given.memory])
    np.testing.assert_array_equal(np.asarray(program.run({0: given})), -X)
