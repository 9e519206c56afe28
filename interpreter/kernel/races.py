"""Detect races: accesses of work items to one element of shared memory without an order.

Between work items, each element remembers for each axis of the launch the position that accessed
it. That number also counts the events that have ordered the axis so far: barriers for the work
items of a group, the end of the loop for iterations, nothing for workgroups. Within one item, only
data flow orders the instructions of a graph; the list orders those of a LINEAR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.kernel.lanes import Axis, Kind, axis_name
from uop.interpreter.kernel.schedule import is_parallel
from uop.interpreter.numeric.storage import Array, Mask
from uop.spec.conditions.clauses import undefined
from uop.spec.registry import AccessKind
from uop.spec.uop import described

if TYPE_CHECKING:
    from uop.spec.uop import UOp

NEVER = -1
MOST_NODES = 3
"""The most nodes that an error names as the possible origin of an access."""


CONFLICTS = {
    AccessKind.READ: (AccessKind.WRITE, AccessKind.ADD),
    AccessKind.WRITE: (AccessKind.READ, AccessKind.WRITE, AccessKind.ADD),
    AccessKind.ADD: (AccessKind.READ, AccessKind.WRITE),
}
"""Two atomic additions do not conflict (D-065)."""


def _access(u: UOp) -> AccessKind:
    assert u.declaration.access is not None
    return u.declaration.access


class CarriedError(Exception):
    """Iterations that run at once depend on each other."""

    def __init__(self, access: UOp) -> None:
        super().__init__()
        self.access = access


@dataclass(frozen=True, slots=True)
class Reach:
    """The layout of an access along one axis: the position of each element in this interval.

    `position` is `interval + size` if every position of the axis makes the access.
    """

    axis: Axis
    interval: Array
    position: Array

    def spelled(self, position: int) -> str:
        """Name the work items that made the access of a position."""
        number = position % (self.axis.size + 1)
        name = axis_name(self.axis)
        return f"every {name}" if number == self.axis.size else f"{name} = {number}"

    @property
    def everywhere(self) -> Array:
        return np.asarray(self.interval + self.axis.size)


class Shadow:
    """The accesses to one buffer during one launch."""

    def __init__(self, size: int, name: str) -> None:
        self._size, self._name = size, name
        self._seen: dict[tuple[AccessKind, Axis], Array] = {}
        self._nodes: dict[AccessKind, dict[UOp, None]] = {access: {} for access in AccessKind}

    def access(self, u: UOp, where: Array, reaches: Sequence[Reach]) -> None:
        """Record an access to the elements `where`; raise STORE.u2 if it races."""
        if not where.size:
            return
        use = _access(u)
        self._nodes[use][u] = None
        for reach in reaches:
            for earlier in CONFLICTS[use]:
                seen = self._seen.get((earlier, reach.axis))
                if seen is not None:
                    before = seen[where]
                    other = (before != reach.position) | (before == reach.everywhere)
                    bad = other & (before >= reach.interval)
                    self._refuse(bad, where, u, earlier, reach, before)
            self._enter(u, where, reach)

    def _enter(self, u: UOp, where: Array, reach: Reach) -> None:
        use = _access(u)
        key = use, reach.axis
        if key not in self._seen:
            self._seen[key] = np.full(self._size, NEVER, np.int64)
        seen = self._seen[key]
        position = reach.position
        if use is AccessKind.WRITE:
            self._refuse(position == reach.everywhere, where, u, use, reach, position)
        else:
            before = seen[where]
            other = (before >= reach.interval) & (before != position)
            position = np.where(other, reach.everywhere, position)
        seen[where] = position
        twice = seen[where] != position
        if use is AccessKind.WRITE:
            self._refuse(twice, where, u, use, reach, seen[where])
        elif twice.any():
            seen[where[twice]] = np.broadcast_to(reach.everywhere, where.shape)[twice]

    def _refuse(
        self, bad: Array, where: Array, u: UOp, earlier: AccessKind, reach: Reach, before: Array
    ) -> None:
        """Raise the race of the first bad element; `before` has the positions that accessed it."""
        if not bad.any():
            return
        if reach.axis.kind is Kind.ITERATION:
            raise CarriedError(u)
        at = int(np.argmax(np.broadcast_to(bad, where.shape)))
        is_group = reach.axis.kind is Kind.GROUP
        one, other = (
            reach.spelled(int(np.broadcast_to(p, where.shape)[at]))
            for p in (before, reach.position)
        )
        nodes = list(self._nodes[earlier])
        by = " or ".join(described(v) for v in nodes[:MOST_NODES])
        between = "workgroups" if is_group else "work items"
        barrier = "" if is_group else ", and no barrier orders them"
        found = (
            f"race: of two {between} one {earlier.value} element {int(where[at])} of {self._name} "
            f"({one}, {by}), another {_access(u).value} it ({other}){barrier}"
        )
        raise undefined("STORE.u2", found, u, *nodes)


class Unordered:
    """The accesses of a graph without an order, and the elements that each has touched.

    Two accesses in one loop are left out, since its iterations order them; two in one iteration are
    not.
    """

    def __init__(
        self,
        order: Sequence[UOp],
        open_at: Mapping[UOp, frozenset[UOp]],
        shared: Callable[[UOp], object | None],
    ) -> None:
        """`shared` returns the memory of a location, None for memory that is not stored to."""
        self._others: dict[UOp, list[UOp]] = {}
        self._touched: dict[UOp, Mask] = {}
        before: dict[UOp, int] = {}
        accesses: list[tuple[UOp, object, frozenset[UOp]]] = []
        for u in order:
            events = 0
            for s in u.src:
                events |= before[s]
            memory = shared(u.src[0]) if u.declaration.access else None
            if memory is not None:
                loops = frozenset(r for r in open_at[u] if not is_parallel(r))
                for number, (v, held, around) in enumerate(accesses):
                    if held is memory and not events >> number & 1 and not around & loops:
                        self._pair(v, u)
                events |= 1 << len(accesses)
                accesses.append((u, memory, loops))
            before[u] = events

    def _pair(self, v: UOp, u: UOp) -> None:
        if _access(v) in CONFLICTS[_access(u)]:
            self._others.setdefault(u, []).append(v)
            self._others.setdefault(v, [])

    def access(self, u: UOp, where: Array, size: int) -> None:
        """Record an access; raise STORE.u2 if an unordered one touched the same element."""
        if u not in self._others:
            return
        for v in self._others[u]:
            touched = self._touched.get(v)
            if touched is not None and touched[where].any():
                element = int(where[touched[where]][0])
                found = (
                    f"race: it and {described(v)} access element {element} of one buffer and "
                    "nothing orders them"
                )
                raise undefined("STORE.u2", found, u, v)
        self._touched.setdefault(u, np.zeros(size, np.bool_))[where] = True
