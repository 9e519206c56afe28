"""The interface of every runtime: build a source, and launch its kernels over buffers."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from uop.compiler.runtime.binary import Binary
from uop.spec.errors import DeviceLacksError, UnsupportedError

Contents = NDArray[Any]
Memory = Any
"""Memory of a device, an object of its library."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel: its arguments are buffers by number, then 64-bit integers."""

    kernel: str
    buffers: tuple[int, ...]
    groups: tuple[int, ...]
    """The number of workgroups along each axis."""
    local_size: tuple[int, ...]
    """The number of work items of a group along each axis."""
    integers: tuple[int, ...] = ()
    binary: Binary | None = None
    """The machine code of the kernel; None to build it from the source."""
    place: int = 0
    """The device, by its number in the program."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A copy of some bytes from a buffer to one on another device, by their numbers."""

    source: int
    to: int
    size: int
    source_at: int = 0
    """The first byte that is copied."""
    to_at: int = 0
    """The byte of the target that it is copied to."""


class Built(Protocol):
    """A source built for one device."""

    def kernel(self, name: str) -> Any:
        """The kernel of that name, ready to launch."""


ALIGNMENT = 16
"""Memory starts at a multiple of so many bytes; kernels may access vectors of this size."""


class Compiler(Protocol):
    """An object that compiles a source to machine code."""

    @property
    def machine(self) -> str:
        """The machine that its code is for: device and driver, or an architecture."""

    def compile(self, source: str) -> bytes:
        """Compile a source; BackendError with the compiler's log if it fails."""


class Device(Compiler, Protocol):
    """A device of a runtime."""

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def build(self, source: str) -> Built:
        """Compile a source for this device and load it; BackendError if it fails."""

    def runs(self, machine: str) -> bool:
        """Whether it runs code that was compiled for this machine."""

    def load(self, code: bytes) -> Built:
        """Load code that `compile` returned; BackendError if the driver refuses it."""

    def allocate(self, size: int) -> Memory:
        """Allocate memory for so many bytes, and at least one; OutOfMemoryError if there is too
        little.
        """

    def write(self, memory: Memory, contents: Contents) -> None:
        """Write contents to the start of some memory."""

    def read(self, memory: Memory, size: int) -> Contents:
        """Read the first bytes of some memory, after everything that was launched before."""

    def copy(
        self, source: Memory, to: Memory, size: int, source_at: int = 0, to_at: int = 0
    ) -> None:
        """Put a copy of some bytes on the queue of the device, from its own memory or a peer's."""

    def launch(self, built: Built, launch: Launch, held: Sequence[Memory]) -> None:
        """Put a launch over these buffers on the queue; LaunchError if it cannot run."""

    def wait_for(self, other: Device) -> None:
        """Let all later work on this queue wait for the work that is on the queue of a peer now."""

    def finish(self) -> None:
        """Wait until the queue is empty; LaunchError if a launch failed."""

    def peers(self, count: int) -> Sequence[Device]:
        """So many devices like this one, each with a queue: other devices, parts of this one, or
        queues that share it. A source that one of them built runs on all, and they copy from each
        other.
        """

    def free(self, memory: Memory) -> None:
        """Free memory, once everything that was launched before has ended."""

    def lend(self, memory: Memory, dtype: np.dtype[Any], shape: Sequence[int]) -> Any:
        """The same memory as a read-only array of another library, which keeps it alive.
        UnsupportedError if that library has no such array.
        """

    def borrow(self, array: Any) -> Memory | None:
        """The memory of an array, for use in place. None if it has to be copied, for example
        because it does not start at a multiple of ALIGNMENT.
        """

    def imported(self, data: Any) -> Any:
        """The array of a library for this device that shares the memory of a DLPack object."""

    def run(
        self, built: Built, launches: Sequence[Launch], buffers: Sequence[Contents]
    ) -> list[Contents]:
        """Upload the buffers, run the launches in order, return the final contents of each."""


class Runs:
    """What most devices do alike, by their other methods."""

    __slots__ = ()

    def build(self: Device, source: str) -> Built:
        return self.load(self.compile(source))

    def runs(self: Device, machine: str) -> bool:
        return machine == self.machine

    def imported(self, data: Any) -> Any:
        return np.from_dlpack(data)

    def run(
        self: Device, built: Built, launches: Sequence[Launch], buffers: Sequence[Contents]
    ) -> list[Contents]:
        return run_on([self] * max(len(buffers), 1), built, launches, buffers)


@dataclass(frozen=True, slots=True, eq=False)
class Around(Runs):
    """A device that passes all calls to another one, except those that a subclass overrides."""

    device: Device

    @property
    def name(self) -> str:
        return self.device.name

    @property
    def version(self) -> str:
        return self.device.version

    @property
    def machine(self) -> str:
        return self.device.machine

    def compile(self, source: str) -> bytes:
        return self.device.compile(source)

    def build(self, source: str) -> Built:
        return self.device.build(source)

    def runs(self, machine: str) -> bool:
        return self.device.runs(machine)

    def load(self, code: bytes) -> Built:
        return self.device.load(code)

    def allocate(self, size: int) -> Memory:
        return self.device.allocate(size)

    def write(self, memory: Memory, contents: Contents) -> None:
        self.device.write(memory, contents)

    def read(self, memory: Memory, size: int) -> Contents:
        return self.device.read(memory, size)

    def copy(
        self, source: Memory, to: Memory, size: int, source_at: int = 0, to_at: int = 0
    ) -> None:
        self.device.copy(source, to, size, source_at, to_at)

    def launch(self, built: Built, launch: Launch, held: Sequence[Memory]) -> None:
        self.device.launch(built, launch, held)

    def wait_for(self, other: Device) -> None:
        self.device.wait_for(cast(Around, other).device)

    def finish(self) -> None:
        self.device.finish()

    def peers(self, count: int) -> Sequence[Device]:
        return [replace(self, device=peer) for peer in self.device.peers(count)]

    def free(self, memory: Memory) -> None:
        self.device.free(memory)

    def lend(self, memory: Memory, dtype: np.dtype[Any], shape: Sequence[int]) -> Any:
        return self.device.lend(memory, dtype, shape)

    def borrow(self, array: Any) -> Memory | None:
        return self.device.borrow(array)

    def imported(self, data: Any) -> Any:
        return self.device.imported(data)


def run_on(
    devices: Sequence[Device],
    built: Built,
    work: Sequence[Launch | Transfer],
    buffers: Sequence[Contents],
) -> list[Contents]:
    """Upload each buffer to the device of its number, run the work in order, return the final
    contents of each.
    """
    held = [upload(devices[k], contents) for k, contents in enumerate(buffers)]
    for each in work:
        if isinstance(each, Transfer):
            transfer(each, devices, held)
        else:
            devices[each.place].launch(built, each, held)
    found = [devices[k].read(held[k], contents.nbytes) for k, contents in enumerate(buffers)]
    for k, memory in enumerate(held):
        devices[k].free(memory)
    return [f.view(c.dtype).reshape(c.shape) for f, c in zip(found, buffers, strict=True)]


def transfer(t: Transfer, devices: Sequence[Device], held: Sequence[Memory]) -> None:
    """Copy between two buffers of `held`, each on the device of its number: after all work on the
    queue of the source, and before later work there, which may overwrite it.
    """
    source, to = devices[t.source], devices[t.to]
    to.wait_for(source)
    to.copy(held[t.source], held[t.to], t.size, t.source_at, t.to_at)
    source.wait_for(to)


def upload(device: Device, contents: Contents) -> Memory:
    """Allocate memory with these contents."""
    memory = device.allocate(contents.nbytes)
    device.write(memory, contents)
    return memory


def as_bytes(contents: Contents) -> Contents:
    """Contents in row-major order, as bytes."""
    return np.ascontiguousarray(contents).reshape(-1).view(np.uint8)


def check_group(launch: Launch, most: int, device: str) -> None:
    """UnsupportedError for a launch in groups that are too large for the device."""
    items = prod(launch.local_size)
    if items > most:
        raise DeviceLacksError(f"workgroups of {items} work items: {device} takes at most {most}")


def require(module: str, extra: str) -> Any:
    """Import an optional module; UnsupportedError with the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UnsupportedError(
            f'{module} is not usable here ({error}); install it with: pip install "uop[{extra}]"'
        ) from error
