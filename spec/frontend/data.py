"""The data of Tensors: conversion from nested lists, and BUFFERs bound to contents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import count
from weakref import WeakKeyDictionary

from uop.spec.args import BufferArg, Device
from uop.spec.conditions.labels import TENSOR_C1, TENSOR_C2
from uop.spec.dtype import DType, Number, Scalar, dtypes
from uop.spec.errors import InvalidError, users_line
from uop.spec.frontend.evaluator import Held, evaluator
from uop.spec.graph import leaves, slot_of
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.text.array import Array
from uop.spec.uop import UOp, const, dims

Nested = Number | Sequence["Nested"]
NUMBERS = (bool, int, float, Fraction)

_BOUND: WeakKeyDictionary[UOp, Held] = WeakKeyDictionary()
_SLOTS = count()


def bound(held: Held, device: Device) -> UOp:
    """A new BUFFER, bound to these contents while it lives."""
    arg = BufferArg(next(_SLOTS), held.dtype, device)
    buffer = UOp(Op.BUFFER, dims(held.shape), arg=arg)
    _BOUND[buffer] = held
    return buffer


def contents(root: UOp) -> dict[int, Held]:
    """The contents of the bound BUFFERs of a graph, by slot."""
    found: dict[int, Held] = {}
    for u in leaves(root):
        held = _BOUND.get(u)
        if held is not None:
            found[slot_of(u)] = held
    return found


def held_by(u: UOp) -> Held | None:
    """The contents of a bound BUFFER; None for any other node."""
    return _BOUND.get(u)


def elements(held: Held) -> list[Scalar]:
    """The values of contents in row-major order."""
    data = held.data if isinstance(held.data, bytes) else evaluator().array(held).tobytes()
    return Array(held.dtype, held.shape, data).values


def held_list(data: Nested, dtype: DType | None) -> Held:
    """The contents of nested lists."""
    shape, flat = _flattened(data)
    chosen = dtype or common_dtype(flat)
    try:
        return Held(chosen, shape, Array.of(flat, chosen, shape).data)
    except ValueError as error:
        raise no_value(chosen, str(error)) from None


def number(value: Number, dtype: DType) -> UOp:
    """A Python number as a constant of a dtype; InvalidError if it is no value of the dtype."""
    try:
        return _constant(value, math.copysign(1, value) if value == 0 else 0, dtype)
    except ValueError as error:
        raise no_value(dtype, str(error)) from None


@lru_cache(maxsize=256, typed=True)
def _constant(value: Number, sign: float, dtype: DType) -> UOp:
    """A constant; its exact encoding takes longer than a node. `sign` separates -0.0 from 0.0."""
    return const(value, dtype)


def common_dtype(values: Sequence[Number]) -> DType:
    """The first of bool, int32 and float32 that holds all of these."""
    if values and all(isinstance(v, bool) for v in values):
        return dtypes.bool
    return dtypes.int32 if values and all(isinstance(v, int) for v in values) else dtypes.float32


def no_value(dtype: DType, found: str) -> InvalidError:
    return TENSOR_C1.error(dtype.name, found, users_line())


def _flattened(data: Nested) -> tuple[Shape, list[Number]]:
    """The shape of nested lists and their numbers in row-major order."""
    shape: list[int] = []
    level: list[Nested] = [data]
    while not all(isinstance(item, NUMBERS) for item in level):
        sizes = {len(item) if isinstance(item, list | tuple) else None for item in level}
        if None in sizes or len(sizes) != 1:
            raise _no_array(level, len(shape))
        shape.append(sizes.pop() or 0)
        level = [below for item in level if isinstance(item, list | tuple) for below in item]
        if not level:
            break
    return tuple(shape), [item for item in level if isinstance(item, NUMBERS)]


def _no_array(level: list[Nested], depth: int) -> InvalidError:
    found = ", ".join(
        f"a list of {len(item)}" if isinstance(item, list | tuple) else type(item).__name__
        for item in level[:4]
    )
    return TENSOR_C2.error(f"depth {depth}", found, users_line())
