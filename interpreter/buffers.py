"""Memory of kernel programs: buffers shared by all work items, and registers of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from uop.interpreter.memory import slot_of
from uop.interpreter.numeric import np_dtype
from uop.interpreter.values import Array, Mask, Value
from uop.spec.args import BinaryArg
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size

if TYPE_CHECKING:
    from uop.spec.uop import UOp


class Buffer:
    """Flat mutable memory: elements on the last axis, before it the work items where private."""

    def __init__(self, contents: Value, *, private: bool = False) -> None:
        self._data = contents.data
        self._unspecified = _or_zeros(contents.unspecified, contents.data.shape)
        self._free_nan = _or_zeros(contents.free_nan, contents.data.shape)
        self._private = private
        self._is_written = False
        self.is_stored_to = False

    @classmethod
    def unwritten(cls, u: UOp, axes: int) -> Buffer:
        """Registers of a BUFFER node: one copy a work item, grown when a write needs it."""
        data = np.zeros((1,) * axes + (size(u.shape),), np_dtype(u.dtype))
        return cls(Value(data, None, np.ones(data.shape, np.bool_)), private=True)

    @property
    def size(self) -> int:
        return int(self._data.shape[-1])

    @property
    def contents(self) -> Value:
        return Value(self._data, None, _or_none(self._unspecified), _or_none(self._free_nan))

    def read(self, positions: Array, gate: Mask | None = None) -> Value:
        """The elements at these positions, each work item from its own copy where private."""
        data, unspecified, free_nan = (
            self._at(array, positions) for array in (self._data, self._unspecified, self._free_nan)
        )
        if self._private and not self._is_written and (gate is None or gate.any()):
            raise UndefinedError("a register is read before it is written")
        return Value(data, None, _or_none(unspecified), _or_none(free_nan))

    def _at(self, array: Array, positions: Array) -> Array:
        if not self._private:
            return array[positions]
        if positions.size == 1:
            return array[..., int(positions.reshape(-1)[0])]
        lanes = np.broadcast_shapes(array.shape[:-1], positions.shape)
        spread = np.broadcast_to(array, (*lanes, self.size))
        picked = np.broadcast_to(positions, lanes)[..., None]
        return np.take_along_axis(spread, picked, axis=-1)[..., 0]

    def write(self, positions: Array, value: Value, gate: Mask | None) -> None:
        """One write a work item; two to one element of shared memory are a race."""
        lanes = np.broadcast_shapes(
            positions.shape, value.data.shape, *(() if gate is None else (gate.shape,))
        )
        if self._private:
            lanes = np.broadcast_shapes(lanes, self._data.shape[:-1])
            self._grow(lanes)
        put = np.ones(lanes, np.bool_) if gate is None else np.broadcast_to(gate, lanes)
        where = np.broadcast_to(positions, lanes)[put]
        target: tuple[Array, ...] = (where,)
        if self._private:
            target = (*(np.nonzero(put) if put.ndim else ()), where)
        elif len(np.unique(where)) != where.size:
            raise UndefinedError("race: two work items write one element")
        self._data[target] = np.broadcast_to(value.data, lanes)[put]
        self._is_written = True
        for mask, given in (
            (self._unspecified, value.unspecified),
            (self._free_nan, value.free_nan),
        ):
            mask[target] = False if given is None else np.broadcast_to(given, lanes)[put]

    def _grow(self, lanes: tuple[int, ...]) -> None:
        if lanes != self._data.shape[:-1]:
            wanted = (*lanes, self.size)
            self._data = np.broadcast_to(self._data, wanted).copy()
            self._unspecified = np.broadcast_to(self._unspecified, wanted).copy()
            self._free_nan = np.broadcast_to(self._free_nan, wanted).copy()


class Buffers:
    """The global memory of a program: one Buffer a BUFFER node."""

    def __init__(self, given: Mapping[UOp, Value]) -> None:
        self._given = given
        self._buffers: dict[UOp, Buffer] = {}

    def of_argument(self, argument: UOp) -> Buffer:
        """The memory behind an argument of a CALL."""
        u = argument
        while u.op is Op.AFTER:
            u = u.src[0]
        if u.op is Op.BINARY:
            return Buffer(Value(np.frombuffer(cast(BinaryArg, u.arg).data, np.uint8)))
        if u.op is not Op.BUFFER:
            raise UnsupportedError(f"{u.op.name} as argument of a CALL")
        if u not in self._buffers:
            self._buffers[u] = Buffer(self._initial(u))
        return self._buffers[u]

    def _initial(self, u: UOp) -> Value:
        count = size(u.shape)
        if u not in self._given:
            return Value(np.zeros(count, np_dtype(u.dtype)), None, np.ones(count, np.bool_))
        value = self._given[u]
        return Value(
            value.data.reshape(-1).copy(),
            None,
            None if value.unspecified is None else value.unspecified.reshape(-1),
            None if value.free_nan is None else value.free_nan.reshape(-1),
        )

    def written(self) -> dict[int, Value]:
        """Slot to contents, in the shape of the BUFFER, of what a kernel stores to."""
        return {
            slot_of(u): _shaped(b.contents, u.shape)
            for u, b in self._buffers.items()
            if b.is_stored_to
        }


def _shaped(value: Value, shape: tuple[int, ...]) -> Value:
    def shaped(mask: Mask | None) -> Mask | None:
        return None if mask is None else mask.reshape(shape)

    return Value(value.data.reshape(shape), None, shaped(value.unspecified), shaped(value.free_nan))


def _or_zeros(mask: Mask | None, shape: tuple[int, ...]) -> Mask:
    return np.zeros(shape, np.bool_) if mask is None else np.array(mask)


def _or_none(mask: Mask) -> Mask | None:
    return mask if mask.any() else None
