"""Finds barriers that are certain to diverge (D-063), before a launch.

Only branches and loops that depend on the numbers of the work items count. A branch on data, or a
loop of a length from data, is not judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from uop.compiler.rewriting.fold import values_of
from uop.compiler.stages.render.grid import IN_GROUP, OVER_ALL, name_of, specials
from uop.spec.conditions.clauses import undefined
from uop.spec.kernel.listing import BLOCK_ENDS, BLOCK_STARTS
from uop.spec.ops.names import Op
from uop.spec.properties.interval import Interval
from uop.spec.uop import UOp

Array = NDArray[Any]

LAUNCHED = (*reversed(OVER_ALL), *reversed(IN_GROUP))
"""The SPECIALs in the order in which a launch counts: the last one fastest."""
MOST_GROUPS = 16
"""The most workgroups along an axis that are examined."""
MOST_ITERATIONS = 4096
"""The most iterations of a kernel's loops that are examined."""


@dataclass(slots=True)
class Block:
    """A loop or a branch that holds barriers, directly or in blocks inside."""

    opener: UOp | None
    items: list[UOp | Block] = field(default_factory=list)


def refuse_divergent(linear: UOp) -> None:
    """UndefinedError for a BARRIER that some work items of a group reach and others skip."""
    if not any(u.op is Op.BARRIER for u in linear.src):
        return
    counters = sorted(specials(linear), key=lambda u: LAUNCHED.index(name_of(u)))
    walk = _Walk([name_of(u) in IN_GROUP for u in counters], [name_of(u) for u in counters])
    for axis, u in enumerate(counters):
        # Of a symbolic number as many as there certainly are.
        certain = int(cast(Interval, u.src[0].min_max).min)
        count = certain if name_of(u) in IN_GROUP else min(certain, MOST_GROUPS)
        shape = [1] * len(counters)
        shape[axis] = count
        walk.known[u] = np.arange(count).reshape(shape)
    walk.run(_blocks(linear), np.ones((1,) * len(counters), np.bool_))


def _blocks(linear: UOp) -> Block:
    """The blocks of a kernel around its barriers."""
    opened = [Block(None)]
    for u in linear.src:
        if u.op in BLOCK_STARTS:
            opened.append(Block(u))
        elif u.op in BLOCK_ENDS:
            block = opened.pop()
            if block.items:
                opened[-1].items.append(block)
        elif u.op is Op.BARRIER:
            opened[-1].items.append(u)
    return opened[0]


@dataclass(slots=True)
class _Walk:
    """Runs the blocks around the barriers for all work items at once, each SPECIAL on its axis."""

    in_group: list[bool]
    """Whether an axis numbers the items of a group."""
    names: list[str]
    known: dict[UOp, Array] = field(default_factory=dict)
    """The values of the counters."""
    left: int = MOST_ITERATIONS

    def run(self, block: Block, active: Array) -> None:
        for item in block.items:
            if not isinstance(item, Block):
                self._meet(item, active)
            elif item.opener is not None and item.opener.op is Op.RANGE:
                self._repeat(item, item.opener, active)
            elif item.opener is not None:
                gate = values_of(item.opener.src[0], self.known)
                if gate is not None:
                    self.run(item, active & gate)

    def _repeat(self, block: Block, counter: UOp, active: Array) -> None:
        counts = values_of(counter.src[0], self.known)
        if counts is None:
            return
        for position in range(int(np.max(np.where(active, counts, 0), initial=0))):
            if not self.left:
                return
            self.left -= 1
            self.known[counter] = np.asarray(position)
            self.run(block, active & (position < counts))

    def _meet(self, barrier: UOp, active: Array) -> None:
        items = tuple(axis for axis, inside in enumerate(self.in_group) if inside)
        some, every = (f(axis=items, keepdims=True) for f in (active.any, active.all))
        split = some & ~every
        if split.any():
            waits, skips = self._first(split & active), self._first(split & ~active)
            raise undefined(
                "BARRIER.u1", f"divergent barrier: {waits} waits, {skips} skips it", barrier
            )

    def _first(self, where: Array) -> str:
        """The first work item of a mask, on the axes that it depends on."""
        position = np.argwhere(where)[0]
        shown = zip(self.names, position, where.shape, strict=True)
        return ", ".join(f"{name} = {int(at)}" for name, at, count in shown if count > 1)
