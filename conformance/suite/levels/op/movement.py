"""Level op, movement: views with random args over every dtype, and what consumes a fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, between, chance, data_key, pick, shuffled
from uop.conformance.suite.levels.group import Group, Program, copying_group, op_group, program
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import (
    BufferArg,
    FlipArg,
    PadArg,
    PadFill,
    ParamArg,
    PermuteArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
)
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, dims, index_const, param

View = Callable[[Choices, UOp], UOp]

SHAPES: tuple[Shape, ...] = (
    (2, 3, 4),
    (5, 7),
    (13,),
    (),
    (3, 1, 5),
    (0, 3),
    (2, 2, 3, 3),
    (1025,),
    (33, 32),
)


def groups() -> Iterator[Group]:
    for k, dtype in enumerate(values.VALUES):
        for turn, (op, view) in enumerate(VIEWS.items(), k):
            yield copying_group(op, dtype, "view", (1, 2, 9), partial(_view, op, view, dtype))
            usual = int(turn % len(VIEWS) == 0)
            yield op_group(op, dtype, "below", (0, usual, 2), partial(_below, view, dtype))
        yield copying_group(Op.PAD, dtype, "consumed", (1, 4, 12), partial(_consumed, dtype))
        yield copying_group(Op.INDEX, dtype, "constant", (1, 2, 6), partial(_index_constant, dtype))
        yield copying_group(Op.INDEX, dtype, "data", (1, 2, 8), partial(_index_data, dtype))
        yield copying_group(Op.STACK, dtype, "join", (1, 2, 6), partial(_stack, dtype))
        yield copying_group(Op.BIND, dtype, "size", (1, 1, 3), partial(_bound, dtype))
        yield copying_group(Op.REPLICATED, dtype, "copies", (1, 1, 4), partial(_replicated, dtype))
        if dtype.kind is not Kind.INDEX:
            yield copying_group(Op.SLICE, dtype, "bytes", (1, 2, 6), partial(_bytes, dtype))


def permute(choices: Choices, t: UOp) -> UOp:
    return UOp(Op.PERMUTE, t, arg=PermuteArg(tuple(shuffled(choices, range(len(t.shape))))))


def flip(choices: Choices, t: UOp) -> UOp:
    """At least one axis, where there is one."""
    flags = [chance(choices, 50) for _ in t.shape]
    if flags and not any(flags):
        flags[choices.below(len(flags))] = True
    return UOp(Op.FLIP, t, arg=FlipArg(tuple(flags)))


def reshape(choices: Choices, t: UOp) -> UOp:
    """Axes are merged and split at random, and axes of size 1 put in."""
    left = prod(t.shape)
    shape: list[int] = []
    while left > 1 and len(shape) < 3:
        factor = pick(choices, [f for f in (left, 2, 3, 5, 7) if left % f == 0])
        shape.append(factor)
        left //= factor
    if left != 1:
        shape.append(left)
    if not shape or chance(choices, 30):
        shape.insert(choices.below(len(shape) + 1), 1)
    if not t.shape and chance(choices, 50):
        shape = []
    return UOp(Op.RESHAPE, t, dims(shape))


def expand(choices: Choices, t: UOp) -> UOp:
    """Axes of size 1 become longer; a value without one gets one in front."""
    if 1 not in t.shape:
        t = UOp(Op.RESHAPE, t, dims((1, *t.shape)))
    return UOp(Op.EXPAND, t, dims(between(choices, 1, 4) if s == 1 else s for s in t.shape))


def shrink(choices: Choices, t: UOp) -> UOp:
    sizes = [between(choices, min(s, 1), s) for s in t.shape]
    offsets = [choices.below(s - kept + 1) for s, kept in zip(t.shape, sizes, strict=True)]
    return UOp(Op.SHRINK, t, dims(offsets), dims(sizes))


def part(choices: Choices, t: UOp) -> UOp:
    """SLICE: some elements, wherever they lie."""
    n = prod(t.shape)
    offset = choices.below(n + 1)
    size = between(choices, min(1, n - offset), n - offset)
    return UOp(Op.SLICE, t, index_const(offset), arg=SliceArg(size, t.dtype))


def pad_with(choices: Choices, t: UOp, fill: PadFill, most: int = 2) -> UOp:
    """Up to `most` elements before and after each axis."""
    before = [choices.below(most + 1) for _ in t.shape]
    sizes = [b + s + choices.below(most + 1) for b, s in zip(before, t.shape, strict=True)]
    return UOp(Op.PAD, t, dims(before), dims(sizes), arg=PadArg(fill))


def pad_zero(choices: Choices, t: UOp) -> UOp:
    return pad_with(choices, t, PadFill.ZERO)


VIEWS: dict[Op, View] = {
    Op.PERMUTE: permute,
    Op.FLIP: flip,
    Op.RESHAPE: reshape,
    Op.EXPAND: expand,
    Op.SHRINK: shrink,
    Op.SLICE: part,
    Op.PAD: pad_zero,
}
"""How a view of an op is built over any value."""


def _view(op: Op, view: View, dtype: DType, choices: Choices, index: int) -> Program:
    """One view, or three of the same op in a row; on any bits, for a view copies them.

    The first one is of every special value.
    """
    special = values.specials(dtype)
    shape = SHAPES[(index + choices.below(2)) % len(SHAPES)] if index else (len(special), 3)
    n = prod(shape)
    root = param(0, shape, dtype)
    for _ in range(1 + 2 * (index % 2)):
        root = view(choices, root)
    data = [values.draw_special(dtype, n, data_key(choices)) if index else special.repeat(3)]
    data.append(values.draw_bits(dtype, n, data_key(choices)))
    return program(root, *([d.reshape(shape)] for d in data))


def _below(view: View, dtype: DType, choices: Choices, index: int) -> Program:
    """Each view of a view of this op."""
    shape: Shape = pick(choices, ((3, 3), (2, 1, 3), (5,), (1, 3, 2, 1, 2)))
    first = view(choices, param(0, shape, dtype))
    root = UOp(Op.TUPLE, *(second(choices, first) for second in VIEWS.values()))
    return program(root, [values.draw_bits(dtype, prod(shape), data_key(choices)).reshape(shape)])


def inside(t: UOp, padded: UOp) -> UOp:
    """Where a PAD holds elements of T: the same PAD of true, with zeros around."""
    true = UOp(Op.RESHAPE, const(True, dtypes.bool), dims((1,) * len(t.shape)))
    ones = UOp(Op.EXPAND, true, dims(t.shape))
    return UOp(Op.PAD, ones, *padded.src[1:], arg=PadArg(PadFill.ZERO))


def _consumed(dtype: DType, choices: Choices, index: int) -> Program:
    """A PAD whose absent elements do not reach the result, but for few: by WHERE, REDUCE, STORE."""
    shape: Shape = pick(choices, ((3, 4), (7,), (2, 3, 2), (16,)))
    n = prod(shape)
    t = param(0, shape, dtype)
    padded = pad_with(choices, t, PadFill.INVALID)
    other = param(1, padded.shape, dtype)
    draws = [values.draw_ordinary, values.draw_mixed]
    batches = [
        {0: draw(dtype, n, data_key(choices)).reshape(shape)}
        | {1: draw(dtype, prod(padded.shape), data_key(choices)).reshape(padded.shape)}
        for draw in draws
    ]
    # An op that does not keep zero, so that a fill of 0 differs from none.
    shifted = UOp(Op.CMPNE if dtype.kind is Kind.BOOL else Op.ADD, padded, const(1, dtype))
    match index % 4:
        case 0:
            root = UOp(Op.WHERE, inside(t, padded), shifted, other)
        case 1:
            axes = tuple(range(len(shape)))[choices.below(len(shape)) :]
            op = pick(choices, (Op.MAX, Op.ADD))
            root = UOp(Op.REDUCE, shifted, arg=ReduceArg(op, axes))
            batches = [{0: b[0]} for b in batches]
        case 2:
            buffer = UOp(Op.BUFFER, dims(padded.shape), arg=BufferArg(1, dtype))
            root = UOp(Op.SINK, UOp(Op.STORE, buffer, shifted))
        case _:
            t = param(0, (64,), dtype)
            padded = UOp(Op.PAD, t, dims((choices.below(3),)), dims((66,)))
            zeros = UOp(Op.PAD, shifted.src[1], dims(()), dims(()), arg=PadArg(PadFill.ZERO))
            root = UOp(shifted.op, padded, zeros)
            batches = [{0: draw(dtype, 64, data_key(choices))} for draw in draws]
    return program(root, *batches)


def _replicated(dtype: DType, choices: Choices, index: int) -> Program:
    """One of the copies that EXPAND makes along the first axis, after they moved.

    They are of special values, then of any bits.
    """
    special = values.specials(dtype)
    shape: Shape = pick(choices, ((4, 3), (7,), (2, 3, 2), ())) if index else special.shape
    t = UOp(Op.RESHAPE, param(0, shape, dtype), dims((1, *shape)))
    copies = UOp(Op.EXPAND, t, dims((between(choices, 1, 8), *shape)))
    order = tuple(shuffled(choices, range(len(copies.shape))))
    moved = UOp(Op.PERMUTE, copies, arg=PermuteArg(order))
    root = UOp(Op.REPLICATED, moved, arg=ReplicatedArg((order.index(0),)))
    drawn = values.draw_bits(dtype, prod(shape), data_key(choices)).reshape(shape)
    return program(root, [drawn if index else special])


def _bound(dtype: DType, choices: Choices, index: int) -> Program:
    """A variable with a value as the size of an axis."""
    variable = UOp(Op.PARAM, dims(()), arg=ParamArg(9, dtypes.index, min=1, max=9))
    size = UOp(Op.BIND, variable, index_const(between(choices, 1, 9)))
    t = param(0, (1, 5), dtype)
    root = UOp(Op.EXPAND, t, UOp(Op.STACK, size, index_const(5)))
    return program(root, [values.draw_bits(dtype, 5, data_key(choices)).reshape(1, 5)])


def _bytes(dtype: DType, choices: Choices, index: int) -> Program:
    """Part of the bytes of any values, as elements of another dtype."""
    shape: Shape = pick(choices, ((4, 4), (16,), (2, 3, 4), (65, 8)))
    # Bytes that are neither 0 nor 1 are no bool, and what is read of them promises nothing.
    readable = [d for d in DTYPES_WITH_BITS if d is not dtypes.bool or dtype is dtypes.bool]
    n, new = prod(shape), pick(choices, readable)
    step = max(1, new.itemsize // dtype.itemsize)
    offset = step * choices.below(n // step)
    most = (n - offset) * dtype.itemsize // new.itemsize
    root = UOp(
        Op.SLICE,
        param(0, shape, dtype),
        index_const(offset),
        arg=SliceArg(between(choices, 1, most), new),
    )
    data = values.draw_bits(dtype, n, data_key(choices)).reshape(shape)
    return program(root, [data])


DTYPES_WITH_BITS = tuple(d for d in values.VALUES if d.kind is not Kind.INDEX)


def _index_constant(dtype: DType, choices: Choices, index: int) -> Program:
    """Constant indices remove the leading axes, from none to all; none of all special values."""
    special = values.specials(dtype)
    shape: Shape = pick(choices, ((4, 3, 5), (7, 2), (9,), (65, 33))) if index else special.shape
    count = index % (len(shape) + 1)
    indices = [const(choices.below(s), _index_dtype(choices)) for s in shape[:count]]
    drawn = values.draw_bits(dtype, prod(shape), data_key(choices)).reshape(shape)
    return program(UOp(Op.INDEX, param(0, shape, dtype), *indices), [drawn if index else special])


def _index_dtype(choices: Choices) -> DType:
    return pick(choices, (dtypes.index, *INDEX_DTYPES))


INDEX_DTYPES = tuple(d for d in values.VALUES if d.is_int)


def _index_data(dtype: DType, choices: Choices, index: int) -> Program:
    """Indices that are inputs, in bounds by their data or by a MOD; absent ones pick nothing."""
    shape: Shape = pick(choices, ((5, 3), (11,), (4, 3, 2), (97,)))
    k, index_dtype = between(choices, 1, 9), pick(choices, INDEX_DTYPES)
    table = param(0, shape, dtype)
    data = values.draw_bits(dtype, prod(shape), data_key(choices)).reshape(shape)
    at = param(1, (k,), index_dtype)
    n = shape[0]
    if index % 4 == 1:
        # Unsigned or floored: MOD by a positive number is in bounds whatever the data.
        i = UOp(Op.MOD, at, const(n, index_dtype))
        positions = values.draw_bits(index_dtype, k, data_key(choices))
    else:
        i = at
        positions = values.draw_within(index_dtype, k, data_key(choices), 0, n - 1)
    root = UOp(Op.INDEX, table, i)
    if index % 4 == 2:
        i = UOp(Op.PAD, at, dims((1,)), dims((k + 2,)))
        picked = UOp(Op.INDEX, table, i)
        keep = UOp(Op.PAD, _true((k,)), dims((1,)), dims((k + 2,)), arg=PadArg(PadFill.ZERO))
        mask = UOp(Op.RESHAPE, keep, dims((k + 2, *(1,) * (len(shape) - 1))))
        root = UOp(Op.WHERE, mask, picked, const(0, dtype))
    if index % 4 == 3 and len(shape) > 1:
        second = param(2, (), dtypes.int32)
        last = values.draw_within(dtypes.int32, 1, data_key(choices), 0, shape[1] - 1).reshape(())
        return program(UOp(Op.INDEX, table, i, second), [data, positions, last])
    return program(root, [data, positions.astype(np_dtype(index_dtype))])


def _true(shape: Shape) -> UOp:
    one = UOp(Op.RESHAPE, const(True, dtypes.bool), dims((1,) * len(shape)))
    return UOp(Op.EXPAND, one, dims(shape))


def _stack(dtype: DType, choices: Choices, index: int) -> Program:
    """One to four values of one shape; the same one twice, and a constant among ()-shaped ones."""
    shape: Shape = pick(choices, ((3,), (2, 3), (), (0,), (1, 257)))
    count = between(choices, 1, 4)
    params = [param(k, shape, dtype) for k in range(count)]
    data = [values.draw_bits(dtype, prod(shape), data_key(choices)).reshape(shape) for _ in params]
    operands = [*params, params[0]] if index % 2 else params
    if shape == ():
        operands = [*operands, const(1, dtype)]
    return program(UOp(Op.STACK, *operands), data)
