"""The CUDA runtime: on a GPU where there is one, else on a stand-in for cupy over the CPU."""

from __future__ import annotations

import shutil

import cupy_stand_in
import numpy as np
import pytest
from kernels import REVERSE

from uop.compiler.bundle import Job, run_many
from uop.compiler.pipeline import compile
from uop.compiler.runtime import cuda
from uop.compiler.runtime.cuda import CUDADevice, architecture_for, nvrtc_compile, open_cuda
from uop.compiler.runtime.device import Contents, Launch
from uop.conformance.backends.compiled import CUDABackend
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status
from uop.conformance.suite.case import Case, CaseId
from uop.conformance.suite.generate import cases
from uop.conformance.workers.transport import Local
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import BackendError, DeviceLostError, LaunchError, UnsupportedError
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

pytestmark = pytest.mark.cuda

STRIDE = 30
"""Of so many cases of a smoke run one is judged."""

WRONG_ADDRESS = f"""
extern "C" __global__ void {cupy_stand_in.WRONG_ADDRESS}(int* b0) {{ *(int*)8 = b0[0]; }}
"""


def stand_in(patch: pytest.MonkeyPatch) -> CUDADevice:
    """The device of the stand-in, as it is opened; skips where there is no C++ compiler."""
    if shutil.which("g++") is None:
        pytest.skip("no GPU, and no C++ compiler g++ for a stand-in")
    patch.setattr(cuda, "require", lambda module, extra: cupy_stand_in.MODULES[module])
    patch.setattr(cupy_stand_in, "LOST", [])
    return open_cuda()


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> CUDADevice:
    return stand_in(monkeypatch)


@pytest.fixture(scope="module")
def gpu() -> CUDADevice | None:
    try:
        return open_cuda()
    except UnsupportedError:
        return None


@pytest.fixture
def device(gpu: CUDADevice | None, monkeypatch: pytest.MonkeyPatch) -> CUDADevice:
    return gpu or stand_in(monkeypatch)


def launched(device: CUDADevice, source: str, launch: Launch, *buffers: Contents) -> Contents:
    return device.run(device.build(source), [launch], buffers)[0]


@pytest.mark.parametrize("n", [2, 3])
def test_several_devices_have_a_stream_each(on_the_cpu: CUDADevice, n: int) -> None:
    """The stand-in has two devices: a third stream shares the first one."""
    peers = on_the_cpu.peers(n)
    assert [peer.number for peer in peers] == [k % cupy_stand_in.DEVICES for k in range(n)]
    assert len({id(peer.stream) for peer in peers}) == n
    x = np.arange(4 * n, dtype=np.int32)
    t = param(0, (2 * n, 2), dtypes.int32, tuple(f"D{k}" for k in range(n)))
    summed = UOp(Op.REDUCE, UOp(Op.MUL, t, t), arg=ReduceArg(Op.ADD, (0,)))
    compiled = compile(UOp(Op.ADD, t, summed), "cuda")
    expected = x.reshape(-1, 2) + (x * x).reshape(-1, 2).sum(0)
    np.testing.assert_array_equal(compiled.run({0: x.reshape(-1, 2)}, on_the_cpu), expected)


def test_the_device_says_what_it_is(on_the_cpu: CUDADevice) -> None:
    assert on_the_cpu.name == "Stand-in"
    assert on_the_cpu.version == "CUDA 13.0, NVRTC 13.0, sm_90"


def test_buffers_integers_and_groups(device: CUDADevice) -> None:
    given = np.arange(6, dtype=np.int32)
    launch = Launch("reverse", (0, 1), (2,), (3,), (100,))
    found = launched(device, REVERSE, launch, np.zeros(6, np.int32), given)
    assert found.tolist() == [102, 101, 100, 105, 104, 103]
    assert given.tolist() == [0, 1, 2, 3, 4, 5]


def test_memory_of_every_dtype_comes_back_as_it_was(device: CUDADevice) -> None:
    kept = [
        np.arange(6).reshape(2, 3).astype(np_dtype(dtype))
        for dtype in (dtypes.bool, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.float64)
    ]
    kept += [np.zeros((0, 3), np.float32), np.array(7, np.int64)]
    nothing = Launch("reverse", (0, 0), (0,), (3,), (1,))
    found = device.run(device.build(REVERSE), [nothing], kept)
    for before, after in zip(kept, found, strict=True):
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
        assert after.tobytes() == before.tobytes()


def test_subnormals_are_kept(device: CUDADevice) -> None:
    x, y = (param(slot, (2,), dtypes.float32) for slot in range(2))
    program = compile(UOp(Op.MUL, x, y), "cuda")
    inputs = {0: np.float32([2.0**-100, 2.0**-140]), 1: np.float32([2.0**-30, 0.5])}
    (outcome,) = run_many([Job(program, [inputs])], device=device)
    assert isinstance(outcome, list)
    assert np.asarray(outcome[0]).tolist() == [2.0**-130, 2.0**-141]


def test_nvrtc_gets_our_options_last(on_the_cpu: CUDADevice) -> None:
    """Of two values of an option NVRTC takes the last."""
    on_the_cpu.build(REVERSE)
    first, *options = cupy_stand_in.COMPILED[-1]
    assert first == "-arch=sm_90"
    assert tuple(options) == cuda.OPTIONS


def test_a_sample_of_the_suite(device: CUDADevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CUDABackend, "opened", lambda backend: device)
    found = [c for c in cases(effort="smoke") if isinstance(c, Case) and not c.is_exhaustive]
    verdicts = Judge(Local(CUDABackend()), STRICT).judge(found[::STRIDE])
    assert {CaseId.parse(verdict.id).level for verdict in verdicts} >= {"op", "graph", "kernel"}
    assert not [v.failure for v in verdicts if v.failure]
    assert sum(verdict.status is Status.PASSED for verdict in verdicts) > len(verdicts) / 2


def test_a_refused_source_comes_with_its_log(device: CUDADevice) -> None:
    with pytest.raises(BackendError, match="nonsense"):
        device.build('extern "C" __global__ void k(int* b0) { nonsense(b0); }')


def test_a_kernel_that_is_not_there(device: CUDADevice) -> None:
    with pytest.raises(LaunchError, match="NOT_FOUND"):
        launched(device, REVERSE, Launch("absent", (0,), (1,), (1,)), np.zeros(3, np.int32))


@pytest.mark.parametrize(
    ("groups", "items"),
    [
        ((1,), (1025,)),
        ((1, 1, 1), (1, 1, 65)),
        ((1, 1), (64, 32)),
        ((2**31,), (3,)),
        ((1, 65536), (3, 1)),
        ((1, 1, 65536), (3, 1, 1)),
    ],
)
def test_a_launch_that_no_device_takes(
    device: CUDADevice, groups: tuple[int, ...], items: tuple[int, ...]
) -> None:
    launch = Launch("reverse", (0, 0), groups, items, (1,))
    with pytest.raises(UnsupportedError, match="takes at most"):
        launched(device, REVERSE, launch, np.zeros(3, np.int32))


def test_a_wrong_address_ends_the_use_of_the_device(on_the_cpu: CUDADevice) -> None:
    """It must reach the process: no other program can run in it, and none is to blame."""
    built = on_the_cpu.build(WRONG_ADDRESS)
    launch = Launch(cupy_stand_in.WRONG_ADDRESS, (0,), (1,), (1,))
    for _ in range(2):
        with pytest.raises(DeviceLostError, match="lost to this process: cudaErrorIllegalAddress"):
            on_the_cpu.run(built, [launch], [np.zeros(1, np.int32)])
    x = param(0, (2,), dtypes.int32)
    job = Job(compile(UOp(Op.NEG, x), "cuda"), [{0: np.array([1, 2], np.int32)}])
    with pytest.raises(DeviceLostError):
        run_many([job, job], device=on_the_cpu)


def test_memory_that_the_device_lacks(
    on_the_cpu: CUDADevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cupy_stand_in, "MEMORY", 4)
    with pytest.raises(LaunchError, match="Out of memory"):
        on_the_cpu.run(on_the_cpu.build(REVERSE), [], [np.zeros(3, np.int32)])


@pytest.mark.parametrize(
    ("capability", "chosen"),
    [("90", "sm_90"), ("75", "sm_75"), ("95", "compute_90"), ("130", "compute_120")],
)
def test_machine_code_where_nvrtc_knows_the_device(capability: str, chosen: str) -> None:
    assert architecture_for(capability, (75, 80, 90, 120)) == chosen


def test_a_device_that_nvrtc_has_dropped() -> None:
    with pytest.raises(UnsupportedError, match=r"compute capability 7\.0"):
        architecture_for("70", (75, 80, 90))


def test_nvrtc_gives_machine_code() -> None:
    try:
        image = nvrtc_compile(REVERSE, "sm_90")
    except UnsupportedError as error:
        pytest.skip(str(error))
    assert image.startswith(b"\x7fELF")
