"""Hold the memory of one launch: shared or private, the places of accesses, and their order.

Accesses of work items to one element of shared memory without an order are a race. Between work
items, each element remembers for each axis of the launch the position that accessed it. That number
also counts the events that have ordered the axis so far: barriers for the work items of a group,
the end of the loop for iterations, nothing for workgroups. Within one item, only data flow orders
the instructions of a graph; the list orders those of a LINEAR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from uop.interpreter.kernel.buffers import Buffer, Place, Registers
from uop.interpreter.kernel.lanes import (
    Axis,
    Kind,
    Lanes,
    Shape,
    axis_name,
    lane_names,
    lanes_of,
    spread,
)
from uop.interpreter.kernel.schedule import is_parallel
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.values import Value, full
from uop.spec.args import AddrSpace
from uop.spec.conditions.clauses import lacking, undefined
from uop.spec.graph import LEAVES, base_of, slot_of, without_order
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size
from uop.spec.registry import AccessKind
from uop.spec.uop import UOp, described

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


Values = Callable[["UOp"], Value]


class LaunchMemory:
    """The arguments of a launch, its LOCAL memory and its registers."""

    def __init__(self, body: UOp, lanes: Lanes, arguments: Sequence[Buffer]) -> None:
        self._lanes, self._axes, self._arguments = lanes, lanes.axes, arguments
        self._ended = {a.node: 0 for a in self._axes}
        self._epoch: Array | int = 0
        self._memory: dict[UOp, Buffer | Registers] = {}
        self._shadows: dict[Buffer, Shadow] = {}
        # Accesses to memory that is not stored to cannot race.
        for u in body.toposort():
            if u.declaration.is_write:
                memory = self.memory_of(base_of(u.src[0]))
                if isinstance(memory, Buffer):
                    memory.is_stored_to = True
                    self._shadows.setdefault(memory, Shadow(memory.data.size, _named(u)))
        self._unordered: Unordered | None = None
        self._open: dict[UOp, frozenset[UOp]] = {}
        if body.op is not Op.LINEAR and self._shadows:
            order = body.toposort()
            self._open = open_ranges(order)
            self._unordered = Unordered(order, self._open, self._stored_to)

    def _stored_to(self, location: UOp) -> Buffer | None:
        memory = self.memory_of(base_of(location))
        return memory if isinstance(memory, Buffer) and memory in self._shadows else None

    @property
    def stored(self) -> list[Buffer]:
        """The arguments that the body stores to."""
        return [b for b in dict.fromkeys(self._arguments) if b in self._shadows]

    def barrier(self, active: Mask | None) -> None:
        """Order the earlier accesses of the work items of each group before their later ones."""
        if active is None or active.ndim == 0:
            self._epoch = self._epoch + 1
            return
        items = tuple(a.number for a in self._axes if a.kind is Kind.ITEM)
        some = np.asarray(active.any(axis=items, keepdims=True))
        split = some & ~active.all(axis=items, keepdims=True)
        if split.any():
            skipped = np.broadcast_to(split & ~active, active.shape)
            raise undefined(
                "BARRIER.u1",
                f"divergent barrier: {lane_names(self._axes, np.asarray(active & split))} waits, "
                f"{lane_names(self._axes, skipped)} skips it",
            )
        self._epoch = self._epoch + some.astype(np.int64)

    def end(self, counter: UOp) -> None:
        """Order the accesses in the iterations of a RANGE that is an axis before the later ones."""
        self._ended[counter] += 1

    def memory_of(self, base: UOp) -> Buffer | Registers:
        """Return the memory of a PARAM or BUFFER."""
        if base not in self._memory:
            if base.op is Op.PARAM:
                return self._arguments[slot_of(base)]
            if base.addrspace is AddrSpace.GLOBAL:
                raise lacking("BUFFER.n1", "a GLOBAL BUFFER inside a kernel", base)
            if base.addrspace is AddrSpace.REG:
                self._memory[base] = Registers(base, self._lanes.count)
            else:
                groups = size(tuple(a.size for a in self._axes if a.kind is Kind.GROUP))
                self._memory[base] = Buffer.local(base, groups)
        return self._memory[base]

    def place(
        self, location: UOp, gate: Mask | None, values: Values
    ) -> tuple[Buffer | Registers, Place]:
        """Return the memory and positions of a location; position 0 where the gate is false."""
        u = without_order(location)
        base = without_order(u.src[0]) if u.op is Op.INDEX else u
        if base.op not in LEAVES:
            raise lacking("INDEX.n1", f"access through {base.op.name}", u)
        memory, rank = self.memory_of(base), len(location.shape)
        indices = [(values(i), len(i.shape)) for i in (u.src[1:] if base is not u else ())]
        positions = self._positions(u, base.shape, indices, gate, rank)
        if base.addrspace is AddrSpace.LOCAL:
            positions = positions + self._lanes.raised(self._group() * memory.size, 0, rank)
        return memory, Place(positions, gate, rank)

    def _positions(
        self,
        location: UOp,
        shape: Shape,
        indices: Sequence[tuple[Value, int]],
        gate: Mask | None,
        rank: int,
    ) -> Array:
        """Return the row-major positions of the elements that the indices pick."""
        total: Array = np.zeros((), np.int64)
        before = 0
        for axis, count in enumerate(shape):
            i, own = indices[axis] if axis < len(indices) else (Value(np.arange(count)), 1)
            position = spread(i.data.astype(np.int64, copy=False), own, before, rank)
            if i.unspecified is not None:
                refuse_open(
                    spread(full(i.unspecified, i.data), own, before, rank), gate, "INDEX.u2"
                )
            outside = _outside(position, gate, count)
            if outside is not None:
                index = int(np.broadcast_to(position, outside.shape)[outside].flat[0])
                item = lane_names(self._axes, outside)
                where = f", where {item}" if item else ""
                found = f"{index} on axis {axis} of size {count}{where}"
                raise undefined("INDEX.u1", found, location)
            before += own
            total = position if len(shape) == 1 else total + position * size(shape[axis + 1 :])
        return total if gate is None else np.where(gate, total, 0)

    def _group(self) -> Array:
        number: Array = np.zeros((1,) * self._lanes.count, np.int64)
        for axis in self._axes:
            if axis.kind is Kind.GROUP:
                number = number * axis.size + self._lanes.along(axis)
        return number

    def note(self, u: UOp, memory: Buffer | Registers, place: Place) -> None:
        """Record an access to memory that is stored to; raise UndefinedError if it races."""
        if isinstance(memory, Buffer) and memory.touched is not None:
            touched = memory.touched.read if u.op is Op.LOAD else memory.touched.written
            touched[place.selected(place.positions)] = True
        shadow = self._shadows.get(cast(Buffer, memory))
        if shadow is None:
            return
        # Groups that met different barriers are distinct, even where all items do the same.
        groups = (
            (*self._epoch.shape, *(1,) * place.rank) if isinstance(self._epoch, np.ndarray) else ()
        )
        if groups or place.gate is not None:
            place = place.over(groups)
        lanes = lanes_of(place.positions, place.rank)
        reaches = []
        for axis in self._axes:
            if axis.size == 1:
                continue
            interval = np.asarray(self._interval(axis.kind, axis.node) * (axis.size + 1))
            if lanes and lanes[axis.number] > 1:
                position = interval + self._lanes.along(axis)
            elif axis.is_always_open or axis.node in self._open.get(u, ()):
                position = interval + axis.size
            else:
                continue
            reaches.append(Reach(axis, self._flat(interval, place), self._flat(position, place)))
        where = place.selected(place.positions).reshape(-1)
        shadow.access(u, where, reaches)
        if self._unordered is not None:
            self._unordered.access(u, where, memory.data.size)

    def _flat(self, lanes: Array, place: Place) -> Array:
        """Spread lanes over the elements of a place; a single number stays one."""
        if lanes.ndim == 0:
            return lanes
        return place.selected(self._lanes.raised(lanes, 0, place.rank)).reshape(-1)

    def _interval(self, kind: Kind, node: UOp) -> Array | int:
        if kind is Kind.ITEM:
            return self._epoch
        return self._ended[node] if kind is Kind.ITERATION else 0


def _named(store: UOp) -> str:
    base = base_of(store.src[0])
    slot = slot_of(base)
    return f"the {'argument' if base.op is Op.PARAM else 'LOCAL BUFFER'} in slot {slot}"


def refuse_open(unspecified: Mask, gate: Mask | None, label: str) -> None:
    """Raise UndefinedError if a value that decides what runs is unspecified."""
    if (unspecified if gate is None else unspecified & gate).any():
        raise undefined(label, "an UNSPECIFIED element")


def _outside(positions: Array, gate: Mask | None, count: int) -> Mask | None:
    """Return where gated positions leave an axis of this size; None if nowhere."""
    if gate is None and (not positions.size or (positions.min() >= 0 and positions.max() < count)):
        return None
    outside = (positions < 0) | (positions >= count)
    if gate is not None:
        outside = outside & gate
    return outside if outside.any() else None
