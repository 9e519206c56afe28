"""A stand-in for cupy where there is no GPU: its modules as far as this project calls them.

Kernels run on the CPU, built by g++ as for `cuda-host`. Arguments, sizes and errors are checked as
cupy and CUDA do; an error that stays is one of `LOST`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uop.compiler.runtime.cuda_host import BuiltCUDAHost, open_cuda_host
from uop.compiler.runtime.device import Launch
from uop.spec.errors import BackendError

__version__ = "14.2.0"
CAPABILITY = 90
MOST = ((2**31 - 1, 65535, 65535), (1024, 1024, 64))
MEMORY = 1 << 32
ELF = b"\x7fELF"
WRONG_ADDRESS = "wrong_address"
"""A kernel of this name accesses a wrong address: every later call fails."""
LOST: list[str] = []
DEVICES = 2
CURRENT = [0]
"""The current device, behind those that were it before."""
COMPILED: list[tuple[str, ...]] = []
"""The options of each compilation."""


class CUDARuntimeError(RuntimeError):
    """As of cupy.cuda.runtime."""


class CUDADriverError(RuntimeError):
    """As of cupy.cuda.driver."""


class OutOfMemoryError(MemoryError):
    """As of cupy.cuda.memory."""


class NVRTCError(RuntimeError):
    """As of cupy.cuda.nvrtc."""


def check() -> None:
    """Report an error of an earlier launch, as every synchronizing call does."""
    if LOST:
        raise CUDARuntimeError(LOST[0])


class DeviceArray:
    """Memory of the device: nothing but asnumpy and kernels can read it."""

    def __init__(self, memory: NDArray[Any]) -> None:
        self.memory = memory
        self.nbytes = memory.nbytes
        self.data = self

    def __getitem__(self, part: slice) -> DeviceArray:
        return DeviceArray(self.memory[part])

    def set(self, host: NDArray[Any]) -> None:
        check()
        assert (host.dtype, host.shape) == (self.memory.dtype, self.memory.shape)
        self.memory[...] = host

    def copy_from_device_async(self, source: DeviceArray, size: int) -> None:
        self.memory.view(np.uint8)[:size] = source.memory.view(np.uint8)[:size]


def asarray(a: NDArray[Any]) -> DeviceArray:
    if a.dtype.kind not in "?biufc":
        raise ValueError(f"Unsupported dtype {a.dtype}")
    new = empty(a.shape, a.dtype)
    new.set(a)
    return new


def empty(shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
    check()
    memory = np.empty(shape, dtype)
    if memory.nbytes > MEMORY:
        raise OutOfMemoryError(f"Out of memory allocating {memory.nbytes:,} bytes")
    return DeviceArray(memory)


def asnumpy(a: DeviceArray) -> NDArray[Any]:
    check()
    return np.array(a.memory)


class Program:
    """A program of NVRTC."""

    def __init__(self, source: str) -> None:
        self.source, self.log = source, ""


def create_program(src: str, name: str, headers: Sequence[str], includes: Sequence[str]) -> Program:
    return Program(src)


def compile_program(program: Program, options: Sequence[str]) -> None:
    COMPILED.append(tuple(options))
    try:
        built(program.source)
    except BackendError as error:
        program.log = str(error)
        raise NVRTCError("NVRTC_ERROR_COMPILATION (6)") from error


@cache
def built(source: str) -> BuiltCUDAHost:
    return open_cuda_host().build(source)


def image(program: Program) -> bytes:
    """What is loaded begins as machine code does; behind that it is the source."""
    return ELF + program.source.encode()


class Module:
    """A loaded module."""

    def load(self, cubin: bytes) -> None:
        check()
        self.source = cubin.removeprefix(ELF).decode()

    def get_function(self, name: str) -> Function:
        library = built(self.source)
        try:
            library.kernel(name)
        except AttributeError as error:
            raise CUDADriverError("CUDA_ERROR_NOT_FOUND: named symbol not found") from error
        return Function(library, name)


class Function:
    """A kernel, ready to launch."""

    def __init__(self, library: BuiltCUDAHost, name: str) -> None:
        self.library, self.name = library, name

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Iterable[Any]) -> None:
        check()
        buffers, integers = [], []
        for arg in args:
            # By its size cupy passes a scalar of numpy, and a plain int as one of 64 bits.
            match arg:
                case DeviceArray():
                    assert not integers
                    buffers.append(arg.memory)
                case np.int64():
                    integers.append(int(arg))
                case _:
                    raise TypeError(f"Unsupported type {type(arg)}")
        for sizes, most in zip((grid, block), MOST, strict=True):
            assert isinstance(sizes, tuple)
            if any(not 0 < n <= m for n, m in zip((*sizes, 1, 1)[:3], most, strict=True)):
                raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
        if np.prod(block) > 1024:
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
        if self.name == WRONG_ADDRESS:
            LOST.append("cudaErrorIllegalAddress: an illegal memory access was encountered")
            return
        numbers = tuple(range(len(buffers)))
        self.library.launch(Launch(self.name, numbers, grid, block, tuple(integers)), buffers)


nvrtc = SimpleNamespace(
    NVRTCError=NVRTCError,
    createProgram=create_program,
    compileProgram=compile_program,
    getCUBIN=image,
    getPTX=image,
    getProgramLog=lambda program: program.log,
    destroyProgram=lambda program: None,
    getSupportedArchs=lambda: (75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121),
    getVersion=lambda: (13, 0),
)


class Device:
    """A device, which is the current one inside a `with`."""

    compute_capability = str(CAPABILITY)

    def __init__(self, number: int | None = None) -> None:
        self.id = CURRENT[-1] if number is None else number

    def __enter__(self) -> Device:
        CURRENT.append(self.id)
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.pop()


class Stream:
    """A stream of the device on which it is made; what is put on it has ended."""

    def __init__(self, non_blocking: bool) -> None:
        self.device = CURRENT[-1]

    def __enter__(self) -> Stream:
        assert self.device == CURRENT[-1]
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def record(self) -> object:
        assert self.device == CURRENT[-1]
        return object()

    def wait_event(self, event: object) -> None:
        check()


cuda = SimpleNamespace(
    Device=Device,
    Stream=Stream,
    function=SimpleNamespace(Module=Module),
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    driver=SimpleNamespace(CUDADriverError=CUDADriverError),
    runtime=SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: DEVICES,
        deviceSynchronize=check,
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13000,
        getDeviceProperties=lambda device: {"name": b"Stand-in"},
    ),
)
MODULES = {
    "cupy": SimpleNamespace(
        asarray=asarray, asnumpy=asnumpy, cuda=cuda, empty=empty, __version__=__version__
    ),
    "cupy_backends.cuda.libs.nvrtc": nvrtc,
}
