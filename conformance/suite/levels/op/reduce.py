"""Generate level op, REDUCE: each op and dtype over axes, sizes and special values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.nodes import fold, outputs
from uop.conformance.suite.levels.op.movement import random_pad
from uop.conformance.suite.values import draw_ordinary, draw_positive, draw_within, sample
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import PadFill
from uop.spec.dtype import VALUES, DType, Kind, dtypes
from uop.spec.frontend.compositions import prefix_sum
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.registry import Shape, identity_of
from uop.spec.uop import UOp, param

Folds = tuple[tuple[Shape, tuple[int, ...]], ...]
OVER: Folds = (
    *(((65, 3), (1,)), ((2, 33), (0,)), ((5, 3, 2), (0, 2)), ((7, 2, 2), (1, 2))),
    *(((4, 1, 5), (1,)), ((33, 2), ()), ((), ()), ((3, 0, 2), (1,)), ((0,), (0,))),
    *(((2, 2, 2), (0, 1, 2)), ((2, 2, 3), (0, 2)), ((3, 2, 2), (0, 2)), ((2, 0, 3), (1, 2))),
)
"""Shapes and folded axes: few elements, because the accepted set grows with them."""

SCANNED = (dtypes.int32, dtypes.uint8, dtypes.float32)
IN_SMOKE = ("bool", "int8", "uint8", "int32", "float16", "float32")
"""The dtypes whose rows a smoke run folds."""
LENGTHS = (1103, 129, 2051)
"""Lengths that no block of a usual size divides."""
LONG: Folds = (((1025,), (0,)), ((3, 401), (1,)), ((40, 30), (0, 1)))


def groups() -> Iterator[Group]:
    for dtype in VALUES:
        for op in (*FOLDS, Op.MIN):
            for kind, counts, build in KINDS:
                if kind != "long" or _stays_tame(op, dtype):
                    name = f"{op.name}-{kind}"
                    yield group("op", Op.REDUCE, dtype, name, counts, build, op, dtype)
            if dtype is not dtypes.index:
                counts = (int(dtype.name in IN_SMOKE), 1, len(LENGTHS))
                yield group("op", Op.REDUCE, dtype, f"{op.name}-rows", counts, _rows, op, dtype)
    for dtype in SCANNED:
        yield group("op", Op.REDUCE, dtype, "ADD-tiles", (1, 2, 6), _tiles, dtype)
        yield group("op", Op.REDUCE, dtype, "ADD-scan", (1, 2, 4), _scanned, dtype)


def _stays_tame(op: Op, dtype: DType) -> bool:
    """Return whether a fold of a thousand elements has a meaning and a narrow accepted set."""
    if dtype.kind is Kind.INDEX:
        return op is not Op.MUL
    return not dtype.is_float or op is Op.MAX or (dtype.bits >= 32 and op is Op.ADD)


def tame(op: Op, dtype: DType, shape: Shape | int, choices: Choices) -> Array:
    """Sample data with a narrow accepted set of a float fold: positive sums do not cancel."""
    if dtype.is_float and op is Op.ADD:
        return sample(draw_positive, dtype, shape, choices)
    data = sample(draw_ordinary, dtype, shape, choices)
    return largest_last(data) if op is Op.MAX else data


def largest_last(data: Array) -> Array:
    """Swap the largest element into the last place: a MAX that ends early misses it.

    An integer there becomes one more, because several elements may be as large.
    """
    if data.size:
        flat = data.reshape(-1)
        place = int(np.argmax(flat))
        flat[[place, -1]] = flat[[-1, place]]
        flat[-1] += data.dtype.kind in "iu"
    return data


def _axes(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    first = sum(map(ord, op.name + dtype.name))
    shape, axes = OVER[(first + index) % len(OVER)]
    batches = [tame(op, dtype, shape, choices) for _ in range(2)]
    return program(fold(op, param(0, shape, dtype), axes), *([b] for b in batches))


def _edges(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold all pairs of special values, together with ordinary pairs."""
    left, right = values.products(values.sharpest(dtype, 4), values.sharpest(dtype, 4))
    n = len(left)
    t = UOp(Op.STACK, param(0, (n,), dtype), param(1, (n,), dtype))
    pairs = [[tame(op, dtype, n, choices) for _ in range(2)] for _ in range(4)]
    return program(fold(op, t, (0,)), [left, right], *pairs)


def _padded(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold absent elements, which are left out, and zeros, which are not."""
    shape: Shape = choices.pick(((5, 3), (2, 2, 3), (4,)))
    fill = (PadFill.INVALID, PadFill.ZERO)[index % 2]
    padded = random_pad(choices, param(0, shape, dtype), fill)
    return program(fold(op, padded, (len(shape) - 1,)), [tame(op, dtype, shape, choices)])


def _long(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    shape, axes = LONG[index % len(LONG)]
    data = tame(op, dtype, shape, choices)
    if op is Op.ADD and dtype.is_int:
        # Sums that no wider accumulator of 16 bits holds.
        high = int(dtype.max)
        data = sample(draw_within(high // 2, high), dtype, shape, choices)
    return program(fold(op, param(0, shape, dtype), axes), [data])


def _rows(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold long rows that show one element too few or too many, and a wrong start.

    They are the neutral element alone; with another element in the first place, in the last, and
    anywhere; one value; for MAX and MIN values of one sign; for integers large ones.
    """
    length, nothing = LENGTHS[index % len(LENGTHS)], identity_of(op, dtype)
    other = sample(draw_positive, dtype, 3, choices)
    rows = np.full((4, length), nothing, np_dtype(dtype))
    for row, place in enumerate((0, length - 1, choices.below(length)), 1):
        rows[row, place] = other[row - 1]
    more = [rows]
    if op in (Op.MAX, Op.MIN):
        positive = sample(draw_positive, dtype, (2, length), choices)
        more += [largest_last(positive), -positive] if dtype.is_float or dtype.is_signed else []
    if dtype.is_int and op is not Op.MUL:
        high = int(dtype.max)
        more.append(sample(draw_within(high // 2, high), dtype, (1, length), choices))
    data = np.concatenate(more)
    return program(fold(op, param(0, data.shape, dtype), (1,)), [data])


def _tiles(dtype: DType, choices: Choices, index: int) -> Generated:
    """Sum matrices along each axis to rows that no vector divides; no sum has a rounding."""
    side = (13, 9, 11, 17, 10, 35)[index % 6]
    t = param(0, (3, 4, side), dtype)
    data = sample(draw_within(1, 9), dtypes.int32, (3, 4, side), choices).astype(np_dtype(dtype))
    return program(outputs(*(fold(Op.ADD, t, axes) for axes in ((1,), (0,), (2,), (0, 1)))), [data])


def _scanned(dtype: DType, choices: Choices, index: int) -> Generated:
    """Sum all elements up to each one, of so many that a compiler may do it in blocks."""
    n = 128 + choices.between(1, 40)
    x = Tensor(param(0, (n,), dtype))
    sums = prefix_sum(x.flip(0)).flip(0) if index % 2 else prefix_sum(x)
    return program(sums.uop, [tame(Op.ADD, dtype, (n,), choices)])


KINDS = (
    ("axes", (1, 2, len(OVER)), _axes),
    ("edges", (1, 1, 2), _edges),
    ("padded", (0, 1, 4), _padded),
    ("long", (0, 1, 3), _long),
)
