"""Chooses the optimizations of a kernel from the vectors and registers of a target.

Two things make a kernel fast: elements that are neighbours in memory form vectors, and what several
outputs need is read once for a tile of them. So the axis on which most accesses step by one element
becomes vectors; in a kernel with a fold, the axes on which a read does not change become a tile of
accumulators, as many as the registers hold. Where the vectors lie along the fold, it has several
accumulators too, since each addition waits for the last one. A kernel of little work stays as it
is: to build it costs more than it takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from uop.compiler.simplify import int_value, linear_form
from uop.compiler.stages.optimize.axes import axes, type_of
from uop.compiler.targets.target import Target
from uop.spec.args import AddrSpace, AxisType
from uop.spec.dtype import dtypes
from uop.spec.kernel.optimization import Optimization, Split
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import variables
from uop.spec.uop import UOp

LITTLE = 1 << 15
"""The iterations of a kernel that is not worth it."""
ACCUMULATORS = 4
"""The vectors of a fold along its vectors: an addition takes as many cycles."""
ROWS = 8
"""The most rows of a tile of accumulators."""
LINE = 64
"""The bytes that a cache reads at once: the sides of a tile of a transpose."""


@dataclass(frozen=True, slots=True)
class _Loop:
    """An axis of a kernel, and how its accesses step along it."""

    range: UOp
    bound: int
    steps: tuple[int | None, ...]
    """The elements that each access steps by; None where they are no constant."""

    @property
    def is_fold(self) -> bool:
        return type_of(self.range) is AxisType.REDUCE

    def neighbours(self, runs: Sequence[int]) -> int:
        """How many more accesses go to neighbours than jump, if each runs as often as said."""
        signed = (
            n if s == 1 else -n if s != 0 else 0 for s, n in zip(self.steps, runs, strict=True)
        )
        return sum(signed)

    @property
    def repeats(self) -> bool:
        """Whether some access does not change along it, and another one does."""
        return 0 in self.steps and any(s != 0 for s in self.steps)


def heuristic(body: UOp, target: Target) -> tuple[Optimization, ...]:
    """The optimizations of a kernel, whose outer loops are GLOBAL; () for none."""
    loops = _loops(body)
    if target.vectors is None or math.prod(loop.bound for loop in loops) < LITTLE:
        return ()
    along = _along(loops, target, _itemsize(body))
    if along is None:
        folds_nothing = not any(loop.is_fold for loop in loops)
        return _splits(loops, _turned(loops, LINE // _itemsize(body))) if folds_nothing else ()
    width = target.vector_width(along.bound, _itemsize(body))
    folds = any(loop.is_fold for loop in loops)
    others = [loop for loop in loops if loop is not along and not loop.is_fold and loop.repeats]
    sizes = {along: width}
    if along.is_fold:
        rows = _tile(others, ACCUMULATORS, target.vectors.registers)
        vectors = ACCUMULATORS if not rows else 1
        sizes[along] = width * _divisor(along.bound // width, vectors)
    elif folds:
        vectors = _divisor(along.bound // width, 2) if others else 1
        rows = _tile(others[:1], ROWS, target.vectors.registers // vectors)
        sizes[along] = width * vectors
    else:
        rows = {}
    return _splits(loops, sizes | rows)


def _loops(body: UOp) -> list[_Loop]:
    """The loops of a kernel; none where a bound is no number or depends on another loop."""
    found = axes(body)
    bounds = [int_value(r.src[0]) for r in found]
    if variables(body) or None in bounds:
        return []
    places = [u.src[0] for u in body.toposort() if u.op in (Op.LOAD, Op.STORE)]
    global_ = [p for p in dict.fromkeys(places) if p.addrspace is AddrSpace.GLOBAL]
    steps = [_steps(p.src[1], found) for p in global_]
    return [
        _Loop(r, bound, tuple(each[k] for each in steps))
        for k, (r, bound) in enumerate(zip(found, bounds, strict=True))
        if bound is not None
    ]


def _steps(index: UOp, loops: Sequence[UOp]) -> list[int | None]:
    """By how much an index steps along each loop."""
    terms, _ = linear_form(index)
    bent = {r for term in terms if term.op is not Op.RANGE for r in term.toposort()}
    return [None if r in bent else terms.get(r, 0) for r in loops]


def _itemsize(body: UOp) -> int:
    """The size of the largest elements that are computed."""
    data = (u.dtype for u in body.toposort() if u.addrspace is None)
    return max((d.itemsize for d in data if d not in (dtypes.index, dtypes.void)), default=1)


def _along(loops: Sequence[_Loop], target: Target, itemsize: int) -> _Loop | None:
    """The loop along which vectors lie: of outputs before folds, where both are as good."""
    runs = _runs(loops)
    fit = [
        loop
        for loop in loops
        if loop.neighbours(runs) > 0 and target.vector_width(loop.bound, itemsize) > 1
    ]
    return max(fit, key=lambda loop: (loop.neighbours(runs), not loop.is_fold), default=None)


def _runs(loops: Sequence[_Loop]) -> list[int]:
    """How often each access runs at other places: once for each iteration that changes it."""
    counts = zip(
        *(((loop.bound if s != 0 else 1) for s in loop.steps) for loop in loops), strict=True
    )
    return [math.prod(each) for each in counts]


def _turned(loops: Sequence[_Loop], width: int) -> dict[_Loop, int]:
    """A tile on two loops of which each steps by one element in other accesses than the other one,
    so that it uses all of what the cache reads.
    """
    found = [loop for loop in loops if 1 in loop.steps and _divisor(loop.bound, width) > 1]
    is_turned = len(found) == 2 and not any(
        a == b == 1 for a, b in zip(*(f.steps for f in found), strict=True)
    )
    return {loop: _divisor(loop.bound, width) for loop in found} if is_turned else {}


def _tile(loops: Sequence[_Loop], most: int, registers: int) -> dict[_Loop, int]:
    """The rows of a tile on each loop, all together in the registers."""
    sizes: dict[_Loop, int] = {}
    for loop in loops:
        size = _divisor(loop.bound, min(most, registers // math.prod(sizes.values())))
        if size > 1:
            sizes[loop] = size
    return sizes


def _divisor(bound: int, most: int) -> int:
    """The largest divisor of a bound up to a limit."""
    return next(d for d in range(max(min(bound, most), 1), 0, -1) if bound % d == 0)


def _splits(loops: Sequence[_Loop], sizes: dict[_Loop, int]) -> tuple[Optimization, ...]:
    """A SPLIT for each size; the axes behind an earlier one have moved by one."""
    found: list[Optimization] = []
    for number, loop in enumerate(loops):
        if sizes.get(loop, 1) > 1:
            target = AxisType.UNROLL if loop.is_fold else AxisType.UPCAST
            found.append(Split(number + len(found), sizes[loop], target))
    return tuple(found)
