"""Chooses the optimizations of a kernel for a device whose work items run in groups.

Items of a group read neighbours in memory together and share LOCAL memory. In a product of matrices
each group computes a tile of outputs, and its items copy the inputs of the tile together. If there
are few outputs, the items of a group share each fold. Other kernels get the choice for a device
without groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from uop.compiler.stages.optimize.axes import FOLDED, nest_of, type_of
from uop.compiler.stages.optimize.heuristic import FEW, LITTLE, Loop, heuristic, loops_of
from uop.compiler.targets.target import Target
from uop.spec.args import AxisType
from uop.spec.kernel.forms import open_ranges
from uop.spec.kernel.optimization import Optimization, PadTo, Split
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

BUSY = 128
"""The groups that keep a device busy."""
SIDES = ((8, 16), (4, 16), (4, 8), (2, 8))
"""The possible sides of a tile: outputs per work item along it, and work items along it."""
DEEP = 8
"""The depth of a tile along its fold."""
SHARING = 256
"""The most work items that share a fold."""
WASTE = 8
"""A loop of n iterations is lengthened by at most n divided by this."""


@dataclass(slots=True)
class _Sequence:
    """Optimizations of loops from the first to the last; a SPLIT moves the later axes by one."""

    made: list[Optimization] = field(default_factory=list)
    splits: int = 0

    def add(self, number: int, padded: int, *splits: tuple[int, AxisType]) -> None:
        """Lengthen a loop to a multiple, then split it several times: each SPLIT applies to the
        loop that the last one made.
        """
        axis = number + self.splits
        if padded > 1:
            self.made.append(PadTo(axis, padded))
        for k, (factor, kind) in enumerate(splits):
            self.made.append(Split(axis + k, factor, kind))
        self.splits += len(splits)


def chosen(body: UOp, target: Target) -> tuple[Optimization, ...]:
    """The optimizations of a kernel whose outer loops are GLOBAL, by its target; () for none."""
    return in_groups(body, target) if target.warp > 1 else heuristic(body, target)


def in_groups(body: UOp, target: Target) -> tuple[Optimization, ...]:
    """The optimizations of a kernel whose outer loops are GLOBAL; () for none."""
    loops = loops_of(body)
    if _count(loops) < LITTLE:
        return ()
    shared = _shared(loops, target) if _are_one_by_one(body, loops) else ()
    return _product(loops) or shared or _few(heuristic(body, target))


def _are_one_by_one(body: UOp, loops: Sequence[Loop]) -> bool:
    """Whether no inner loop stands in another one."""
    nests = [nest_of(body, loop.range) for loop in loops if loop.is_inner]
    order = body.toposort()
    inside = open_ranges(order)
    folds = [u for u in order if u.op is Op.REDUCE]
    is_alone = all(sum(type_of(r) in FOLDED for r in nest) == 1 for nest in nests)
    return is_alone and not any(type_of(r) in FOLDED for u in folds for r in inside[u])


def _few(sequence: Sequence[Optimization]) -> tuple[Optimization, ...]:
    """A work item has few outputs on each loop: others hide how long it waits for memory."""
    return tuple(
        replace(opt, factor=math.gcd(opt.factor, FEW))
        if isinstance(opt, Split) and opt.target is AxisType.UPCAST
        else opt
        for opt in sequence
    )


def _product(loops: Sequence[Loop]) -> tuple[Optimization, ...]:
    """Tiles of a fold over one loop, on two outer loops along which an input repeats."""
    tiled = [loop for loop in loops if loop.repeats and not loop.is_inner][-2:]
    inner = [loop for loop in loops if loop.is_inner]
    if len(tiled) < 2 or len(inner) != 1 or inner[0].bound < DEEP:
        return ()
    others = _count(n for n in loops if n not in tiled and not n.is_inner)
    fit = [
        side for side in SIDES if all(_is_paddable(loop.bound, math.prod(side)) for loop in tiled)
    ]
    if not fit:
        return ()
    groups = {
        side: others * math.prod(-(-loop.bound // math.prod(side)) for loop in tiled)
        for side in fit
    }
    width, items = next((side for side in fit if groups[side] >= BUSY), fit[-1])
    sequence = _Sequence()
    for number, loop in enumerate(loops):
        if loop in tiled:
            side = (width * items, AxisType.LOCAL), (width, AxisType.UPCAST)
            sequence.add(number, _padding(loop.bound, width * items), *side)
        elif loop.is_inner:
            sequence.add(number, _padding(loop.bound, DEEP), (DEEP, AxisType.UNROLL))
    return tuple(sequence.made)


def _shared(loops: Sequence[Loop], target: Target) -> tuple[Optimization, ...]:
    """Folds, and loops that store, over which the items of a group are spread."""
    inner = [loop for loop in loops if loop.is_inner]
    outputs = _count(loop for loop in loops if not loop.is_inner)
    longest = max((loop.bound for loop in inner), default=0)
    read_along = all(1 in loop.steps for loop in inner)
    if longest < target.warp or outputs > BUSY * SHARING or not read_along:
        return ()
    items = min(SHARING, 1 << (longest.bit_length() - 1))
    sequence = _Sequence()
    for number, loop in enumerate(loops):
        if loop.is_inner:
            padded = _padding(loop.bound, items)
            width = 1 if padded > 1 else math.gcd(loop.bound // items, FEW)
            vectors = [(width, AxisType.UNROLL)] if width > 1 else []
            sequence.add(number, padded, (items * width, AxisType.GROUP_REDUCE), *vectors)
    return tuple(sequence.made)


def _count(loops: Iterable[Loop]) -> int:
    return math.prod(loop.bound for loop in loops)


def _is_paddable(bound: int, size: int) -> bool:
    return bound >= size and -bound % size <= bound // WASTE


def _padding(bound: int, size: int) -> int:
    """The multiple that a loop is padded to; 1 where it is one."""
    return size if bound % size else 1
