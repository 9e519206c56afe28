"""The interface of every runtime: build a source, and launch its kernels over buffers."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uop.spec.errors import UnsupportedError

Contents = NDArray[Any]


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

    @classmethod
    def covering(
        cls,
        kernel: str,
        buffers: tuple[int, ...],
        items: tuple[int, ...],
        group: int,
        integers: tuple[int, ...] = (),
    ) -> Launch:
        """At least `items` work items in groups of `group` along axis 0; () is one item."""
        if not items:
            return cls(kernel, buffers, (1,), (1,), integers)
        local_size = (group, *(1 for _ in items[1:]))
        rounded = zip(items, local_size, strict=True)
        groups = tuple(-(-i // n) for i, n in rounded)
        return cls(kernel, buffers, groups, local_size, integers)


class Built(Protocol):
    """A source built for one device."""

    def kernel(self, name: str) -> Any:
        """The kernel of that name, ready to launch."""


class Compiler(Protocol):
    """What makes machine code of a source."""

    @property
    def machine(self) -> str:
        """What its code is for: device and driver, or an architecture."""

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
        """Whether it runs the code of a compiler for this machine."""

    def load(self, code: bytes) -> Built:
        """Load the code of `compile`; BackendError if the driver refuses it."""

    def run(
        self, built: Built, launches: Sequence[Launch], buffers: Sequence[Contents]
    ) -> list[Contents]:
        """Upload the buffers, run the launches in order, return the final contents of each."""


def check_group(launch: Launch, most: int, device: str) -> None:
    """UnsupportedError for a launch in groups that are too large for the device."""
    items = prod(launch.local_size)
    if items > most:
        raise UnsupportedError(f"workgroups of {items} work items: {device} takes at most {most}")


def require(module: str, extra: str) -> Any:
    """Import an optional module; UnsupportedError with the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UnsupportedError(
            f'{module} is not usable here ({error}); install it with: pip install "uop[{extra}]"'
        ) from error


def empty_like(contents: Contents) -> Contents:
    """Memory for a download: contiguous, of the same dtype and shape."""
    return np.empty(contents.shape, contents.dtype)
