"""The time of each kernel of a program on a device, and of a copy there."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from uop.compiler.costs import Cost, cost_of
from uop.compiler.loaded import Given, Loaded
from uop.compiler.runtime.device import Device, Launch, upload
from uop.compiler.stages.grid import runs

TURN = 0.005
"""The least seconds of a turn: what is short runs several times in one."""
TURNS = 9
COPIED = 1 << 24
"""The bytes of the copy that others are measured by."""


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The median time of a launch, and what it costs."""

    launch: Launch
    seconds: float
    cost: Cost

    @property
    def flops(self) -> float:
        """Arithmetic operations in a second."""
        return self.cost.flops / self.seconds

    @property
    def bandwidth(self) -> float:
        """Bytes in a second."""
        return self.cost.bytes / self.seconds


def kernel_times(loaded: Loaded, inputs: Given, turns: int = TURNS) -> list[KernelTime]:
    """Time the kernels of a program in order, each again and again on what those before it left."""
    prepared = loaded.prepare(inputs)
    kernels = iter([s for s in prepared.bound.kernels if runs(s.linear, s.numbers)])
    found: list[KernelTime] = []
    for step in prepared.bound.launched():
        loaded.launch(step, prepared)
        if not isinstance(step, Launch):
            continue
        launch = step

        def again() -> None:
            loaded.launch(launch, prepared)  # noqa: B023

        seconds = time_of(again, loaded.finish, turns)
        found.append(KernelTime(launch, seconds, cost_of(next(kernels))))
    return found


def copy_bandwidth(device: Device, turns: int = TURNS) -> float:
    """The bytes that a copy on the device reads and writes in a second."""
    source, to = (upload(device, np.zeros(COPIED, np.uint8)) for _ in range(2))
    seconds = time_of(lambda: device.copy(source, to, COPIED), device.finish, turns)
    return 2 * COPIED / seconds


def time_of(begin: Callable[[], object], finish: Callable[[], object], turns: int) -> float:
    """The median seconds of a run over some turns of several runs, after one that warms up."""
    turn(begin, finish, 1)
    repeats = repeats_of(turn(begin, finish, 1))
    return median(turn(begin, finish, repeats) for _ in range(turns))


def repeats_of(seconds: float, least: float = TURN) -> int:
    """The runs of a turn of at least some seconds, for runs of so many seconds."""
    return max(1, round(least / seconds))


def turn(begin: Callable[[], object], finish: Callable[[], object], repeats: int) -> float:
    """The seconds of one run of several, with the wait for the last one."""
    begun = time.perf_counter()
    for _ in range(repeats):
        begin()
    finish()
    return (time.perf_counter() - begun) / repeats
