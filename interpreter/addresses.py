"""Addresses of buffers: numbers that overlap nowhere and suit every element."""

from __future__ import annotations

from collections.abc import Hashable

ALIGNMENT = 256
"""Of the addresses of buffers: more than any element needs."""


class Addresses:
    """The addresses of buffers on devices, assigned on first use: none is 0, no two
    buffers overlap.
    """

    def __init__(self) -> None:
        self._next = ALIGNMENT
        self._assigned: dict[tuple[Hashable, str], int] = {}

    def of(self, buffer: Hashable, size: int, device: str) -> int:
        """The address on a device of a buffer of so many bytes."""
        key = buffer, device
        if key not in self._assigned:
            self._assigned[key] = self._next
            self._next += (size // ALIGNMENT + 1) * ALIGNMENT
        return self._assigned[key]
