"""Track the accepted sets of memory, by a number for each stored element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.accepted.result import Accepted, narrowed
from uop.interpreter.accepted.rules.choices import bitcast, where
from uop.interpreter.accepted.sets import Sets, points, together, without
from uop.interpreter.numeric.storage import Array
from uop.interpreter.tensor.memory import TensorMemory, Touched, cast_of_bits, initial, unit_of
from uop.interpreter.values import Value
from uop.spec.dtype import DType
from uop.spec.errors import UnsupportedError
from uop.spec.graph import base_of, slot_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size

if TYPE_CHECKING:
    from uop.spec.uop import UOp


class AcceptedMemory:
    """The memory of the reference, with a parallel memory of set numbers.

    Number k of a buffer stands for the k-th set that was put into it.
    """

    def __init__(self, contents: Mapping[UOp, Accepted | None]) -> None:
        self._stored = {u: [_initial(u, held)] for u, held in contents.items()}
        self._values = TensorMemory({u: _value(held) for u, held in contents.items()})
        self._numbers = TensorMemory({u: Value(np.arange(size(u.shape))) for u in contents})

    def enter(self, u: UOp) -> None:
        self._values.enter(u)
        self._numbers.enter(u)

    def view(self, location: UOp, indices: Sequence[Accepted]) -> None:
        positions = [i.value for i in indices]
        self._values.view(location, positions)
        if not all(i.sets is None or _is_certain(i.sets) for i in indices):
            raise UnsupportedError("a location at an index that is not certain")
        self._numbers.view(location, positions)

    def first(self, location: UOp) -> int:
        return self._values.first(location)

    def read(self, location: UOp, reader: UOp, gate: Accepted | None = None) -> Accepted:
        """Return the sets of a location; where its gate may be true, it is accessed."""
        base, possible = base_of(location), None if gate is None else _possible(gate)
        value = self._values.read(location, reader, possible)
        if self._values.keeps_elements(location):
            numbers = self._numbers.read(location, reader, possible)
            return Accepted(location.dtype, value, self._taken(base, numbers))
        contents = self._taken(base, self._numbers.contents_at(location, base))
        view = self._values.views[location]
        units = _bits(contents, base.dtype, unit_of(view))
        parts = together([_at(units, p) for p in view.parts], lambda a: np.stack(a, axis=-1))
        sets = _bits(parts, unit_of(view), location.dtype).map(lambda a: a[..., 0])
        return Accepted(location.dtype, value, sets)

    def write(self, store: UOp, value: Accepted, gate: Accepted | None) -> None:
        """Record a STORE; where its gate may be true or false, the old contents may stay."""
        self._values.write(store, value.value, _value(gate))
        if not self._values.keeps_elements(store.src[0]):
            self._write_bits(store, value, gate)
            return
        base, sets, possible = base_of(store.src[0]), value.spread, None
        if gate is not None:
            taken, possible = gate.spread, _possible(gate)
            if not taken.is_point().all():
                held = self._taken(base, self._numbers.peek(store.src[0]))
                sets = replace(_either(store, taken, sets, held), invalid=sets.invalid)
        flat = sets.map(lambda a: a.reshape(-1))
        numbers = self._put(base, flat) + np.arange(len(flat.lo)).reshape(store.src[1].shape)
        self._numbers.write(store, Value(numbers, sets.invalid), possible)

    def _write_bits(self, store: UOp, value: Accepted, gate: Accepted | None) -> None:
        """Record a STORE through a BITCAST: the sets of the buffer's elements that it touches."""
        if gate is not None and not gate.spread.is_point().all():
            raise UnsupportedError("a STORE through a BITCAST with a gate that is not certain")
        target, base = store.src[0], base_of(store.src[0])
        view, unit = self._values.views[target], unit_of(self._values.views[target])
        put = self._values.accessed(target, value.value.invalid, _value(gate), store)
        # STOREs to other bytes of an element need no order: those so far all stay.
        before = _bits(self._taken(base, self._numbers.contents(base)), base.dtype, unit)
        new = _bits(value.spread.map(lambda a: a[put][..., None]), target.dtype, unit)
        units = together([before, new.map(lambda a: a.reshape(-1))], np.concatenate)
        which = np.arange(len(before.lo))
        each = len(view.parts)
        for k, part in enumerate(view.parts):
            which[part[put]] = len(which) + k + each * np.arange(np.count_nonzero(put))
        after = _bits(units.map(lambda a: a[which]), unit, base.dtype)
        touched = np.unique(
            np.concatenate([part[put] * view.unit // base.dtype.itemsize for part in view.parts])
        )
        self._numbers.record(store, base, touched, Value(self._put(base, after) + touched))

    def contents_at(self, u: UOp, base: UOp) -> Accepted:
        """Return the sets of a flat buffer after the writes that come before a node."""
        value = self._values.contents_at(u, base)
        sets = self._taken(base, self._numbers.contents_at(u, base))
        return narrowed(base.dtype, value, sets)

    def called(self, call: UOp, base: UOp, touched: Touched, contents: Accepted | None) -> None:
        """Record the accesses of a CALL, and the sets that its kernel leaves in a buffer."""
        self._values.called(call, base, touched, _value(contents))
        if contents is not None:
            (at,) = np.nonzero(touched.written)
            self._numbers.record(call, base, at, Value(self._put(base, contents.spread) + at))

    def written(self) -> dict[int, Accepted]:
        bases = {slot_of(base): base for base in self._stored if base.op is Op.BUFFER}
        numbers = self._numbers.written()
        return {
            slot: Accepted(bases[slot].dtype, value, self._taken(bases[slot], numbers[slot]))
            for slot, value in self._values.written().items()
        }

    def _put(self, base: UOp, sets: Sets) -> int:
        """Put flat sets into a buffer; return the number of the first."""
        start = sum(len(s.lo) for s in self._stored[base])
        self._stored[base].append(sets)
        return start

    def _taken(self, base: UOp, numbers: Value) -> Sets:
        stored = together(self._stored[base], np.concatenate)
        if len(stored.lo) == 0:
            stored = Sets(np.zeros(1, stored.lo.dtype), np.zeros(1, stored.lo.dtype))
        return replace(stored.map(lambda a: a[numbers.data]), invalid=numbers.invalid)


def _bits(s: Sets, old: DType, new: DType) -> Sets:
    """Return what BITCAST makes of sets in memory."""
    return bitcast(cast_of_bits(s.lo.shape, old, new), STRICT, s)


def _at(units: Sets, part: Array) -> Sets:
    """Return the units at the positions of a view's part."""
    absent = part < 0
    if not len(units.lo):
        units = Sets(np.zeros(1, units.lo.dtype), np.zeros(1, units.lo.dtype))
    taken = units.map(lambda a: a[np.where(absent, 0, part)])
    return replace(taken, invalid=absent) if absent.any() else taken


def _is_certain(s: Sets) -> bool:
    opened = without(s.any, s.invalid)
    return bool(s.is_point().all()) and (opened is None or not opened.any())


def _possible(gate: Accepted) -> Value:
    return Value(gate.spread.hi, gate.spread.invalid, gate.spread.any)


def _either(store: UOp, gate: Sets, new: Sets, old: Sets) -> Sets:
    wide = gate.map(lambda a: np.broadcast_to(a, new.lo.shape))
    return where(store, STRICT, replace(wide, any=None, invalid=None), new, old)


def _value(accepted: Accepted | None) -> Value | None:
    return None if accepted is None else accepted.value


def _initial(u: UOp, held: Accepted | None) -> Sets:
    """Return the initial sets of a buffer, flat; anything for None."""
    if held is None:
        return points(initial(u, None), u.dtype.is_float)
    return held.spread.map(lambda a: a.reshape(-1))
