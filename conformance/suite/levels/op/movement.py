"""Generate level op, movement: random views of every dtype, INDEX, STACK, consumers of a PAD."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.group import Generated, Group, copying, group, program, with_data
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import PadArg, PadFill, SliceArg
from uop.spec.dtype import DTYPES, VALUES, DType, Kind, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, index_const, param, variable

View = Callable[[Choices, UOp], UOp]

SHAPES: tuple[Shape, ...] = (
    *((2, 3, 4), (5, 7), (13,), (), (3, 1, 5)),
    *((0, 3), (2, 2, 3, 3), (1025,), (33, 32)),
)
MOST = 11
"""The largest number of a variable size."""
WITH_BITS = tuple(d for d in VALUES if d.kind is not Kind.INDEX)
INDEX_DTYPES = tuple(d for d in VALUES if d.is_int)
NARROW = tuple(d for d in INDEX_DTYPES if d.bits <= 16)


def groups() -> Iterator[Group]:
    for k, dtype in enumerate(VALUES):
        for turn, (op, view) in enumerate(VIEWS.items(), k):
            yield copying(group("op", op, dtype, "view", (1, 1, 9), _view, view, dtype))
            usual = int(turn % len(VIEWS) == 0)
            yield group("op", op, dtype, "below", (0, usual, 2), _below, view, dtype)
        yield copying(group("op", Op.PAD, dtype, "consumed", (1, 2, 12), _consumed, dtype))
        yield copying(group("op", Op.INDEX, dtype, "constant", (1, 1, 6), _index_constant, dtype))
        yield copying(group("op", Op.INDEX, dtype, "data", (1, 1, 8), _index_data, dtype))
        yield copying(group("op", Op.INDEX, dtype, "between", (1, 1, 3), _between, dtype))
        yield copying(group("op", Op.SHRINK, dtype, "symbolic", (1, 1, 6), _symbolic, dtype))
        yield copying(group("op", Op.INDEX, dtype, "lists", (1, 1, 4), _lists, dtype))
        if dtype is not dtypes.bool:
            yield copying(group("op", Op.SHRINK, dtype, "sized-folds", (0, 1, 4), _folded, dtype))
        yield copying(group("op", Op.STACK, dtype, "join", (1, 1, 6), _stack, dtype))
        yield copying(group("op", Op.BIND, dtype, "size", (1, 1, 3), _bound, dtype))
        yield copying(group("op", Op.REPLICATED, dtype, "copies", (1, 1, 4), _replicated, dtype))
        if dtype in WITH_BITS:
            yield copying(group("op", Op.SLICE, dtype, "bytes", (1, 2, 6), _bytes, dtype))
            if dtype is not dtypes.bool:
                yield copying(group("op", Op.BITCAST, dtype, "turned", (1, 1, 2), _turned, dtype))


def random_permute(choices: Choices, t: UOp) -> UOp:
    return nodes.permute(t, choices.shuffled(range(len(t.shape))))


def random_flip(choices: Choices, t: UOp) -> UOp:
    """Flip at least one axis, where there is one."""
    flags = [choices.chance(50) for _ in t.shape]
    if flags and not any(flags):
        flags[choices.below(len(flags))] = True
    return nodes.flip(t, flags)


def random_reshape(choices: Choices, t: UOp) -> UOp:
    """Merge and split axes at random, and insert axes of size 1."""
    left = prod(t.shape)
    shape: list[int] = []
    while left > 1 and len(shape) < 3:
        factor = choices.pick([f for f in (left, 2, 3, 5, 7) if left % f == 0])
        shape.append(factor)
        left //= factor
    if left != 1:
        shape.append(left)
    if not shape or choices.chance(30):
        shape.insert(choices.below(len(shape) + 1), 1)
    if not t.shape and choices.chance(50):
        shape = []
    return nodes.reshape(t, shape)


def random_expand(choices: Choices, t: UOp) -> UOp:
    """Lengthen the axes of size 1; a value without one gets one in front."""
    if 1 not in t.shape:
        t = nodes.reshape(t, (1, *t.shape))
    return nodes.expand(t, (choices.between(1, 4) if s == 1 else s for s in t.shape))


def random_shrink(choices: Choices, t: UOp) -> UOp:
    sizes = [choices.between(min(s, 1), s) for s in t.shape]
    return nodes.shrink(t, random_offset(choices, sizes, t.shape), sizes)


def random_offset(choices: Choices, part: Sequence[int], whole: Sequence[int]) -> list[int]:
    """Return where a part begins inside a whole."""
    return [choices.below(w - p + 1) for p, w in zip(part, whole, strict=True)]


def random_slice(choices: Choices, t: UOp) -> UOp:
    """Shrink to elements at any distance from the ends."""
    n = prod(t.shape)
    offset = choices.below(n + 1)
    size = choices.between(min(1, n - offset), n - offset)
    return UOp(Op.SLICE, t, index_const(offset), arg=SliceArg(size, t.dtype))


def random_pad(choices: Choices, t: UOp, fill: PadFill = PadFill.ZERO) -> UOp:
    """Pad each axis by up to two elements before and after."""
    before = [choices.below(3) for _ in t.shape]
    sizes = [b + s + choices.below(3) for b, s in zip(before, t.shape, strict=True)]
    return nodes.pad(t, before, sizes, fill)


VIEWS: dict[Op, View] = {
    Op.PERMUTE: random_permute,
    Op.FLIP: random_flip,
    Op.RESHAPE: random_reshape,
    Op.EXPAND: random_expand,
    Op.SHRINK: random_shrink,
    Op.SLICE: random_slice,
    Op.PAD: random_pad,
}
"""A random view of any value, by its op."""


def _view(view: View, dtype: DType, choices: Choices, index: int) -> Generated:
    """Build one view, or three of the same op in a row; a view that copies gets any bits.

    The first one is of every special value.
    """
    special = values.specials(dtype)
    shape = SHAPES[(index + choices.below(2)) % len(SHAPES)] if index else (len(special), 3)
    root = param(0, shape, dtype)
    for _ in range(1 + 2 * (index % 2)):
        root = view(choices, root)
    if index:
        edges = values.sample(values.draw_special, dtype, shape, choices)
    else:
        edges = special.repeat(3).reshape(shape)
    return program(root, [edges], [values.sample(values.draw_bits, dtype, shape, choices)])


def _below(view: View, dtype: DType, choices: Choices, index: int) -> Generated:
    """Build each view of a view of this op."""
    shape: Shape = choices.pick(((3, 3), (2, 1, 3), (5,), (1, 3, 2, 1, 2)))
    first = view(choices, param(0, shape, dtype))
    root = nodes.outputs(*(second(choices, first) for second in VIEWS.values()))
    return with_data(root, choices, values.draw_bits)


def _consumed(dtype: DType, choices: Choices, index: int) -> Generated:
    """Build a PAD of which few absent elements reach the result: by WHERE, REDUCE or STORE."""
    shape: Shape = choices.pick(((3, 4), (7,), (2, 3, 2), (16,)))
    padded = random_pad(choices, param(0, shape, dtype), PadFill.INVALID)
    draws = (values.draw_ordinary, values.draw_mixed)
    batches = [[values.sample(d, dtype, s, choices) for s in (shape, padded.shape)] for d in draws]
    # This op does not keep zero, so a fill of 0 differs from no fill.
    shifted = UOp(Op.CMPNE if dtype.kind is Kind.BOOL else Op.ADD, padded, const(1, dtype))
    match index % 4:
        case 0:
            root = UOp(Op.WHERE, nodes.inside(padded), shifted, param(1, padded.shape, dtype))
        case 1:
            first = choices.below(len(shape))
            root = nodes.fold(choices.pick((Op.MAX, Op.ADD)), shifted, range(first, len(shape)))
        case 2:
            root = UOp(Op.SINK, nodes.store(nodes.buffer(1, padded.shape, dtype), shifted))
        case _:
            padded = nodes.pad(param(0, (64,), dtype), (choices.below(3),), (66,))
            zeros = nodes.pad(shifted.src[1], (), (), PadFill.ZERO)
            root = UOp(shifted.op, padded, zeros)
            batches = [[values.sample(draw, dtype, 64, choices)] for draw in draws]
    return program(root, *batches)


def _replicated(dtype: DType, choices: Choices, index: int) -> Generated:
    """Select one of the copies that EXPAND makes along the first axis, after they moved.

    They are of special values, then of any bits.
    """
    special = values.specials(dtype)
    shape: Shape = choices.pick(((4, 3), (7,), (2, 3, 2), ())) if index else special.shape
    t = nodes.copies(param(0, shape, dtype), choices.between(1, 8))
    order = choices.shuffled(range(len(t.shape)))
    data = values.sample(values.draw_bits, dtype, shape, choices)
    root = nodes.replicated(nodes.permute(t, order), order.index(0))
    return program(root, [data if index else special])


def _bound(dtype: DType, choices: Choices, index: int) -> Generated:
    """Use a variable with a value as the size of an axis."""
    size = UOp(Op.BIND, variable(9, 1, 9), index_const(choices.between(1, 9)))
    root = UOp(Op.EXPAND, param(0, (1, 5), dtype), UOp(Op.STACK, size, index_const(5)))
    return with_data(root, choices, values.draw_bits)


def _between(dtype: DType, choices: Choices, index: int) -> Generated:
    """Index tables that are longer than half of what few bits can count, and shorter than all."""
    results, data = [], []
    for number, narrow in enumerate(d for d in NARROW if d.bits == 8 or not index % 3):
        longest = int(narrow.max) + 1
        n, k = longest - longest // 5, choices.between(4, 9)
        table, at = param(2 * number, (n,), dtype), param(2 * number + 1, (k,), narrow)
        results.append(UOp(Op.INDEX, table, at))
        data.append(values.sample(values.draw_bits, dtype, n, choices))
        data.append(values.sample(values.draw_within(n // 2, n - 1), narrow, k, choices))
    return program(nodes.outputs(*results), data)


def _lists(dtype: DType, choices: Choices, index: int) -> Generated:
    """Index by numbers of which some follow each other."""
    t, start = param(0, (9,), dtype), choices.below(5)
    orders = ((0, 1, 3), (0, 1, 2, 4), (0, 1, 0), (0, 2, 3), (0, 2, 4), (2, 1, 0), (1, 2, 3))
    found = (UOp(Op.INDEX, t, nodes.dims(start + k for k in order)) for order in orders)
    return with_data(nodes.outputs(*found), choices, values.draw_bits)


def _variable(slot: int, value: int) -> UOp:
    return UOp(Op.BIND, variable(slot, 1, MOST), index_const(value))


def _folded(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold numbers of one sign, as many as a variable says, which may have more."""
    size = UOp(Op.STACK, _variable(8, choices.between(3, MOST - 1)))
    t = UOp(Op.SHRINK, param(0, (MOST,), dtype), nodes.dims((0,)), size)
    root = nodes.outputs(*(nodes.fold(op, t, (0,)) for op in (Op.ADD, Op.MUL, Op.MAX, Op.MIN)))
    data = values.sample(values.draw_within(1, 3), dtype, MOST, choices)
    signs = (1, -1) if dtype.is_signed or dtype.is_float else (1,)
    return program(root, *([data * np_dtype(dtype).type(sign)] for sign in signs))


def _symbolic(dtype: DType, choices: Choices, index: int) -> Generated:
    """Cut, pad, expand and fold by sizes and offsets that are variables with a value."""
    t = param(0, (MOST, 3), dtype)
    count = choices.between(5, 7)
    size, longer = _variable(8, count), _variable(7, count + 2)
    none, three = index_const(0), index_const(3)
    offset = UOp(Op.STACK, _variable(9, choices.between(1, 4)), none)
    part = UOp(Op.SHRINK, t, offset, UOp(Op.STACK, size, three))
    places = UOp(Op.STACK, index_const(1), none), UOp(Op.STACK, longer, three)
    wide = UOp(Op.PAD, part, *places, arg=PadArg(PadFill.ZERO))
    row = nodes.shrink(t, (0, 0), (1, 3))
    many = UOp(Op.EXPAND, row, UOp(Op.STACK, size, three))
    other = UOp(Op.WHERE, UOp(Op.CMPNE, part, many), part, many)
    each = product((part, wide, many, other), (Op.ADD, Op.MAX))
    results = (nodes.fold(op, value, (0,)) for value, op in each)
    return with_data(nodes.outputs(*results), choices, values.draw_positive)


def _turned(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read values as elements of other sizes before they are moved, and after it."""
    t = param(0, (3, 8), dtype)
    results = []
    for size in (1, 2, 4, 8):
        bits = DTYPES[f"uint{8 * size}"]
        for flags in ((False, True), (True, True)):
            results.append(nodes.bitcast(nodes.flip(t, flags), bits))
            results.append(nodes.flip(nodes.bitcast(t, bits), flags))
        results.append(nodes.permute(nodes.bitcast(t, bits), (1, 0)))
    return with_data(nodes.outputs(*results), choices, values.draw_bits)


def _bytes(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read part of the bytes of any values as elements of another dtype."""
    shape: Shape = choices.pick(((4, 4), (16,), (2, 3, 4), (65, 8)))
    # Bytes that are neither 0 nor 1 are no bool, and what is read of them promises nothing.
    readable = [d for d in WITH_BITS if d is not dtypes.bool or dtype is dtypes.bool]
    n, new = prod(shape), choices.pick(readable)
    step = max(1, new.itemsize // dtype.itemsize)
    offset = step * choices.below(n // step)
    size = choices.between(1, (n - offset) * dtype.itemsize // new.itemsize)
    arg = SliceArg(size, new)
    root = UOp(Op.SLICE, param(0, shape, dtype), index_const(offset), arg=arg)
    return with_data(root, choices, values.draw_bits)


def _index_constant(dtype: DType, choices: Choices, index: int) -> Generated:
    """Remove the leading axes by constant indices, from none to all; none of all special values."""
    special = values.specials(dtype)
    shape: Shape = choices.pick(((4, 3, 5), (7, 2), (9,), (65, 33))) if index else special.shape
    count = index % (len(shape) + 1)
    kinds = (dtypes.index, *INDEX_DTYPES)
    indices = [const(choices.below(s), choices.pick(kinds)) for s in shape[:count]]
    data = values.sample(values.draw_bits, dtype, shape, choices)
    return program(UOp(Op.INDEX, param(0, shape, dtype), *indices), [data if index else special])


def _index_data(dtype: DType, choices: Choices, index: int) -> Generated:
    """Index by inputs, in bounds by their data or by a MOD; absent ones select nothing.

    Every fourth program also indexes the end of tables as long as few bits can count.
    """
    shape: Shape = choices.pick(((5, 3), (11,), (4, 3, 2), (97,)))
    k, index_dtype = choices.between(1, 9), choices.pick(INDEX_DTYPES)
    table, at, n = param(0, shape, dtype), param(1, (k,), index_dtype), shape[0]
    data = [values.sample(values.draw_bits, dtype, shape, choices)]
    if index % 4 == 1:
        # Unsigned or floored: MOD by a positive number is in bounds whatever the data.
        data.append(values.sample(values.draw_bits, index_dtype, k, choices))
        return program(UOp(Op.INDEX, table, UOp(Op.MOD, at, const(n, index_dtype))), data)
    data.append(values.sample(values.draw_within(0, n - 1), index_dtype, k, choices))
    if index % 4 == 2:
        picked = UOp(Op.INDEX, table, nodes.pad(at, (1,), (k + 2,)))
        keep = nodes.pad(nodes.all_true((k,)), (1,), (k + 2,), PadFill.ZERO)
        mask = nodes.reshape(keep, (k + 2, *(1,) * (len(shape) - 1)))
        return program(UOp(Op.WHERE, mask, picked, const(0, dtype)), data)
    if index % 4 == 3 and len(shape) > 1:
        data.append(values.sample(values.draw_within(0, shape[1] - 1), dtypes.int32, (), choices))
        return program(UOp(Op.INDEX, table, at, param(2, (), dtypes.int32)), data)
    if index % 4:
        return program(UOp(Op.INDEX, table, at), data)
    far = []
    for slot, narrow in enumerate(NARROW, 2):
        longest = int(narrow.max) + 1
        before = (longest - n, *(0,) * (len(shape) - 1))
        long = nodes.pad(table, before, (longest, *shape[1:]), PadFill.ZERO)
        far.append(UOp(Op.INDEX, long, param(slot, (k,), narrow)))
        data.append(values.sample(values.draw_within(longest - n, longest - 1), narrow, k, choices))
    return program(nodes.outputs(UOp(Op.INDEX, table, at), *far), data)


def _stack(dtype: DType, choices: Choices, index: int) -> Generated:
    """Stack one to four values of one shape: the same one twice, and constants of shape ()."""
    shape: Shape = choices.pick(((3,), (2, 3), (), (0,), (1, 257)))
    params = [param(k, shape, dtype) for k in range(choices.between(1, 4))]
    operands = [*params, params[0]] if index % 2 else params
    if shape == ():
        operands = [*operands, const(1, dtype)]
    return with_data(UOp(Op.STACK, *operands), choices, values.draw_bits)
