"""The search BEAM: finds fast sequences of optimizations for each kernel, by their times.

A round extends each sequence of the beam by every legal optimization, and keeps the fastest. The
caller passes the function that times a candidate and says whether it counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from uop.compiler.execute import Inputs, Output
from uop.compiler.loops import axes
from uop.compiler.pipeline import compile, lower
from uop.compiler.runtime.device import Device
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.choose import chosen
from uop.compiler.stages.optimize.stage import optimize
from uop.compiler.targets.target import Target
from uop.compiler.timing import kernel_times
from uop.spec.args import AxisType
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.graph import kernel_calls
from uop.spec.kernel.optimization import MatrixUnit, Optimization, Split, Swap
from uop.spec.uop import UOp

Optimizations = tuple[Optimization, ...]
Cost = Callable[[tuple[Optimizations, ...], float], float | None]
"""The seconds of a candidate, which has a sequence for each kernel; None if it does not count. The
second argument is the time of the best one so far.
"""
FACTORS = (2, 4, 8, 16)
TYPES = (AxisType.UPCAST, AxisType.UNROLL, AxisType.LOCAL, AxisType.GROUP_REDUCE)
LONGEST = 6
"""A sequence with this many optimizations is not extended."""
BETTER = 0.98
"""The search ends after a round that does not reduce the time to this share of it."""
HOPELESS = 3.0
"""A candidate that takes so many times as long as the best one is timed only once."""
TURNS = 5


@dataclass(frozen=True, slots=True)
class Best:
    """The best sequence for each kernel, and the seconds of all of them."""

    sequences: tuple[Optimizations, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Beam:
    """A search over the kernels of a program. It keeps `width` sequences for each."""

    root: UOp
    target: Target
    width: int
    cost: Cost
    bodies: list[UOp] = field(init=False)
    """The kernels to optimize."""

    def __post_init__(self) -> None:
        kernels = kernel_calls(optimize(lower(self.root, "rangeify", self.target)))
        object.__setattr__(self, "bodies", [call.src[0] for call in kernels])

    @property
    def first(self) -> tuple[Optimizations, ...]:
        """What the compiler chooses without a search."""
        return tuple(tuple(chosen(body, self.target)) for body in self.bodies)

    def run(self, seconds: float, end: float) -> Best:
        """The best sequences. `seconds` is the time of the first ones; no candidate starts after
        `end`, a time of `time.monotonic`.
        """
        best = Best(self.first, seconds)
        for kernel, body in enumerate(self.bodies):
            now = time.monotonic()
            best = self._grown(best, kernel, body, now + (end - now) / (len(self.bodies) - kernel))
        return best

    def _grown(self, best: Best, kernel: int, body: UOp, end: float) -> Best:
        seen: set[UOp] = set()
        beam: list[Optimizations] = [best.sequences[kernel], ()]
        for _ in range(LONGEST):
            timed: list[Best] = []
            for longer in (new for old in beam for new in candidates(body, old, seen, self.target)):
                if time.monotonic() > end:
                    break
                sequences = (*best.sequences[:kernel], longer, *best.sequences[kernel + 1 :])
                seconds = self.cost(sequences, best.seconds)
                if seconds is not None:
                    timed.append(Best(sequences, seconds))
            timed.sort(key=lambda each: each.seconds)
            beam = [each.sequences[kernel] for each in timed[: self.width]]
            if not timed or timed[0].seconds > best.seconds * BETTER:
                return best
            best = timed[0]
        return best


def timed_run(
    root: UOp,
    target: Target,
    sequences: Sequence[Optimizations],
    inputs: Inputs,
    best: float,
    device: Device,
) -> tuple[Output, float]:
    """The results of a candidate on a device, and the seconds of its kernels: of a single run if
    that is hopeless compared to the best one.
    """
    with compile(root, target, None, sequences).load(device) as loaded:
        output = loaded.run(inputs)
        seconds = sum(t.seconds for t in kernel_times(loaded, inputs, 1))
        if seconds < HOPELESS * best:
            seconds = sum(t.seconds for t in kernel_times(loaded, inputs, TURNS))
    return output, seconds


def candidates(
    body: UOp, sequence: Optimizations, seen: set[UOp], target: Target
) -> Iterator[Optimizations]:
    """The legal sequences that are one optimization longer. The kernels they make are added to
    those seen.
    """
    try:
        optimized = apply(body, sequence)
    except UnsupportedError:
        return
    count = len(axes(optimized))
    steps: list[Optimization] = [
        Split(axis, factor, kind) for axis in range(count) for factor in FACTORS for kind in TYPES
    ]
    steps += [Swap(axis, axis + 1) for axis in range(count - 1)]
    if not sequence:
        shapes = dict.fromkeys(f"m{a.m}n{a.n}k{a.k}" for a in target.matrices)
        steps += [MatrixUnit(axis, shape) for axis in range(count) for shape in sorted(shapes)]
    for step in steps:
        longer = (*sequence, step)
        try:
            new = apply(body, longer)
        except (InvalidError, UnsupportedError):
            continue
        if new not in seen:
            seen.add(new)
            yield longer
