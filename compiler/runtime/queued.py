"""A queue that runs what it is given as late as it may.

Several of them stand for several devices where one runs everything at once. A program in which one
device does not wait for another one goes wrong on them every time, not now and then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from uop.compiler.runtime.device import Around, Built, Contents, Device, Launch, Memory


@dataclass(slots=True, eq=False)
class _Marker:
    """A place in a queue, and whether the queue has come there."""

    is_passed: bool = False

    def passed(self) -> None:
        self.is_passed = True


@dataclass(frozen=True, slots=True, eq=False)
class Queued(Around):
    """A device with a queue, which runs when its memory is read or written, or another one waits
    for it. LaunchError comes from there.
    """

    number: int
    count: int
    """The number of this queue and of all that share the device."""
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
        queue, marker = cast(Queued, other), _Marker()
        queue._waiting.append(marker.passed)
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

    def _run_to(self, marker: _Marker) -> None:
        while not marker.is_passed:
            self._waiting.popleft()()
