"""Hold the memory of a tensor graph: the contents of a location where a node reads it.

Every access is an event. Event a is before event b where b's node depends on a's. Two accesses to
one element, one of them a write, that are not ordered so are a race.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from uop.interpreter.numeric.storage import Array, Mask, np_dtype
from uop.interpreter.rules.movement import data_sources, index_error, outside_axis, outside_pad
from uop.interpreter.rules.table import RULES
from uop.interpreter.tensor.masks import gate_is_true
from uop.interpreter.values import Value, either, full
from uop.spec.conditions.clauses import lacking, located, undefined
from uop.spec.errors import UndefinedError
from uop.spec.graph import LEAVES, base_of, slot_of
from uop.spec.ops.names import VIEWS, Op
from uop.spec.properties.shape import size
from uop.spec.uop import described

if TYPE_CHECKING:
    from uop.spec.uop import UOp

ABSENT = -1
OUTSIDE = -2
"""In a view, an element at an index out of bounds: only an access to it is undefined (D-052)."""


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write of a buffer by a node."""

    node: UOp
    base: UOp
    touched: Mask
    """A mask over the flat buffer."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write: the value that one STORE puts into its buffer."""

    access: Access
    positions: Array
    value: Value
    """Flat, one element a position."""


class TensorMemory:
    """The buffers of one evaluation; `enter` must announce the nodes in topological order."""

    def __init__(self, contents: Mapping[UOp, Value | None]) -> None:
        """Start with the initial contents of every PARAM and BUFFER, None if they are unknown."""
        self._initial = {u: initial(u, value) for u, value in contents.items()}
        self._writes: list[Write] = []
        self._reads: list[Access] = []
        self._views: dict[UOp, Array] = {}
        self._errors: dict[UOp, UndefinedError] = {}
        """The error of each location with an element that is OUTSIDE."""
        self._before: dict[UOp, int] = {}
        """The events that each node depends on, as bits: writes are even, reads odd."""

    def enter(self, u: UOp) -> None:
        """Record which events come before a node."""
        before = 0
        for s in u.src:
            before |= self._before.get(s, 0)
        self._before[u] = before

    def view(self, location: UOp, indices: Sequence[Value]) -> None:
        """Record which elements of its buffer a location stands for; an INDEX has `indices`."""
        u = location
        if u.src and u.src[0] in self._errors:
            self._errors[u] = self._errors[u.src[0]]
        if u.op in LEAVES:
            self._views[u] = np.arange(size(u.shape)).reshape(u.shape)
        elif u.op is Op.AFTER:
            self._views[u] = self._views[u.src[0]]
        elif u.op is Op.PAD:
            padded = RULES[u.op](u, self._views[u.src[0]])
            self._views[u] = np.where(outside_pad(u), ABSENT, padded)
        elif u.op in VIEWS or (u.op is Op.SLICE and u.dtype == u.src[0].dtype):
            self._views[u] = RULES[u.op](u, self._views[u.src[0]])
        elif u.op is Op.INDEX:
            self._views[u] = self._indexed(u, indices)
        else:
            raise lacking("VALUE.n2", f"{u.op.name} of a location", u)

    def _indexed(self, u: UOp, indices: Sequence[Value]) -> Array:
        view = self._views[u.src[0]]
        for axis in reversed(range(len(indices))):
            i = indices[axis]
            outside = outside_axis(u, axis, i.data, i.invalid)
            if error := index_error(u, axis, i.data, outside):
                self._errors.setdefault(u, cast(UndefinedError, located(error, u)))
            nowhere = full(i.invalid, outside) | outside
            if u.src[0].shape[axis] == 0 and nowhere.any():
                return np.full(u.shape, OUTSIDE if outside.any() else ABSENT)
            view = view.take(np.where(nowhere, 0, i.data).astype(np.intp), axis=axis)
            behind = (1,) * (view.ndim - axis - nowhere.ndim)
            outside, nowhere = (m.reshape((*m.shape, *behind)) for m in (outside, nowhere))
            view = np.where(nowhere, np.where(outside, OUTSIDE, ABSENT), view)
        return view

    def read(self, location: UOp, reader: UOp, gate: Value | None = None) -> Value:
        """Return the contents of a location as the node `reader` sees them.

        Where a gate is false no element is accessed. Raises UndefinedError for one OUTSIDE.
        """
        base, view = base_of(location), self._views[location]
        put = self._accessed(location, None, gate, reader)
        touched = np.zeros(size(base.shape), np.bool_)
        touched[view[put]] = True
        access = Access(reader, base, touched)
        for number, write in enumerate(self._writes):
            if not self._before[location] >> (2 * number) & 1:
                _race_unless(write.access, access, ordered=False)
        self._before[reader] |= 2 << (2 * len(self._reads))
        self._reads.append(access)
        return _take(self.contents(base, self._before[location]), view)

    def _accessed(self, location: UOp, kept: Mask | None, gate: Value | None, by: UOp) -> Mask:
        """Return which elements of a location exist, are not kept and are accessed where the gate
        is true; none of these may be OUTSIDE.
        """
        view = self._views[location]
        put: Mask = view != ABSENT
        if kept is not None:
            put &= ~kept
        if gate is not None:
            put &= gate_is_true(gate, by.op)
        if (view[put] == OUTSIDE).any():
            raise self._errors[location]
        return put

    def first(self, location: UOp) -> int:
        """Return the number of the first element of a location; 0 if it is empty."""
        view = self._views[location].reshape(-1)
        if not view.size:
            return 0
        if view[0] == OUTSIDE:
            raise self._errors[location]
        if view[0] == ABSENT:
            raise lacking("GETADDR.n1", "an element that PAD has added", location)
        return int(view[0])

    def peek(self, location: UOp) -> Value:
        """Return the contents of a location without recording an access."""
        base = base_of(location)
        return _take(self.contents(base, self._before[location]), self._views[location])

    def write(self, store: UOp, value: Value, gate: Value | None) -> None:
        """Record a STORE; raise UndefinedError if it races with a recorded access."""
        target = store.src[0]
        base, view = base_of(target), self._views[target]
        put = self._accessed(target, value.invalid, gate, store)
        positions = view[put]
        touched = np.zeros(size(base.shape), np.bool_)
        touched[positions] = True
        if np.count_nonzero(touched) != positions.size:
            element = int(np.argmax(np.bincount(positions) > 1))
            found = f"race: it writes element {element} of the buffer in slot {slot_of(base)} twice"
            raise undefined("STORE.u3", found, store)
        access = Access(store, base, touched)
        before = self._before[store]
        for number, other in enumerate(self._writes):
            _race_unless(other.access, access, ordered=bool(before >> (2 * number) & 1))
        for number, read in enumerate(self._reads):
            _race_unless(read, access, ordered=bool(before >> (2 * number + 1) & 1))
        self._before[store] = before | 1 << (2 * len(self._writes))
        self._writes.append(Write(access, positions, value.map(lambda a: a[put])))

    def contents(self, base: UOp, before: int | None = None) -> Value:
        """Return a flat buffer after the writes among the events `before`, by default after all."""
        start = self._initial[base]
        writes = [
            w
            for number, w in enumerate(self._writes)
            if w.access.base is base and (before is None or before >> (2 * number) & 1)
        ]
        return _applied(start, writes) if writes else start

    def written(self) -> dict[int, Value]:
        """Map slots to the final contents of the buffers with stores, in their shapes."""
        bases = sorted({w.access.base for w in self._writes}, key=slot_of)
        return {slot_of(b): _take(self.contents(b), self._views[b]) for b in bases}


def reads_of(u: UOp) -> tuple[UOp, ...]:
    """Return the locations among the operands of a node whose contents it reads."""
    sources = data_sources(u)
    if u.addrspace is not None or u.op is Op.STORE:
        sources = sources[1:]
    if u.op in (Op.SINK, Op.GROUP, Op.GETADDR):
        return ()
    return tuple(s for s in sources if s.addrspace is not None)


def initial(leaf: UOp, value: Value | None) -> Value:
    """Return the initial contents of a PARAM or BUFFER, flat; unspecified for None."""
    if value is not None:
        return value.map(lambda a: a.reshape(-1))
    count = size(leaf.shape)
    return Value(np.zeros(count, np_dtype(leaf.dtype)), None, np.ones(count, np.bool_))


def _race_unless(first: Access, second: Access, *, ordered: bool) -> None:
    if ordered or first.base is not second.base or not (first.touched & second.touched).any():
        return
    element = int(np.flatnonzero(first.touched & second.touched)[0])
    found = (
        f"race: it and {described(first.node)} access element {element} of the buffer in slot "
        f"{slot_of(first.base)} and nothing orders them"
    )
    raise undefined("STORE.u2", found, second.node, first.node)


def _take(contents: Value, view: Array) -> Value:
    """Pick the elements of flat contents at the positions of a view."""
    absent = view < 0
    position = np.where(absent, 0, view)
    if contents.data.size == 0:
        return Value(np.zeros(view.shape, contents.data.dtype), absent if absent.any() else None)

    def pick(mask: Mask | None) -> Mask | None:
        return None if mask is None else mask[position] & ~absent

    return Value(
        contents.data[position],
        absent if absent.any() else None,
        pick(contents.unspecified),
        pick(contents.free_nan),
    )


def _applied(start: Value, writes: list[Write]) -> Value:
    data = start.data.copy()
    unspecified, free_nan = (full(m, data).copy() for m in (start.unspecified, start.free_nan))
    for w in writes:
        data[w.positions] = w.value.data
        unspecified[w.positions] = False if w.value.unspecified is None else w.value.unspecified
        free_nan[w.positions] = False if w.value.free_nan is None else w.value.free_nan
    return Value(data, None, unspecified if unspecified.any() else None, either(free_nan))
