"""Runs CUDA sources on the CPU: a C++ compiler builds them with a small header."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, cast

import numpy as np

from uop.compiler.runtime.device import (
    ALIGNMENT,
    Around,
    Built,
    Contents,
    Device,
    Launch,
    Memory,
    Runs,
    as_bytes,
)
from uop.spec.errors import BackendError, LaunchError, UnsupportedError


def open_cuda_host() -> CUDAHostDevice:
    """Find a C++ compiler: the one in CXX, else g++; UnsupportedError if there is none."""
    wanted = os.environ.get(COMPILER_VARIABLE, "g++")
    compiler = shutil.which(wanted)
    if compiler is None:
        raise UnsupportedError(
            f"no C++ compiler {wanted!r}; install g++ (Debian, Ubuntu: apt install g++), "
            f"or name one in {COMPILER_VARIABLE}"
        )
    said = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    return CUDAHostDevice("CPU", said.decode(errors="replace").partition("\n")[0], compiler)


@dataclass(frozen=True, slots=True, eq=False)
class BuiltCUDAHost:
    """A loaded library, with a launcher for each kernel."""

    library: ctypes.CDLL

    def kernel(self, name: str) -> ctypes._NamedFuncPointer:
        return self.library[f"launch_{name}"]

    def launch(self, launch: Launch, held: Sequence[Contents]) -> None:
        """Run one launch in the memory of the buffers. LaunchError for a divergent barrier."""
        pointers = [ctypes.c_void_p(held[i].ctypes.data) for i in launch.buffers]
        values = [*pointers, *map(ctypes.c_int64, launch.integers)]
        arguments = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        size = (ctypes.c_uint * 6)(*_three(launch.groups), *_three(launch.local_size))
        if self.kernel(launch.kernel)(arguments, size) != 0:
            raise LaunchError(f"kernel {launch.kernel}: divergent barrier")


@dataclass(frozen=True, slots=True, eq=False)
class CUDAHostDevice(Runs):
    """The CPU as a CUDA device: work items run one after the other, or take turns at barriers."""

    name: str
    version: str
    compiler: str

    @property
    def machine(self) -> str:
        return f"{platform.machine()}, {self.version}"

    def compile(self, source: str) -> bytes:
        """Compile a source to a shared library."""
        with TemporaryDirectory(prefix="uop-") as folder:
            written, library = Path(folder, "kernels.cpp"), Path(folder, "kernels.so")
            written.write_text(source_for_the_host(source), "utf-8")
            built = subprocess.run(
                [self.compiler, *OPTIONS, "-o", str(library), str(written)],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
            if built.returncode != 0:
                raise BackendError(f"{self.version} refuses the source:\n{built.stderr}")
            return library.read_bytes()

    def load(self, code: bytes) -> BuiltCUDAHost:
        with TemporaryDirectory(prefix="uop-") as folder:
            library = Path(folder, "kernels.so")
            library.write_bytes(code)
            try:
                return BuiltCUDAHost(ctypes.CDLL(str(library)))
            except OSError as error:
                raise BackendError(f"{self.name} refuses the library: {error}") from error

    def allocate(self, size: int) -> Contents:
        return np.empty(max(size, 1), np.uint8)

    def write(self, memory: Contents, contents: Contents) -> None:
        memory[: contents.nbytes] = as_bytes(contents)

    def read(self, memory: Contents, size: int) -> Contents:
        return memory[:size].copy()

    def copy(
        self, source: Contents, to: Contents, size: int, source_at: int = 0, to_at: int = 0
    ) -> None:
        to[to_at : to_at + size] = source[source_at : source_at + size]

    def launch(self, built: Built, launch: Launch, held: Sequence[Contents]) -> None:
        if all(launch.groups):
            cast(BuiltCUDAHost, built).launch(launch, held)

    def wait_for(self, other: Device) -> None:
        """Do nothing: every launch has ended."""

    def finish(self) -> None:
        """Do nothing: a launch has ended when it returns."""

    def peers(self, count: int) -> Sequence[Device]:
        """Queues that run as late as the rules allow."""
        return [Queued(cast(Device, self), k + 1, count) for k in range(count)]

    def free(self, memory: Contents) -> None:
        """Do nothing: memory is freed when nothing refers to it."""

    def lend(self, memory: Contents, dtype: np.dtype[Any], shape: Sequence[int]) -> Contents:
        array = memory[: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
        array.flags.writeable = False
        return array

    def borrow(self, array: Contents) -> Contents | None:
        is_aligned = array.ctypes.data % ALIGNMENT == 0
        return as_bytes(array) if array.nbytes and is_aligned else None


HOST = CUDAHostDevice("CPU", "without a compiler", "")
"""Memory of the host, for programs without kernels."""


def source_for_the_host(source: str) -> str:
    """A CUDA source as C++: the header, the source, and a launcher for each kernel."""
    header = files("uop.compiler.runtime").joinpath("cuda_host.h").read_text("utf-8")
    has_barriers = str(any(waits in source for waits in WAITS)).lower()
    launchers = [
        f'extern "C" int launch_{name}(void** arguments, const unsigned* size) {{\n'
        f"  return uop_host::launch({name}, arguments, size, {has_barriers});\n}}\n"
        for name in KERNEL.findall(source)
    ]
    return "\n".join([header, source, *launchers])


def _three(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return (*sizes, 1, 1, 1)[:3]


@dataclass(frozen=True, slots=True, eq=False)
class Queued(Around):
    """A device with a queue, which runs when its memory is read or written, or when another queue
    waits for it. LaunchError is raised there.
    """

    number: int
    count: int
    """The number of this queue, and the number of queues that share the device."""
    _waiting: deque[Callable[[], None]] = field(default_factory=deque, init=False, repr=False)

    @property
    def name(self) -> str:
        return f"{self.device.name}, queue {self.number} of {self.count}"

    def copy(
        self, source: Memory, to: Memory, size: int, source_at: int = 0, to_at: int = 0
    ) -> None:
        self._waiting.append(partial(self.device.copy, source, to, size, source_at, to_at))

    def launch(self, built: Built, launch: Launch, held: Sequence[Memory]) -> None:
        self._waiting.append(partial(self.device.launch, built, launch, held))

    def wait_for(self, other: Device) -> None:
        queue, marker = cast(Queued, other), Event()
        queue._waiting.append(marker.set)
        self._waiting.append(partial(queue._run_to, marker))

    def finish(self) -> None:
        while self._waiting:
            self._waiting.popleft()()

    def write(self, memory: Memory, contents: Contents) -> None:
        self.finish()
        self.device.write(memory, contents)

    def read(self, memory: Memory, size: int) -> Contents:
        self.finish()
        return self.device.read(memory, size)

    def lend(self, memory: Memory, dtype: np.dtype[Any], shape: Sequence[int]) -> Any:
        self.finish()
        return self.device.lend(memory, dtype, shape)

    def _run_to(self, marker: Event) -> None:
        while not marker.is_set():
            self._waiting.popleft()()


OPTIONS = ("-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-w",
           "-U_FORTIFY_SOURCE")  # fmt: skip
"""IEEE arithmetic, one rounding per operation. Signed overflow is undefined, as in CUDA.

Ubuntu's compiler fortifies the C library by default, and then a jump from one stack to another ends
the process: so that is off.
"""
COMPILER_VARIABLE = "CXX"
WAITS = ("__syncthreads()", "__syncwarp()", "mma.sync")
"""Where the work items of a group wait for each other."""
KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(')
