"""Level op, REDUCE: each op and dtype over axes, sizes and special values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, data_key, pick
from uop.conformance.suite.levels.group import Group, Program, op_group, program
from uop.conformance.suite.levels.op.movement import pad_with
from uop.interpreter.numeric.storage import Array
from uop.spec.args import PadFill, ReduceArg
from uop.spec.dtype import DType, Kind
from uop.spec.ops.names import Op
from uop.spec.ops.reduce import REDUCE_OPS
from uop.spec.registry import Shape
from uop.spec.uop import UOp, param

OVER: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((65, 3), (1,)),
    ((2, 33), (0,)),
    ((5, 3, 2), (0, 2)),
    ((7, 2, 2), (1, 2)),
    ((4, 1, 5), (1,)),
    ((33, 2), ()),
    ((), ()),
    ((3, 0, 2), (1,)),
    ((0,), (0,)),
    ((2, 2, 2), (0, 1, 2)),
    ((2, 2, 3), (0, 2)),
    ((3, 2, 2), (0, 2)),
    ((2, 0, 3), (1, 2)),
)
"""A shape and the axes that are folded: few elements, for the accepted set grows with them."""

LONG: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((1025,), (0,)),
    ((3, 401), (1,)),
    ((40, 30), (0, 1)),
)


def groups() -> Iterator[Group]:
    for dtype in values.VALUES:
        for op in REDUCE_OPS:
            group = partial(op_group, Op.REDUCE, dtype)
            yield group(f"{op.name}-axes", (1, 3, len(OVER)), partial(_axes, op, dtype))
            yield group(f"{op.name}-edges", (1, 1, 2), partial(_edges, op, dtype))
            yield group(f"{op.name}-padded", (0, 1, 4), partial(_padded, op, dtype))
            if _stays_tame(op, dtype):
                yield group(f"{op.name}-long", (0, 1, 3), partial(_long, op, dtype))


def _stays_tame(op: Op, dtype: DType) -> bool:
    """Whether folding a thousand elements has a meaning and a narrow accepted set."""
    if dtype.kind is Kind.INDEX:
        return op is not Op.MUL
    return not dtype.is_float or op is Op.MAX or (dtype.bits >= 32 and op is Op.ADD)


def fold(op: Op, t: UOp, axes: tuple[int, ...]) -> UOp:
    return UOp(Op.REDUCE, t, arg=ReduceArg(op, axes))


def tame(op: Op, dtype: DType, n: int, key: int) -> Array:
    """Data that keeps the accepted set of a float fold narrow: positive sums do not cancel."""
    if dtype.is_float and op is Op.ADD:
        return values.draw_positive(dtype, n, key)
    drawn = values.draw_ordinary(dtype, n, key)
    return largest_last(drawn) if op is Op.MAX else drawn


def largest_last(data: Array) -> Array:
    """The same elements, the largest in the last place: a MAX that ends early is without it.

    Of integers, of which several may be as large, it is one more.
    """
    if data.size:
        place = int(np.argmax(data))
        data[[place, -1]] = data[[-1, place]]
        data[-1] += data.dtype.kind in "iu"
    return data


def _axes(op: Op, dtype: DType, choices: Choices, index: int) -> Program:
    first = sum(map(ord, op.name + dtype.name))
    shape, axes = OVER[(first + index) % len(OVER)]
    batches = [tame(op, dtype, prod(shape), data_key(choices)).reshape(shape) for _ in range(2)]
    return program(fold(op, param(0, shape, dtype), axes), *([b] for b in batches))


def _edges(op: Op, dtype: DType, choices: Choices, index: int) -> Program:
    """All pairs of special values, folded in pairs, and ordinary pairs beside them."""
    left, right = values.products(values.sharpest(dtype, 4), values.sharpest(dtype, 4))
    n = len(left)
    t = UOp(Op.STACK, param(0, (n,), dtype), param(1, (n,), dtype))
    tame_pairs = [[tame(op, dtype, n, data_key(choices)) for _ in range(2)] for _ in range(4)]
    return program(fold(op, t, (0,)), [left, right], *tame_pairs)


def _padded(op: Op, dtype: DType, choices: Choices, index: int) -> Program:
    """Absent elements are left out of a fold, zeros are not."""
    shape: Shape = pick(choices, ((5, 3), (2, 2, 3), (4,)))
    fill = (PadFill.INVALID, PadFill.ZERO)[index % 2]
    padded = pad_with(choices, param(0, shape, dtype), fill)
    data = tame(op, dtype, prod(shape), data_key(choices)).reshape(shape)
    return program(fold(op, padded, (len(shape) - 1,)), [data])


def _long(op: Op, dtype: DType, choices: Choices, index: int) -> Program:
    """More than a thousand elements a fold."""
    shape, axes = LONG[index % len(LONG)]
    n = prod(shape)
    data = tame(op, dtype, n, data_key(choices))
    if op is Op.ADD and dtype.is_int:
        # Sums that no wider accumulator of 16 bits holds.
        high = int(dtype.max)
        data = values.draw_within(dtype, n, data_key(choices), high // 2, high)
    return program(fold(op, param(0, shape, dtype), axes), [data.reshape(shape)])
