"""The sets that memory holds: each stored element is followed by a number, through every read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from uop.interpreter.accepted.rules.choices import where
from uop.interpreter.accepted.sets import Sets, points, together, without
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.tensor.memory import Memory
from uop.interpreter.values import Value
from uop.spec.dtype import DType
from uop.spec.errors import UnsupportedError
from uop.spec.graph import LEAVES, base_of, slot_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size

if TYPE_CHECKING:
    from uop.spec.uop import UOp


class Locations:
    """A Memory of numbers; number k of a buffer stands for the k-th set ever put into it."""

    def __init__(self, nodes: Iterable[UOp], given: Mapping[UOp, Value]) -> None:
        self._stored: dict[UOp, list[Sets]] = {}
        numbers: dict[UOp, Value] = {}
        for u in nodes:
            if u.addrspace is not None and u.op in LEAVES:
                self._stored[u] = [_initial(u, given.get(u))]
                numbers[u] = Value(np.arange(size(u.shape)))
        self._memory = Memory(numbers)

    def enter(self, u: UOp) -> None:
        self._memory.enter(u)

    def view(self, location: UOp, values: Mapping[UOp, Value], sets: Mapping[UOp, Sets]) -> None:
        indices = location.src[1:] if location.op is Op.INDEX else ()
        if not all(_is_certain(sets[i]) for i in indices if i in sets):
            raise UnsupportedError("a location at an index that is not certain")
        self._memory.view(location, values)

    def read(self, location: UOp, reader: UOp) -> Sets:
        """The sets that a location holds where `reader` reads it."""
        return self._taken(base_of(location), self._memory.read(location, reader))

    def write(self, store: UOp, sets: Sets, gate: Sets | None) -> None:
        """A STORE; where its gate may be true and false, of the new and the old contents either."""
        base = base_of(store.src[0])
        if gate is not None and not gate.is_point().all():
            held = self._taken(base, self._memory.peek(store.src[0]))
            sets = replace(_either(store, gate, sets, held), invalid=sets.invalid)
        possible = None if gate is None else Value(gate.hi, gate.invalid, gate.any)
        flat = sets.map(lambda a: a.reshape(-1))
        start = sum(len(s.lo) for s in self._stored[base])
        numbers = start + np.arange(len(flat.lo)).reshape(store.src[1].shape)
        self._stored[base].append(flat)
        self._memory.write(store, Value(numbers, sets.invalid), possible)

    def written(self) -> dict[int, tuple[DType, Sets]]:
        """Slot to dtype and final sets, for every buffer that was stored to."""
        bases = {slot_of(base): base for base in self._stored if base.op is Op.BUFFER}
        written = self._memory.written().items()
        return {
            slot: (bases[slot].dtype, self._taken(bases[slot], numbers))
            for slot, numbers in written
        }

    def _taken(self, base: UOp, numbers: Value) -> Sets:
        """The sets with these numbers; what a read leaves out is absent."""
        stored = together(self._stored[base], lambda parts: np.concatenate(parts))
        if len(stored.lo) == 0:
            empty = np.zeros(numbers.data.shape, stored.lo.dtype)
            return Sets(empty, empty, invalid=numbers.invalid)

        def take(a: Array) -> Array:
            return a[numbers.data]

        taken = stored.map(take)
        return Sets(
            taken.lo, taken.hi, taken.nan, taken.only, taken.exact, taken.any, numbers.invalid
        )


def _is_certain(s: Sets) -> bool:
    opened = without(s.any, s.invalid)
    return bool(s.is_point().all()) and (opened is None or not opened.any())


def _either(store: UOp, gate: Sets, new: Sets, old: Sets) -> Sets:
    node = SimpleNamespace(op=Op.WHERE, dtype=store.src[1].dtype)
    wide = gate.map(lambda a: np.broadcast_to(a, new.lo.shape))
    return where(cast(Any, node), STRICT, replace(wide, any=None, invalid=None), new, old)


def _initial(u: UOp, given: Value | None) -> Sets:
    """The contents a buffer starts with; without any, nothing is known of it."""
    if given is None:
        zeros = np.zeros(size(u.shape), np_dtype(u.dtype))
        return Sets(zeros, zeros, any=np.ones(zeros.shape, np.bool_))
    return points(given, u.dtype.is_float).map(lambda a: a.reshape(-1))
