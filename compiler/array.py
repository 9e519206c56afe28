"""An array in the memory of a device, for programs and for other libraries."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from uop.compiler.execute import Array, typed
from uop.compiler.runtime.device import Device, Memory, upload
from uop.interpreter.numeric.storage import STORED
from uop.spec.errors import UnsupportedError


@dataclass(slots=True, eq=False, weakref_slot=True)
class DeviceArray:
    """An array on a device, whose memory goes back when it is closed, or nobody has it any more.

    It speaks DLPack where the memory is that of the host, or of a library for the device; what
    other libraries get is the same memory, and for reading.
    """

    device: Device
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    _memory: Memory
    _release: Callable[[Memory], None]
    is_readonly: bool = False
    """Whether its owner forbids to write to it."""
    is_closed: bool = field(default=False, init=False)
    _end: weakref.finalize[..., DeviceArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._end = weakref.finalize(self, self._release, self._memory)
        self._end.atexit = False

    @property
    def size(self) -> int:
        """The size in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def memory(self) -> Memory:
        """Its memory; UnsupportedError if it was closed."""
        if self.is_closed:
            raise UnsupportedError(f"a closed array: {self.dtype}{list(self.shape)}")
        return self._memory

    def numpy(self) -> Array:
        """A copy, after all that was launched before."""
        return typed(self.device.read(self.memory, self.size), self.dtype, self.shape)

    def close(self) -> None:
        """Give the memory back. What other libraries have of it stays."""
        self.is_closed = True
        self._end()

    def __dlpack__(self, **options: Any) -> Any:
        return self._lent().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._lent().__dlpack_device__()
        return int(kind), int(number)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        # An array of numpy has none: then neither has this.
        found: dict[str, Any] = self._lent().__cuda_array_interface__
        return found

    def _lent(self) -> Any:
        """The array of another library on this memory, which from here on lives as long as it."""
        lent = self.device.lend(self.memory, self.dtype, self.shape)
        self._end.detach()
        return lent


def from_array(data: Array, device: Device) -> DeviceArray:
    """A copy of an array of numpy on a device; UnsupportedError for elements of no dtype."""
    array = np.asarray(data)
    _check(array)
    memory = upload(device, array)
    return DeviceArray(device, array.dtype, array.shape, memory, device.free)


def from_dlpack(data: Any, device: Device) -> DeviceArray:
    """An array of another library on a device: its memory where it is in row-major order, and the
    device can use it in place, else a copy.

    UnsupportedError for what the device's library cannot take.
    """
    try:
        array = device.imported(data)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UnsupportedError(f"no array for {device.name} by DLPack: {error}") from error
    _check(array)
    memory = device.borrow(array) if array.flags.c_contiguous else None
    if memory is None:
        return from_array(array, device)
    is_readonly = not getattr(array.flags, "writeable", True)
    shape = tuple(array.shape)
    return DeviceArray(device, np.dtype(array.dtype), shape, memory, device.free, is_readonly)


def _check(array: Any) -> None:
    if np.dtype(array.dtype) not in STORED:
        raise UnsupportedError(f"an array of {array.dtype}: no dtype stores such elements")
