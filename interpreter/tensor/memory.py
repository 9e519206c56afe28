"""Hold the memory of a tensor graph: the contents of a location at the node that reads it.

Every access is an event. Event a is before event b if the node of b depends on that of a. Two
accesses to one element, one of them a write, without such an order are a race.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import cast

import numpy as np

from uop.interpreter.numeric.storage import Array, Mask, np_dtype
from uop.interpreter.rules.movement import index_error, outside_axis, outside_pad
from uop.interpreter.rules.table import RULES
from uop.interpreter.tensor.masks import bitcast, gate_is_true
from uop.interpreter.values import Value, full, together
from uop.spec.args import DTypeArg
from uop.spec.conditions.clauses import lacking, located, undefined
from uop.spec.dtype import DTYPES, DType
from uop.spec.errors import UndefinedError
from uop.spec.graph import LEAVES, base_of, passed_buffer, slot_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size
from uop.spec.registry import Shape
from uop.spec.uop import UOp, described, param


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write of a buffer by a node."""

    node: UOp
    base: UOp
    touched: Mask
    """A mask over the units of the flat buffer: as many units as elements, or a multiple."""


@dataclass(frozen=True, slots=True)
class Touched:
    """The elements of a buffer that a CALL reads and writes."""

    read: Mask
    written: Mask


@dataclass(frozen=True, slots=True)
class Write:
    """A write: the value that one STORE puts into its buffer."""

    access: Access
    view: View
    """The view of the written elements, flat like the value."""
    value: Value
    dtype: DType
    """The dtype of the value."""


class TensorMemory:
    """The buffers of one evaluation; `enter` must announce the nodes in topological order."""

    def __init__(self, contents: Mapping[UOp, Value | None]) -> None:
        """Start with the initial contents of every PARAM and BUFFER, None if they are unknown."""
        self._initial = {u: initial(u, value) for u, value in contents.items()}
        self._writes: list[Write] = []
        self._reads: list[Access] = []
        self.views: dict[UOp, View] = {}
        self._errors: dict[UOp, UndefinedError] = {}
        """The error of each location with an element that is OUTSIDE."""
        self._before: dict[UOp, int] = {}
        """The events that each node depends on, as bits: writes are even, reads odd."""

    def enter(self, u: UOp) -> None:
        """Record the events that come before a node."""
        before = 0
        for s in u.src:
            before |= self._before.get(s, 0)
        self._before[u] = before

    def view(self, location: UOp, indices: Sequence[Value]) -> None:
        """Record the elements of the buffer that a location stands for; an INDEX has `indices`."""
        u = location
        if u.src and u.src[0] in self._errors:
            self._errors[u] = self._errors[u.src[0]]
        if u.op in LEAVES:
            whole = np.arange(size(u.shape)).reshape(u.shape)
            self.views[u] = View((whole,), u.dtype.itemsize)
        elif u.op is Op.SLICE and u.dtype is not u.src[0].dtype:
            views = cast("UOp", u.decompose())
            for v in views.toposort():
                if v.addrspace is not None and v not in self.views:
                    self.view(v, [])
            self.views[u] = self.views[views]
        else:
            self.views[u] = self._moved(u, self.views[u.src[0]], indices)

    def _moved(self, u: UOp, view: View, indices: Sequence[Value]) -> View:
        if u.op is Op.AFTER:
            return view
        if u.op is Op.INDEX:
            return self._indexed(u, view, indices)
        if u.op is Op.BITCAST:
            return view.retyped(u.src[0].dtype.itemsize, u.dtype.itemsize)
        moved = view.map(lambda part: RULES[u.op](u, part))
        if u.op is not Op.PAD:
            return moved
        outside = outside_pad(u)
        return moved.map(lambda part: np.where(outside, ABSENT, part))

    def _indexed(self, u: UOp, view: View, indices: Sequence[Value]) -> View:
        for axis in reversed(range(len(indices))):
            i = indices[axis]
            outside = outside_axis(u, axis, i.data, i.invalid)
            if error := index_error(u, axis, i.data, outside):
                self._errors.setdefault(u, cast(UndefinedError, located(error, u)))
            nowhere = full(i.invalid, outside) | outside
            if u.src[0].shape[axis] == 0 and nowhere.any():
                nothing = np.full(u.shape, OUTSIDE if outside.any() else ABSENT)
                return View((nothing,) * len(view.parts), view.unit)
            view = view.map(partial(_picked, i.data, axis, outside, nowhere))
        return view

    def read(self, location: UOp, reader: UOp, gate: Value | None = None) -> Value:
        """Return the contents of a location as the node `reader` sees them.

        Where a gate is false no element is accessed. Raises UndefinedError for one OUTSIDE.
        """
        base, view = base_of(location), self.views[location]
        put = self.accessed(location, None, gate, reader)
        access = Access(reader, base, _touched(base, view.map(lambda part: part[put])))
        self._refuse_races(self._before[location], [access])
        self._before[reader] |= 2 << (2 * len(self._reads))
        self._reads.append(access)
        return self.peek(location)

    def accessed(self, location: UOp, kept: Mask | None, gate: Value | None, by: UOp) -> Mask:
        """Return the elements of a location that exist, are not kept, and whose gate is true; none
        of these may be OUTSIDE.
        """
        view = self.views[location]
        put = ~view.any_is(ABSENT)
        if kept is not None:
            put &= ~kept
        if gate is not None:
            put &= gate_is_true(gate, by.op)
        if view.any_is(OUTSIDE)[put].any():
            raise self._errors[location]
        return put

    def first(self, location: UOp) -> int:
        """Return the first byte of a location in its buffer; 0 if it is empty."""
        view = self.views[location]
        first = view.parts[0].reshape(-1)
        if not first.size:
            return 0
        if first[0] == OUTSIDE:
            raise self._errors[location]
        if first[0] == ABSENT:
            raise lacking("GETADDR.n1", "an element that PAD has added", location)
        return int(first[0]) * view.unit

    def peek(self, location: UOp) -> Value:
        """Return the contents of a location without recording an access."""
        base = base_of(location)
        contents = self.contents_at(location, base)
        return of_view(contents, base.dtype, self.views[location], location.dtype)

    def write(self, store: UOp, value: Value, gate: Value | None) -> None:
        """Record a STORE; raise UndefinedError if it races with a recorded access."""
        target = store.src[0]
        base = base_of(target)
        put = self.accessed(target, value.invalid, gate, store)
        view = self.views[target].map(lambda part: part[put])
        touched = _touched(base, view)
        if np.count_nonzero(touched) != sum(part.size for part in view.parts):
            twice = int(np.argmax(np.bincount(np.concatenate(view.parts)) > 1))
            element = twice * view.unit // base.dtype.itemsize
            found = f"race: it writes element {element} of the buffer in slot {slot_of(base)} twice"
            raise undefined("STORE.u3", found, store)
        access = Access(store, base, touched)
        before = self._before[store]
        self._refuse_races(before, [access], [access])
        self._before[store] = before | 1 << (2 * len(self._writes))
        self._writes.append(Write(access, view, value.map(lambda a: a[put]), target.dtype))

    def record(self, effect: UOp, base: UOp, touched: Array, value: Value) -> None:
        """Record a checked write: the elements that an effect stores in a buffer."""
        view = View((touched,), base.dtype.itemsize)
        self._before[effect] |= 1 << (2 * len(self._writes))
        access = Access(effect, base, _touched(base, view))
        self._writes.append(Write(access, view, value, base.dtype))

    def called(self, call: UOp, base: UOp, touched: Touched, contents: Value | None) -> None:
        """Record the accesses of a CALL; raise UndefinedError if one races with a recorded access.

        `contents` are those of the buffer after it, flat; None if its kernel has no STORE to it.
        """
        before = self._before[call]
        read, write = Access(call, base, touched.read), Access(call, base, touched.written)
        self._refuse_races(before, [read, write], [write])
        self._before[call] |= 2 << (2 * len(self._reads))
        self._reads.append(read)
        if contents is not None:
            (at,) = np.nonzero(touched.written)
            self.record(call, base, at, contents.map(lambda a: a[at]))

    def _refuse_races(
        self, before: int, accesses: Sequence[Access], writes: Sequence[Access] = ()
    ) -> None:
        """Raise UndefinedError for a race of what a node accesses with what is not before it."""
        for number, write in enumerate(self._writes):
            if not before >> (2 * number) & 1:
                for access in accesses:
                    _refuse_race(write.access, access)
        for number, read in enumerate(self._reads):
            if not before >> (2 * number + 1) & 1:
                for access in writes:
                    _refuse_race(read, access)

    def keeps_elements(self, location: UOp) -> bool:
        """Return whether the elements of a location are elements of its buffer."""
        return is_plain(self.views[location], base_of(location).dtype, location.dtype)

    def contents_at(self, u: UOp, base: UOp) -> Value:
        """Return a flat buffer after the writes that come before a node."""
        return self.contents(base, self._before[u])

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
        return {slot_of(b): take(self.contents(b), self.views[b].parts[0]) for b in bases}


def reads_of(u: UOp) -> tuple[UOp, ...]:
    """Return the locations among the operands of a node whose contents it reads."""
    sources = u.data_src
    if u.addrspace is not None or u.op is Op.STORE:
        sources = sources[1:]
    if u.op in (Op.SINK, Op.GROUP, Op.GETADDR):
        return ()
    locations = tuple(s for s in sources if s.addrspace is not None)
    # The kernel of a CALL reads of a buffer what it needs, and a copy of another view.
    return tuple(s for s in locations if passed_buffer(s) is None) if u.op is Op.CALL else locations


def initial(leaf: UOp, value: Value | None) -> Value:
    """Return the initial contents of a PARAM or BUFFER, flat; unspecified for None."""
    if value is not None:
        return value.map(lambda a: a.reshape(-1))
    count = size(leaf.shape)
    return Value(np.zeros(count, np_dtype(leaf.dtype)), None, np.ones(count, np.bool_))


def _refuse_race(first: Access, second: Access) -> None:
    if first.base is not second.base:
        return
    count = size(first.base.shape)
    both = np.logical_and(*_in_one_unit(first.touched, second.touched))
    if not both.any():
        return
    element = int(np.argmax(both)) * count // both.size
    found = (
        f"race: it and {described(first.node)} access element {element} of the buffer in slot "
        f"{slot_of(first.base)} and nothing orders them"
    )
    raise undefined("STORE.u2", found, second.node, first.node)


def _in_one_unit(a: Mask, b: Mask) -> tuple[Mask, Mask]:
    """Return two masks over a buffer by the smaller one of their units."""
    if a.size == b.size:
        return a, b
    return np.repeat(a, max(b.size // a.size, 1)), np.repeat(b, max(a.size // b.size, 1))


def _touched(base: UOp, view: View) -> Mask:
    touched = np.zeros(size(base.shape) * base.dtype.itemsize // view.unit, np.bool_)
    for part in view.parts:
        touched[part] = True
    return touched


def _picked(i: Array, axis: int, outside: Mask, nowhere: Mask, part: Array) -> Array:
    """Return a part of a view at indices along an axis; marks where these are no positions."""
    part = part.take(np.where(nowhere, 0, i).astype(np.intp), axis=axis)
    trailing = (1,) * (part.ndim - axis - nowhere.ndim)
    outside, nowhere = (m.reshape((*m.shape, *trailing)) for m in (outside, nowhere))
    return np.where(nowhere, np.where(outside, OUTSIDE, ABSENT), part)


def _applied(start: Value, writes: list[Write]) -> Value:
    held = Held(start)
    for w in writes:
        old = w.access.base.dtype
        if is_plain(w.view, old, w.dtype):
            held.put(w.view.parts[0], w.value)
            continue
        unit = unit_of(w.view)
        units, value = Held(bits(held.value, old, unit)), w.value.map(lambda a: a[..., None])
        parts = bits(value, w.dtype, unit)
        for k, part in enumerate(w.view.parts):
            units.put(part, parts.map(itemgetter((..., k))))
        held = Held(bits(units.value, unit, old))
    return held.value


class Held:
    """The contents of a buffer while STOREs change them."""

    def __init__(self, start: Value) -> None:
        self._data = start.data.copy()
        self._masks = [full(m, start.data).copy() for m in (start.unspecified, start.free_nan)]

    def put(self, positions: Array, value: Value) -> None:
        self._data[positions] = value.data
        for mask, new in zip(self._masks, (value.unspecified, value.free_nan), strict=True):
            mask[positions] = False if new is None else new

    @property
    def value(self) -> Value:
        return Value(self._data, None, *(m if m.any() else None for m in self._masks))


ABSENT = -1
OUTSIDE = -2
"""The mark of an element at an index out of bounds: only an access to it is undefined (D-052)."""


@dataclass(frozen=True, slots=True)
class View:
    """The elements of a location as places in its buffer, which is cut into units of some bytes."""

    parts: tuple[Array, ...]
    """The position of the first unit of each element, of the second, and so on. After a BITCAST the
    elements have another size than those of the buffer; a unit has the smaller size.
    """
    unit: int

    def map(self, move: Callable[[Array], Array]) -> View:
        """Apply a movement."""
        return View(tuple(move(part) for part in self.parts), self.unit)

    def any_is(self, mark: int) -> Mask:
        """Return the elements that are ABSENT, or OUTSIDE."""
        return np.asarray(np.logical_or.reduce([part == mark for part in self.parts]))

    def retyped(self, old: int, new: int) -> View:
        """Return the view with elements of another size in bytes: one of several, or several of
        one.
        """
        unit = min(self.unit, new)
        finer = self.unit // unit
        parts = [
            np.where(part < 0, part, part * finer + k) for part in self.parts for k in range(finer)
        ]
        if new > old:
            ratio = new // old
            return View(tuple(p[..., q::ratio] for q in range(ratio) for p in parts), unit)
        each, ratio = new // unit, old // new
        shape = (*parts[0].shape[:-1], -1) if ratio > 1 else parts[0].shape
        several = (np.stack(parts[j::each], axis=-1).reshape(shape) for j in range(each))
        return View(tuple(several), unit)


def is_plain(view: View, old: DType, new: DType) -> bool:
    return old is new and view.unit == old.itemsize


def of_view(contents: Value, old: DType, view: View, new: DType) -> Value:
    """Return the elements of a location of dtype `new`, in a flat buffer of dtype `old`."""
    if is_plain(view, old, new):
        return take(contents, view.parts[0])
    units = bits(contents, old, unit_of(view))
    parts = together([take(units, p) for p in view.parts], lambda a: np.stack(a, axis=-1))
    return bits(parts, unit_of(view), new).map(lambda a: a[..., 0])


def unit_of(view: View) -> DType:
    return DTYPES[f"uint{8 * view.unit}"]


def bits(value: Value, old: DType, new: DType) -> Value:
    """Return the BITCAST of a value."""
    return bitcast(cast_of_bits(value.data.shape, old, new), value)


def cast_of_bits(shape: Shape, old: DType, new: DType) -> UOp:
    """Return a BITCAST of elements in memory."""
    return UOp(Op.BITCAST, param(0, shape, old), arg=DTypeArg(new))


def take(contents: Value, part: Array) -> Value:
    """Pick the elements of flat contents at the positions of a view's part."""
    absent = part < 0
    position = np.where(absent, 0, part)
    if contents.data.size == 0:
        return Value(np.zeros(part.shape, contents.data.dtype), absent if absent.any() else None)

    def pick(mask: Mask | None) -> Mask | None:
        return None if mask is None else mask[position] & ~absent

    return Value(
        # numpy makes a scalar of one element, which is no array.
        np.asarray(contents.data[position]),
        absent if absent.any() else None,
        pick(contents.unspecified),
        pick(contents.free_nan),
    )
