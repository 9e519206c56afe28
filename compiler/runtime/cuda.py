"""The CUDA runtime: compiles kernels with NVRTC, and loads and launches them with cupy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, cast

import numpy as np

from uop.compiler.runtime.device import (
    ALIGNMENT,
    Built,
    Compiler,
    Contents,
    Device,
    Launch,
    Runs,
    as_bytes,
    check_group,
    require,
)
from uop.spec.errors import (
    BackendError,
    DeviceLacksError,
    DeviceLostError,
    LaunchError,
    OutOfMemoryError,
    UnsupportedError,
)

OPTIONS = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
"""The options of NVRTC: IEEE arithmetic, one rounding per operation."""
ARCHITECTURE = "compute_80"
NVRTC_MODULE = "cupy_backends.cuda.libs.nvrtc"
CUPY_KINDS = "?biuf"
"""The kinds of dtypes that cupy has; it lacks the small floats of other packages."""
NEEDED = {"e4m3": 89, "e5m2": 89}
"""The compute capability, times ten, that matrices of a kind need if it is above that of the
others.
"""
MOST_ITEMS = 1024
"""The most work items of a group on any CUDA device."""
MOST_ALONG = (1024, 1024, 64)
"""The most work items of a group along each axis."""
MOST_GROUPS = (2**31 - 1, 65535, 65535)
"""The most groups of a launch along each axis."""


def nvrtc_compile(source: str, architecture: str = ARCHITECTURE) -> bytes:
    """Compile a source to PTX, or to machine code for an architecture such as sm_90; needs no GPU.

    BackendError with the compiler's log if it fails, UnsupportedError for an instruction that the
    architecture lacks. cupy.RawModule is not used, because it puts -ftz=true after our options:
    NVRTC obeys the last one, and float32 subnormals become zeros.
    """
    nvrtc = require(NVRTC_MODULE, "cuda")
    found = int(architecture.partition("_")[2].rstrip("af"))
    for kind, needed in NEEDED.items():
        if f".{kind}." in source and found < needed:
            what = f"matrices of {kind} need compute capability {needed / 10}"
            raise DeviceLacksError(f"{what}, found {found / 10}")
    program = nvrtc.createProgram(source, "uop.cu", [], [])
    try:
        nvrtc.compileProgram(program, [f"-arch={architecture}", *OPTIONS])
        is_real = architecture.startswith("sm_")
        image: bytes = nvrtc.getCUBIN(program) if is_real else nvrtc.getPTX(program)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise BackendError(f"NVRTC refuses the source: {error}\n{log}") from error
    finally:
        nvrtc.destroyProgram(program)
    return image


def open_cuda() -> CUDADevice:
    """Open the current CUDA device; UnsupportedError if there is none."""
    nvrtc, cupy = require(NVRTC_MODULE, "cuda"), require("cupy", "cuda")
    try:
        device = cupy.cuda.Device()
        properties = cupy.cuda.runtime.getDeviceProperties(device.id)
        version = cupy.cuda.runtime.driverGetVersion()
        architecture = architecture_for(device.compute_capability, nvrtc.getSupportedArchs())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise UnsupportedError(f"no CUDA device: {error}") from error
    compiler = ".".join(map(str, nvrtc.getVersion()))
    about = f"CUDA {version // 1000}.{version % 1000 // 10}, NVRTC {compiler}, {architecture}"
    return CUDADevice(properties["name"].decode(), about, architecture, cupy, device.id)


def architecture_for(capability: str, known: Sequence[int]) -> str:
    """Choose the output of NVRTC: machine code if it knows the device, else PTX.

    A driver that is older than NVRTC runs its machine code, but refuses its PTX. UnsupportedError
    for a device that is older than all that NVRTC knows.
    """
    wanted = int(capability)
    if wanted in known:
        return f"sm_{wanted}"
    older = [number for number in known if number < wanted]
    if not older:
        raise UnsupportedError(f"NVRTC no longer compiles for compute capability {wanted / 10}")
    return f"compute_{max(older)}"


@dataclass(frozen=True, slots=True, eq=False)
class BuiltCUDA:
    """A loaded CUDA module, which each device loads when it first runs a kernel of it."""

    code: bytes
    cupy: Any
    modules: dict[int, Any] = field(default_factory=dict)
    """The modules by the number of the device."""

    def kernel(self, name: str) -> Any:
        return self.module().get_function(name)

    def module(self) -> Any:
        """The module for the current device."""
        number = self.cupy.cuda.Device().id
        if number not in self.modules:
            module = self.cupy.cuda.function.Module()
            module.load(self.code)
            self.modules[number] = module
        return self.modules[number]


@dataclass(frozen=True, slots=True)
class NVRTC:
    """The compiler for an architecture, which needs no GPU. PTX runs on later GPUs too."""

    machine: str = ARCHITECTURE

    def compile(self, source: str) -> bytes:
        return nvrtc_compile(source, self.machine)


def open_compiler() -> Compiler:
    """The current CUDA device; without one, the compiler alone."""
    try:
        return open_cuda()
    except UnsupportedError:
        require(NVRTC_MODULE, "cuda")
        return NVRTC()


@dataclass(frozen=True, slots=True, eq=False)
class CUDADevice(Runs):
    """The current CUDA device with its default stream, or one of several devices with a stream
    each.
    """

    name: str
    version: str
    architecture: str
    cupy: Any
    number: int
    stream: Any = None

    @property
    def machine(self) -> str:
        return self.architecture

    def runs(self, machine: str) -> bool:
        """Whether the code is for its architecture, or PTX for an older one."""
        kind, _, number = machine.partition("_")
        is_older = number.isdecimal() and int(number) <= int(self.architecture.partition("_")[2])
        return machine == self.architecture or (kind == "compute" and is_older)

    def compile(self, source: str) -> bytes:
        return nvrtc_compile(source, self.architecture)

    def load(self, code: bytes) -> BuiltCUDA:
        built = BuiltCUDA(code, self.cupy)
        try:
            with self._current():
                built.module()
        except self._errors as error:
            self._check_alive(error)
            raise BackendError(f"{self.name} refuses the module: {error}") from error
        return built

    def allocate(self, size: int) -> Any:
        with self._reported():
            # As bytes, because cupy has no dtypes for small floats; empty memory has no address.
            return self.cupy.empty(max(size, 1), np.uint8)

    def write(self, memory: Any, contents: Contents) -> None:
        if contents.nbytes:
            with self._reported():
                memory[: contents.nbytes].set(as_bytes(contents))

    def read(self, memory: Any, size: int) -> Contents:
        with self._reported():
            return cast(Contents, self.cupy.asnumpy(memory[:size]))

    def copy(self, source: Any, to: Any, size: int, source_at: int = 0, to_at: int = 0) -> None:
        if size:
            with self._reported():
                to[to_at:].data.copy_from_device_async(source[source_at:].data, size)

    def launch(self, built: Built, launch: Launch, held: Sequence[Any]) -> None:
        if not all(launch.groups):
            return
        self._check_sizes(launch)
        arguments = [*(held[i] for i in launch.buffers), *map(np.int64, launch.integers)]
        with self._reported():
            built.kernel(launch.kernel)(launch.groups, launch.local_size, tuple(arguments))

    def wait_for(self, other: Device) -> None:
        peer = cast(CUDADevice, other)
        with peer._reported():
            event = peer.stream.record()
        with self._reported():
            self.stream.wait_event(event)

    def finish(self) -> None:
        with self._reported():
            self.cupy.cuda.runtime.deviceSynchronize()

    def peers(self, count: int) -> Sequence[CUDADevice]:
        """So many devices of this architecture, starting with this one, each with a stream. If
        there are fewer, several streams share a device.
        """
        cuda = self.cupy.cuda
        there = range(cuda.runtime.getDeviceCount())
        own = cuda.Device(self.number).compute_capability
        equal = [n for n in there if cuda.Device(n).compute_capability == own]
        first, found = equal.index(self.number), []
        for k in range(count):
            number = equal[(first + k) % len(equal)]
            with cuda.Device(number):
                stream = cuda.Stream(non_blocking=True)
            name = f"{self.name}, stream {k + 1} of {count} on device {number}"
            found.append(replace(self, name=name, number=number, stream=stream))
        return found

    def free(self, memory: Any) -> None:
        """Do nothing: cupy frees memory in the order of its stream, when nothing refers to it."""

    def lend(self, memory: Any, dtype: np.dtype[Any], shape: Sequence[int]) -> Any:
        """The memory as an array of cupy."""
        if dtype.kind not in CUPY_KINDS:
            raise UnsupportedError(f"cupy has no {dtype}: numpy() copies it")
        return memory[: prod(shape) * dtype.itemsize].view(dtype).reshape(tuple(shape))

    def borrow(self, array: Any) -> Any:
        is_aligned = array.data.ptr % ALIGNMENT == 0
        return array.reshape(-1).view(np.uint8) if array.nbytes and is_aligned else None

    def imported(self, data: Any) -> Any:
        return self.cupy.from_dlpack(data)

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Make the device and its stream those that cupy uses."""
        if self.stream is None:
            yield
        else:
            with self.cupy.cuda.Device(self.number), self.stream:
                yield

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """DeviceLostError where this process cannot use the device any more, else LaunchError."""
        try:
            with self._current():
                yield
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            self._check_alive(error)
            raise OutOfMemoryError(f"{self.name}: {error}") from error
        except self._errors as error:
            self._check_alive(error)
            raise LaunchError(f"{self.name}: {error}") from error

    def _check_sizes(self, launch: Launch) -> None:
        """UnsupportedError for a launch that is too large for a CUDA device."""
        check_group(launch, MOST_ITEMS, self.name)
        for what, sizes, most in (
            ("work items of a group", launch.local_size, MOST_ALONG),
            ("groups", launch.groups, MOST_GROUPS),
        ):
            if any(size > limit for size, limit in zip(sizes, most, strict=False)):
                raise DeviceLacksError(f"{what} {sizes}: {self.name} takes at most {most}")

    def _check_alive(self, error: Exception) -> None:
        """DeviceLostError after an error that lasts: an access to a wrong address ends the context,
        and every later call of the process fails.
        """
        try:
            self.cupy.cuda.runtime.deviceSynchronize()
        except self._errors:
            raise DeviceLostError(f"{self.name} is lost to this process: {error}") from error

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        cuda = self.cupy.cuda
        return (
            cuda.runtime.CUDARuntimeError,
            cuda.driver.CUDADriverError,
            cuda.memory.OutOfMemoryError,
        )
