"""Chooses the optimizations of a kernel from the vectors and registers of a target.

Two things make a kernel fast: neighbours in memory are accessed as vectors, and a value that
several outputs need is read once for a tile of them. So the axis on which most accesses step by one
element becomes vectors. In a kernel with a fold, axes on which some read does not change become a
tile of accumulators, which gets half of the registers. With two such axes the vectors lie along the
one by which the result is written, unless every read is along the fold. Vectors along the fold have
several accumulators, since each addition waits for the last one. A small kernel stays as it is:
building it costs more than it saves.

On a device whose work items run in groups, items of a group read neighbours in memory together and
share LOCAL memory. In a product of matrices each group computes a tile of outputs, and its items
copy the inputs of the tile together. If there are few outputs, the items of a group share each
fold. Other kernels get the choice for a device without groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from uop.compiler.loops import (
    FOLDED,
    axes,
    folds_in_folds,
    largest_divisor,
    linear_steps,
    nest_of,
    type_of,
)
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.targets.target import Target
from uop.spec.args import AddrSpace, AxisType
from uop.spec.dtype import dtypes
from uop.spec.kernel.optimization import Optimization, PadTo, Split
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import variables_of
from uop.spec.uop import UOp

FEW = 4
"""The steps of a long inner loop that are written out inside a tile."""
SHORT = 8
"""The most iterations of an inner loop that is written out inside vectors."""
LITTLE = 1 << 15
"""A kernel of fewer iterations is not optimized."""
ACCUMULATORS = 4
"""The accumulators of a fold along its vectors: an addition takes as many cycles."""
SPILLED = 2
"""A tile with converted inputs may have accumulators for so many times the registers. A tile of
half the registers, with room for inputs and products, would convert its inputs more often.
"""
LINE = 64
"""The bytes of a line of a cache."""
ROWS = 8
"""The most rows of a tile of accumulators."""
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


def chosen(body: UOp, target: Target) -> tuple[Optimization, ...]:
    """The optimizations of a kernel whose outer loops are GLOBAL, by its target; () for none."""
    return in_groups(body, target) if target.warp > 1 else heuristic(body, target)


@dataclass(frozen=True, slots=True)
class Loop:
    """An axis of a kernel, and how its accesses step along it."""

    range: UOp
    bound: int
    steps: tuple[int | None, ...]
    """The elements that each access steps by; None where they are no constant."""
    is_written_along: bool
    """Whether every STORE steps by one element along it."""
    is_read_along: bool
    """Whether every LOAD that changes along it steps by one element."""

    @property
    def is_inner(self) -> bool:
        """Whether one work item runs its iterations, one after the other."""
        return type_of(self.range) is AxisType.REDUCE

    @property
    def repeats(self) -> bool:
        """Whether some access does not change along it, and another one does."""
        return 0 in self.steps and any(s != 0 for s in self.steps)


def heuristic(body: UOp, target: Target) -> tuple[Optimization, ...]:
    """The optimizations of a kernel, whose outer loops are GLOBAL; () for none."""
    kernel = _Kernel(body, target, loops_of(body))
    if target.vectors is None or math.prod(loop.bound for loop in kernel.loops) < LITTLE:
        return ()
    sizes = kernel.sizes(target.vectors.registers)
    groups, sequence = kernel.groups(sizes), _Sequence()
    for number, loop in enumerate(kernel.loops):
        kind = AxisType.UNROLL if loop.is_inner else AxisType.UPCAST
        split, shared = (sizes.get(loop, 1), kind), (groups.get(loop, 1), AxisType.LOCAL)
        sequence.add(number, split, shared, goes_in=False)
    return tuple(sequence.made)


@dataclass(frozen=True, slots=True)
class _Kernel:
    body: UOp
    target: Target
    loops: Sequence[Loop]

    def sizes(self, registers: int) -> dict[Loop, int]:
        """The factor of the SPLIT of each loop."""
        inner = [loop for loop in self.loops if loop.is_inner]
        along = self._along_a_tile() or self._along(self.loops)
        if along is None:
            return {} if inner else self._turned()
        others = [loop for loop in self.loops if loop.repeats and not loop.is_inner]
        nests = dict.fromkeys(frozenset(nest_of(self.body, loop.range)) for loop in inner)
        if along.is_inner and len(nests) > 1:
            # Loops one after the other, as those over a row: each has vectors of its own.
            found = (self._along([i for i in inner if i.range in nest]) for nest in nests)
            return {loop: self._vectors(loop, ACCUMULATORS) for loop in found if loop is not None}
        few = {loop: loop.bound for loop in inner if loop.bound <= SHORT and loop is not along}
        if along.is_inner:
            rows = _tile(others, ACCUMULATORS, registers // 2)
            return {along: self._vectors(along, 1 if rows else ACCUMULATORS)} | rows | few
        others = [loop for loop in others if loop is not along][:1] if inner else []
        # A register that is in memory in between is written once for several steps.
        is_deep = len(inner) == 1 and inner[0].bound > FEW and inner[0].bound % FEW == 0
        deep = {inner[0]: FEW} if others and is_deep else {}
        accumulators = registers if deep else registers // 2
        accumulators = registers * SPILLED if self._converts else accumulators
        rows = _tile(others, ROWS, accumulators)
        columns = accumulators // math.prod(rows.values()) if others else 1
        return {along: self._vectors(along, columns)} | rows | few | deep

    def _along_a_tile(self) -> Loop | None:
        """The loop along which a product of matrices writes its result. An input that this loop
        reads far apart is shared by the rows of a tile. None if all inputs are read along the fold.
        """
        if any(loop.is_inner and loop.is_read_along for loop in self.loops):
            return None
        tiled = [loop for loop in self.loops if loop.repeats and not loop.is_inner]
        full = [loop for loop in tiled if loop.is_written_along and self._width(loop) > FEW]
        return full[0] if full and len(tiled) > 1 else None

    def _along(self, loops: Iterable[Loop]) -> Loop | None:
        """The loop along which vectors lie: an outer one, where an inner one is as good."""
        counts = zip(
            *([n.bound if s != 0 else 1 for s in n.steps] for n in self.loops), strict=True
        )
        runs = [math.prod(each) for each in counts]

        def neighbours(loop: Loop) -> int:
            """How many more accesses go to neighbours than jump."""
            pairs = zip(loop.steps, runs, strict=True)
            return sum(n if s == 1 else -n if s != 0 else 0 for s, n in pairs)

        fit = [loop for loop in loops if neighbours(loop) > 0 and self._width(loop) > 1]
        return max(fit, key=lambda loop: (neighbours(loop), not loop.is_inner), default=None)

    def _turned(self) -> dict[Loop, int]:
        """A tile for a transpose: two loops, each of which steps by one element in accesses where
        the other does not. Its sides are a vector. If work items run one after the other, the side
        that is written is a line of the cache, which is then written at once.
        """
        vectors = self.target.vectors
        most = 1 if vectors is None else min(vectors.size // self._itemsize, vectors.widths[-1])
        line = LINE // self._itemsize if self.target.warp == 1 and most > 1 else most
        sizes = {
            loop: largest_divisor(loop.bound, line if loop.is_written_along else most)
            for loop in self.loops
            if 1 in loop.steps
        }
        found = [loop for loop, size in sizes.items() if size > 1]
        if len(found) != 2 or (1, 1) in zip(*(loop.steps for loop in found), strict=True):
            return {}
        return {loop: sizes[loop] for loop in found}

    def groups(self, sizes: dict[Loop, int]) -> dict[Loop, int]:
        """The work items of a group on a loop, for a tile of a transpose: they follow each other
        along the rows that are read, so the cache need not keep a line for long. The items of a
        warp read at the same time, in any order.
        """
        read = [loop for loop in sizes if not loop.is_written_along]
        is_turned = len(sizes) == 2 and not any(loop.is_inner for loop in self.loops)
        if not is_turned or len(read) != 1 or self.target.warp > 1:
            return {}
        rest = read[0].bound // sizes[read[0]]
        return {read[0]: largest_divisor(rest, self.target.local_size)}

    def _vectors(self, loop: Loop, most: int) -> int:
        """The elements of some vectors on a loop."""
        width = self._width(loop)
        return width * largest_divisor(loop.bound // width, most)

    def _width(self, loop: Loop) -> int:
        return self.target.vector_width(loop.bound, self._itemsize)

    @property
    def _converts(self) -> bool:
        """Whether what is read is converted, which costs more than an accumulator in memory."""
        casts = (u for u in self.body.toposort() if u.op is Op.CAST)
        return any(u.src[0].op is Op.LOAD for u in casts)

    @property
    def _itemsize(self) -> int:
        """The size of the largest elements that are computed."""
        data = (u.dtype for u in self.body.toposort() if u.addrspace is None)
        return max((d.itemsize for d in data if d not in (dtypes.index, dtypes.void)), default=1)


def loops_of(body: UOp) -> list[Loop]:
    """The loops of a kernel; none where a bound is no number or depends on another loop."""
    found = axes(body)
    bounds = [int_value(r.src[0]) for r in found]
    if variables_of(body) or None in bounds:
        return []
    accesses = [u for u in body.toposort() if u.op in (Op.LOAD, Op.STORE)]
    places = dict.fromkeys(u.src[0] for u in accesses if u.src[0].addrspace is AddrSpace.GLOBAL)
    steps = {place: linear_steps(place.src[1], found) for place in places}
    written, read = (
        [steps[u.src[0]] for u in accesses if u.op is op and u.src[0] in steps]
        for op in (Op.STORE, Op.LOAD)
    )
    return [
        Loop(
            r,
            bound,
            tuple(s[k] for s in steps.values()),
            all(s[k] == 1 for s in written),
            {s[k] for s in read} - {0} == {1},
        )
        for k, (r, bound) in enumerate(zip(found, bounds, strict=True))
        if bound is not None
    ]


def _tile(loops: Sequence[Loop], most: int, registers: int) -> dict[Loop, int]:
    """The rows of a tile on each loop, all together in the registers."""
    sizes: dict[Loop, int] = {}
    for loop in loops:
        size = largest_divisor(loop.bound, min(most, registers // math.prod(sizes.values())))
        if size > 1:
            sizes[loop] = size
    return sizes


@dataclass(slots=True)
class _Sequence:
    """Optimizations of loops from the first to the last; a SPLIT moves the later axes by one."""

    made: list[Optimization] = field(default_factory=list)
    splits: int = 0

    def add(
        self, number: int, *splits: tuple[int, AxisType], padded: int = 1, goes_in: bool = True
    ) -> None:
        """Lengthen a loop to a multiple, then split it by the factors above 1: each SPLIT applies
        to the loop that the last one made inside, or to the one outside.
        """
        axis, real = number + self.splits, [each for each in splits if each[0] > 1]
        if padded > 1:
            self.made.append(PadTo(axis, padded))
        for k, (factor, kind) in enumerate(real):
            self.made.append(Split(axis + k * goes_in, factor, kind))
        self.splits += len(real)


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
    is_alone = all(sum(type_of(r) in FOLDED for r in nest) == 1 for nest in nests)
    return is_alone and not folds_in_folds(body)


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
            sequence.add(number, *side, padded=_padding(loop.bound, width * items))
        elif loop.is_inner:
            sequence.add(number, (DEEP, AxisType.UNROLL), padded=_padding(loop.bound, DEEP))
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
            shared = (items * width, AxisType.GROUP_REDUCE)
            sequence.add(number, shared, (width, AxisType.UNROLL), padded=padded)
    return tuple(sequence.made)


def _count(loops: Iterable[Loop]) -> int:
    return math.prod(loop.bound for loop in loops)


def _is_paddable(bound: int, size: int) -> bool:
    return bound >= size and -bound % size <= bound // WASTE


def _padding(bound: int, size: int) -> int:
    """The multiple that a loop is padded to; 1 where it is one."""
    return size if bound % size else 1
