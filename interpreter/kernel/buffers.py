"""Hold the memory of kernel programs: buffers that work items share, registers, and addresses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass
from math import prod
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.kernel.lanes import Shape, broadcast, lanes_of
from uop.interpreter.numeric.storage import Array, Mask, np_dtype
from uop.interpreter.rules.table import RULES
from uop.interpreter.tensor.memory import Touched, initial
from uop.interpreter.values import Value, either
from uop.spec.args import BinaryArg, arg_of
from uop.spec.conditions.clauses import undefined
from uop.spec.dtype import DType, dtypes
from uop.spec.graph import base_of, slot_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size

if TYPE_CHECKING:
    from uop.spec.uop import UOp

MASKS = ("unspecified", "free_nan", "unwritten")


@dataclass(frozen=True, slots=True)
class Place:
    """The target of an access: positions on lanes and on `rank` axes of its shape, and its gate."""

    positions: Array
    gate: Mask | None
    rank: int

    @property
    def shape(self) -> Shape:
        gate = () if self.gate is None else self.gate.shape
        return broadcast(self.positions.shape, gate)

    def over(self, *shapes: Shape) -> Place:
        """Broadcast the place to a wider shape."""
        shape = broadcast(self.shape, *shapes)
        gate = None if self.gate is None else np.broadcast_to(self.gate, shape)
        return Place(np.broadcast_to(self.positions, shape), gate, self.rank)

    def selected(self, array: Array) -> Array:
        """Broadcast an array to the place, and return its elements where the gate is true."""
        wide = np.broadcast_to(array, self.shape)
        return wide if self.gate is None else wide[np.broadcast_to(self.gate, self.shape)]

    def need_distinct(self) -> None:
        """Raise UndefinedError where one work item names an element twice."""
        own = prod(self.positions.shape[len(lanes_of(self.positions, self.rank)) :])
        if own < 2:
            return
        positions = self.over().positions
        if self.gate is not None:
            unused = -1 - np.arange(own).reshape(positions.shape[-self.rank :])
            positions = np.where(self.gate, positions, unused)
        ordered = np.sort(positions.reshape(-1, own), axis=-1)
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            doubled = ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]]
            found = f"race: one work item writes element {int(doubled[0])} twice at once"
            raise undefined("STORE.u3", found)


def _first_unwritten(never: Mask, place: Place) -> str:
    at = np.argwhere(np.broadcast_to(never, broadcast(never.shape, place.shape)))[0]
    positions = np.broadcast_to(place.positions, broadcast(never.shape, place.shape))
    return f"element {int(positions[tuple(at)])}"


class Cells(ABC):
    """Elements that are read and written at places; a mask of None is set nowhere."""

    def __init__(self, data: Array, *, unwritten: bool) -> None:
        self.data = data
        self.masks: dict[str, Mask | None] = dict.fromkeys(MASKS)
        if unwritten:
            self.masks["unwritten"] = np.ones(data.shape, np.bool_)

    @abstractmethod
    def _pick(self, array: Array, place: Place) -> Array: ...

    @abstractmethod
    def _put(self, array: Array, place: Place, values: Array | bool) -> None: ...

    def read(self, place: Place) -> Value:
        """Read a place. Where its gate is false, the elements are arbitrary and not unspecified."""
        never = self._picked("unwritten", place)
        if never is not None:
            raise undefined(
                "LOAD.u2", f"{_first_unwritten(never, place)} is read before it is written"
            )
        data = self._pick(self.data, place)
        return Value(
            data, None, self._picked("unspecified", place), self._picked("free_nan", place)
        )

    def with_contents(self, data: Array) -> Cells:
        """Return memory of the same layout with other contents and without masks."""
        other = copy(self)
        other.data, other.masks = data, dict.fromkeys(MASKS)
        return other

    def _picked(self, name: str, place: Place) -> Mask | None:
        mask = self.masks[name]
        if mask is None:
            return None
        picked = self._pick(mask, place)
        if place.gate is not None:
            picked = picked & place.gate
        return picked if picked.any() else None

    def write(self, place: Place, value: Value) -> None:
        self._put(self.data, place, value.data)
        masks = {"unspecified": value.unspecified, "free_nan": value.free_nan, "unwritten": None}
        for name, new in masks.items():
            mask = self.masks[name]
            if new is not None and mask is None:
                self.masks[name] = mask = np.zeros(self.data.shape, np.bool_)
            if mask is not None:
                self._put(mask, place, False if new is None else new)
        unwritten = self.masks["unwritten"]
        if unwritten is not None and not unwritten.any():
            self.masks["unwritten"] = None


class Buffer(Cells):
    """Flat memory that work items share; LOCAL memory has one copy per workgroup, end to end."""

    def __init__(self, data: Array, *, copies: int = 1, unwritten: bool = False) -> None:
        super().__init__(data, unwritten=unwritten)
        self.size = data.size // max(copies, 1)
        self.is_stored_to = False
        self.owner: Hashable = self
        """What has its address."""
        self.touched: Touched | None = None

    @classmethod
    def holding(cls, contents: Value) -> Buffer:
        """Make a buffer with these flat contents, whose absent elements are unspecified."""
        buffer = cls(contents.data)
        buffer.masks["unspecified"] = either(contents.unspecified, contents.invalid)
        buffer.masks["free_nan"] = contents.free_nan
        return buffer

    @classmethod
    def watched(cls, contents: Value, owner: Hashable) -> Buffer:
        """Make a buffer of a copy of some contents that records which elements are accessed."""
        buffer = cls.holding(contents.map(lambda a: a.reshape(-1).copy()))
        shape = buffer.data.shape
        buffer.owner = owner
        buffer.touched = Touched(np.zeros(shape, np.bool_), np.zeros(shape, np.bool_))
        return buffer

    @classmethod
    def local(cls, u: UOp, groups: int) -> Buffer:
        data = np.zeros(groups * size(u.shape), np_dtype(u.dtype))
        return cls(data, copies=groups, unwritten=True)

    @property
    def contents(self) -> Value:
        masks = (self.masks[name] for name in MASKS)
        unspecified, free_nan, _ = (m if m is not None and m.any() else None for m in masks)
        return Value(self.data, None, unspecified, free_nan)

    def saved(self) -> Value:
        """Copy the contents for `restore`."""
        masks = (None if m is None else m.copy() for m in map(self.masks.get, MASKS[:2]))
        return Value(self.data.copy(), None, *masks)

    def restore(self, saved: Value) -> None:
        self.data[...] = saved.data
        self.masks["unspecified"], self.masks["free_nan"] = saved.unspecified, saved.free_nan

    def write(self, place: Place, value: Value) -> None:
        super().write(place.over(value.data.shape), value)

    def add(self, place: Place, value: Value, dtype: DType) -> None:
        """Add each element to that at its position, in row-major order of the lanes."""
        self.read(place)
        place = place.over(value.data.shape)
        where, terms = place.selected(place.positions), place.selected(value.data)
        if dtype is dtypes.bool:
            np.logical_or.at(self.data, where, terms)
        elif dtype in (dtypes.float32, dtypes.float64) or not dtype.is_float:
            np.add.at(self.data, where, terms)
        else:
            _add_in_turn(self.data, where.reshape(-1), terms.reshape(-1), dtype)
        if value.unspecified is not None:
            self._mark("unspecified", where[place.selected(value.unspecified)])
        if dtype.is_float:
            self._mark("free_nan", where[np.isnan(self.data[where])])

    def _mark(self, name: str, where: Array) -> None:
        if where.size:
            mask = self.masks[name]
            if mask is None:
                self.masks[name] = mask = np.zeros(self.data.shape, np.bool_)
            mask[where] = True

    def _pick(self, array: Array, place: Place) -> Array:
        return np.asarray(array[place.positions])

    def _put(self, array: Array, place: Place, values: Array | bool) -> None:
        array[place.selected(place.positions)] = (
            values if isinstance(values, bool) else place.selected(values)
        )


def _add_in_turn(data: Array, where: Array, terms: Array, dtype: DType) -> None:
    """Add by the rule of ADD; every element gets its first term before any gets a second."""
    order = np.argsort(where, kind="stable")
    at = where[order]
    first = np.searchsorted(at, at)
    turn = np.arange(len(at)) - first
    node = SimpleNamespace(dtype=dtype)
    for k in range(int(turn.max(initial=-1)) + 1):
        now = order[turn == k]
        data[where[now]] = RULES[Op.ADD](node, data[where[now]], terms[now])


class Registers(Cells):
    """The registers of each work item: lanes, then elements on the last axis.

    A write grows the lanes where it needs to.
    """

    def __init__(self, u: UOp, lanes: int) -> None:
        data = np.zeros((1,) * lanes + (size(u.shape),), np_dtype(u.dtype))
        super().__init__(data, unwritten=True)
        self.size = size(u.shape)

    def write(self, place: Place, value: Value) -> None:
        shape = broadcast(place.shape, value.data.shape)
        here = shape[: len(shape) - place.rank]
        lanes = broadcast(here, self.data.shape[:-1])
        if lanes != self.data.shape[:-1]:
            self.data = np.broadcast_to(self.data, (*lanes, self.size)).copy()
            for name, mask in self.masks.items():
                if mask is not None:
                    self.masks[name] = np.broadcast_to(mask, self.data.shape).copy()
        super().write(place, value)

    def add(self, place: Place, value: Value, dtype: DType) -> None:
        before = self.read(place)
        node = SimpleNamespace(dtype=dtype)
        total = np.asarray(RULES[Op.ADD](node, before.data, value.data))
        nan = np.isnan(total) if dtype.is_float else None
        unspecified = either(before.unspecified, value.unspecified)
        self.write(place, Value(total, None, unspecified, nan))

    def _pick(self, array: Array, place: Place) -> Array:
        positions, here = place.positions, lanes_of(place.positions, place.rank)
        own = positions.shape[len(here) :]
        if prod(here) == 1:
            return np.asarray(array[..., positions.reshape(own)])
        lanes = broadcast(array.shape[:-1], here)
        wide = np.broadcast_to(array, (*lanes, self.size))
        picked = np.broadcast_to(positions.reshape(*here, prod(own)), (*lanes, prod(own)))
        return np.take_along_axis(wide, picked, axis=-1).reshape(*lanes, *own)

    def _put(self, array: Array, place: Place, values: Array | bool) -> None:
        positions, here = place.positions, lanes_of(place.positions, place.rank)
        own = positions.shape[len(here) :]
        if prod(here) == 1:
            at = (..., positions.reshape(own))
            array[at] = values if place.gate is None else np.where(place.gate, values, array[at])
            return
        full = (*array.shape[:-1], *own)
        grid = np.ogrid[tuple(slice(n) for n in full)][: array.ndim - 1]
        where = (*grid, np.broadcast_to(positions, full))
        array[where] = values if place.gate is None else np.where(place.gate, values, array[where])


class Buffers:
    """The global memory of a program: one Buffer for each BUFFER node."""

    def __init__(self, inputs: Mapping[UOp, Value]) -> None:
        self._inputs = inputs
        self._buffers: dict[UOp, Buffer] = {}
        self.addresses = Addresses()

    def of_argument(self, argument: UOp) -> Buffer:
        """Return the memory that an argument of a CALL names."""
        u = base_of(argument)
        if u.op is Op.BINARY:
            return Buffer(np.frombuffer(arg_of(u, BinaryArg).data, np.uint8))
        if u not in self._buffers:
            self._buffers[u] = Buffer.holding(initial(u, self._inputs.get(u)).map(np.copy))
        return self._buffers[u]

    def written(self) -> dict[int, Value]:
        """Map slots to the contents of the BUFFERs that a kernel stores to, in their shapes."""
        stored = self.stored_to().items()
        return {slot_of(u): b.contents.map(lambda a, u=u: a.reshape(u.shape)) for u, b in stored}  # type: ignore[misc]

    def stored_to(self) -> dict[UOp, Buffer]:
        """Return the memory of each BUFFER that a kernel stores to."""
        return {u: b for u, b in self._buffers.items() if b.is_stored_to}


ALIGNMENT = 256
"""The alignment of buffers in bytes: more than any element needs."""


class Addresses:
    """The addresses of buffers on devices, assigned on first use.

    No address is 0, and no two buffers overlap.
    """

    def __init__(self) -> None:
        self._next = ALIGNMENT
        self._assigned: dict[tuple[Hashable, str], int] = {}

    def of(self, buffer: Hashable, size: int, device: str) -> int:
        """Return the address on a device of a buffer of `size` bytes."""
        key = buffer, device
        if key not in self._assigned:
            self._assigned[key] = self._next
            self._next += (size // ALIGNMENT + 1) * ALIGNMENT
        return self._assigned[key]
