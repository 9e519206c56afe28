"""Assign addresses to buffers: aligned for every element, and without overlap."""

from __future__ import annotations

from collections.abc import Hashable

ALIGNMENT = 256
"""The alignment of buffers in bytes: more than any element needs."""


class Addresses:
    """The addresses of buffers on devices, assigned on first use.

    No address is 0, and no two buffers overlap.
    """

    def __init__(self) -> None:
        self._next = ALIGNMENT
        self._assigned: dict[tuple[Hashable, str], int] = {}

    def of(self, buffer: Hashable, size: int, device: str) -> int:
        """Return the address on a device of a buffer of `size` bytes."""
        key = buffer, device
        if key not in self._assigned:
            self._assigned[key] = self._next
            self._next += (size // ALIGNMENT + 1) * ALIGNMENT
        return self._assigned[key]
