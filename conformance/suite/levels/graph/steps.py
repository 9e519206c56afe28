"""Define the steps by which a graph grows: each one puts a few ops on candidates."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import growth
from uop.conformance.suite.levels.op.elementwise import operand_dtypes
from uop.conformance.suite.levels.op.movement import random_offset
from uop.spec.args import PadFill
from uop.spec.dtype import VALUES, DType, Kind, dtypes
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp, const, param

FOLDS = (Op.ADD, Op.MAX, Op.MUL)
CALLED = (Op.FUNCTION, Op.GETTUPLE, Op.TUPLE)
"""What a call is made of."""
MEMORY = (Op.SINK, Op.STORE, Op.AFTER, Op.BUFFER)
"""What a program that writes buffers in an order is made of."""
SMALL_DIVISOR = 100
LONGEST_CHAIN = 4


def folds(g: growth.Growth) -> tuple[Op, ...]:
    return g.vocabulary.of(FOLDS) or FOLDS


def either_way(choices: Choices, a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Return two operands in this order or the other."""
    return (a, b) if choices.chance(50) else (b, a)


@growth.on_candidate(lambda g, v: bool(g.vocabulary.on(v.dtype).unary))
def unary(g: growth.Growth, u: UOp) -> UOp | None:
    return UOp(g.choices.pick(g.vocabulary.on(u.dtype).unary), u)


@growth.on_candidate(lambda g, v: bool(g.vocabulary.on(v.dtype).binary))
def binary(g: growth.Growth, u: UOp) -> UOp | None:
    """Apply an op to two operands, either way round; most divisors and shift counts are valid."""
    op = g.choices.pick(g.vocabulary.on(u.dtype).binary)
    is_partial = DECLARATIONS[op].is_partial
    # The accepted set of these is anything unless their operands are single values.
    needs_exact = is_partial or op in (Op.XOR, Op.OR, Op.AND)
    if needs_exact and g.width(u):
        return None
    other = g.take_like(u, exact=needs_exact)
    if is_partial and not g.choices.chance(2):
        return UOp(op, u, guarded(g, op, other))
    return UOp(op, other, u) if g.choices.chance(40) else UOp(op, u, other)


def guarded(g: growth.Growth, op: Op, other: UOp) -> UOp:
    """Return a divisor that is not zero, or a count below the width; a CONST where that is long."""
    if not g.vocabulary.has(Op.OR, Op.AND):
        most = other.dtype.bits - 1 if DECLARATIONS[op].is_shift else SMALL_DIVISOR
        return const(g.choices.between(1, most), other.dtype)
    if DECLARATIONS[op].is_division:
        return UOp(Op.OR, other, const(1, other.dtype))
    return UOp(Op.AND, other, const(other.dtype.bits - 1, other.dtype))


@growth.on_candidate(growth.is_number)
def ternary(g: growth.Growth, u: UOp) -> UOp | None:
    """Build a * b + c: as one op, or as two that must not be contracted."""
    b, c = g.take_like(u), g.take_like(u)
    sums = g.vocabulary.of((Op.ADD, Op.SUB))
    if g.choices.chance(40) or not sums:
        return UOp(Op.MULACC, u, b, c)
    return UOp(g.choices.pick(sums), UOp(Op.MUL, u, b), c)


@growth.on_candidate(lambda g, v: v.dtype.is_float and not g.width(v))
def transcendental(g: growth.Growth, u: UOp) -> UOp | None:
    """Apply an op with a budget, to operands whose sets are single."""
    ops = g.vocabulary.on(u.dtype)
    if ops.unary_wide and (g.choices.chance(60) or not ops.binary_wide):
        return UOp(g.choices.pick(ops.unary_wide), u)
    if not ops.binary_wide:
        return None
    return UOp(g.choices.pick(ops.binary_wide), u, g.take_like(u, exact=True))


@growth.on_candidate(lambda g, v: not g.width(v) and bool(g.vocabulary.on(v.dtype).comparisons))
def compare(g: growth.Growth, u: UOp) -> UOp | None:
    return UOp(g.choices.pick(g.vocabulary.on(u.dtype).comparisons), u, g.take_like(u, exact=True))


@growth.on_candidate(growth.is_number)
def select(g: growth.Growth, u: UOp) -> UOp | None:
    """Build a WHERE by a candidate, or by a comparison that is made for it."""
    condition = g.take(lambda v: v.dtype is dtypes.bool and not g.width(v))
    if condition is None or g.choices.chance(30):
        condition = compare(g)
    if condition is None:
        return None
    other = g.take_like(u)
    return UOp(Op.WHERE, condition, *either_way(g.choices, u, other))


@growth.on_candidate(growth.is_narrow)
def convert(g: growth.Growth, u: UOp) -> UOp | None:
    """Convert to another dtype of the palette; most floats fit into their integers."""
    targets = g.vocabulary.of_dtypes((*g.palette, dtypes.bool))
    others = [d for d in targets if d is not u.dtype]
    if not others:
        return None
    target = g.choices.pick(others)
    if u.dtype.is_float and target.is_int:
        u = fitting(g, u, target)
    return nodes.cast(u, target)


def fitting(g: growth.Growth, u: UOp, target: DType) -> UOp:
    """Return u where it fits into the integer dtype, else 1; a NaN does not fit."""
    low, high = _bounds(u.dtype, target)
    above = UOp(Op.CMPLT, const(low, u.dtype), u)
    below = UOp(Op.CMPLT, u, const(high, u.dtype))
    one = const(1, u.dtype)
    if g.vocabulary.has(Op.AND):
        return UOp(Op.WHERE, UOp(Op.AND, above, below), u, one)
    return UOp(Op.WHERE, above, UOp(Op.WHERE, below, u, one), one)


def _bounds(source: DType, target: DType) -> tuple[int, int]:
    """Return powers of two that both dtypes hold, or the float's largest finite values."""
    largest = int(source.format.finite(source.format.max_bits))
    high = min(1 << (target.bits - target.is_signed), largest)
    return (-high if target.is_signed else -1), high


@growth.on_candidate(lambda g, v: v.dtype.bits > 1 and not g.width(v))
def reinterpret(g: growth.Growth, u: UOp) -> UOp | None:
    """Bitcast to a dtype of the same size; or to a smaller one, apply an op, and return."""
    kinds = g.vocabulary.of_dtypes(VALUES)
    with_bits = (d for d in kinds if d.kind not in (Kind.BOOL, Kind.INDEX) and d is not u.dtype)
    equal = [d for d in with_bits if d.itemsize == u.dtype.itemsize]
    smaller = [d for d in kinds if d.is_int and d.itemsize < u.dtype.itemsize]
    if not u.shape or not smaller or g.choices.chance(60):
        return nodes.bitcast(u, g.choices.pick(equal)) if equal else None
    small = g.choices.pick(smaller)
    op = g.choices.pick((Op.XOR, Op.ADD, Op.AND))
    parts = nodes.bitcast(u, small)
    return nodes.bitcast(UOp(op, parts, const(g.choices.pick((1, 3, 85)), small)), u.dtype)


@growth.on_candidate(lambda g, v: bool(v.shape) and v.dtype is not dtypes.bool and not g.width(v))
def padded(g: growth.Growth, u: UOp) -> UOp | None:
    """Pad, apply an op that does not keep zero, and remove the absent elements again."""
    fill = g.choices.pick((PadFill.INVALID, PadFill.ZERO))
    before = [g.choices.below(3) for _ in u.shape]
    sizes = [b + s + g.choices.below(2) for b, s in zip(before, u.shape, strict=True)]
    outside = nodes.pad(u, before, sizes, fill)
    ops = g.vocabulary.on(u.dtype).total
    if not ops or not g.vocabulary.has(Op.PAD):
        return None
    changed = UOp(g.choices.pick(ops), outside, g.constant(u.dtype))
    if u.dtype.is_float and g.choices.chance(15):
        changed = UOp(Op.EXP2, outside)
    if g.choices.chance(50) and not u.dtype.is_float:
        axis = g.choices.below(len(u.shape))
        folded = nodes.fold(g.choices.pick(folds(g)), changed, (axis,))
        shape = (1 if k == axis else s for k, s in enumerate(u.shape))
        return nodes.shrink(folded, (0,) * len(sizes), shape)
    if fill is PadFill.INVALID:
        changed = UOp(Op.WHERE, nodes.inside(outside), changed, g.constant(u.dtype))
    return nodes.shrink(changed, random_offset(g.choices, u.shape, sizes), u.shape)


@growth.on_candidate(lambda g, v: any(s > 1 for s in v.shape) and not g.width(v))
def reduce(g: growth.Growth, u: UOp) -> UOp | None:
    """Fold some axes; a float sum has a wide accepted set, so its folds are short."""
    axes = tuple(k for k, _ in enumerate(u.shape) if g.choices.chance(50))
    op = g.choices.pick(folds(g))
    if u.dtype.is_float and op is not Op.MAX:
        # Squares do not cancel; a pair of them does not overflow more than they do.
        u, axes = UOp(Op.MUL, u, u), axes[:1]
        op = Op.ADD
    return nodes.fold(op, u, axes)


@growth.on_candidate(lambda g, v: bool(v.shape) and v.shape[0] > 1)
def gather(g: growth.Growth, u: UOp) -> UOp | None:
    """Apply an INDEX by a constant, or by integers that a MOD keeps in bounds."""
    n = u.shape[0]
    if g.choices.chance(30):
        row = UOp(Op.INDEX, u, const(g.choices.below(n), dtypes.index))
        return nodes.reshape(row, (1, *u.shape[1:]))
    kinds = g.vocabulary.of_dtypes((dtypes.int32, dtypes.uint8, dtypes.int64, dtypes.int16))
    if not kinds:
        return None
    index_dtype = g.choices.pick(kinds)
    at = g.input(index_dtype, (n,), values.draw_bits)
    return UOp(Op.INDEX, u, UOp(Op.MOD, at, const(n, index_dtype)))


def gated(g: growth.Growth) -> UOp | None:
    """Build a LOAD with alt where a gate is false."""
    u = g.take(lambda v: v.shape == g.base)
    alt = g.take(lambda v: _pairs(u, v, g.base))
    gate = g.take(lambda v: v.dtype is dtypes.bool and v.shape == g.base and v not in g.loose)
    if u is None or alt is None:
        return None
    if gate is None or g.value(gate).unspecified is not None:
        gate = g.input(dtypes.bool, g.base)
    return UOp(Op.LOAD, u, alt, gate)


def _pairs(u: UOp | None, v: UOp, base: Shape) -> bool:
    return u is not None and v is not u and v.dtype is u.dtype and v.shape == base


@growth.on_candidate(lambda g, v: True)
def copied(g: growth.Growth, u: UOp) -> UOp | None:
    """Add a marker, or a LOAD, which the compiler may give memory of its own."""
    ops = g.vocabulary.of((Op.CONTIGUOUS, Op.LOAD, Op.DETACH, Op.CONTIGUOUSBACKWARD))
    return UOp(g.choices.pick(ops), u) if ops else None


def joined(g: growth.Growth) -> UOp | None:
    """Build a STACK of two values, then fold it or take one of them."""
    u = g.take(lambda v: v.shape == g.base)
    other = g.take(lambda v: _pairs(u, v, g.base))
    if u is None or other is None:
        return None
    both = UOp(Op.STACK, u, other)
    if u.dtype.is_float or g.choices.chance(50):
        return UOp(Op.INDEX, both, const(g.choices.below(2), dtypes.int32))
    return nodes.reshape(nodes.fold(g.choices.pick(folds(g)), both, (0,)), g.base)


@growth.on_candidate(growth.is_number)
def called(g: growth.Growth, u: UOp) -> UOp | None:
    """Build a FUNCTION of two candidates, one of whose results is used."""
    other = g.take_like(u)
    a, b = param(0, u.shape, u.dtype), param(1, other.shape, u.dtype)
    ops = g.vocabulary.on(u.dtype).total
    if not ops or not g.vocabulary.has(*CALLED):
        return None
    first, second = g.choices.pick(ops), g.choices.pick(ops)
    inner = UOp(first, b, a)
    body = (inner, UOp(second, inner, b))
    k = g.choices.below(2)
    inlined = body[k].substitute({a: u, b: other})
    result = nodes.call(body, u, other)[k]
    g.known[result] = g.value(inlined)
    g.wide[result] = g.width(inlined)
    if inlined in g.loose:
        g.loose.add(result)
    return result


@growth.on_candidate(growth.is_long)
def view(g: growth.Growth, u: UOp) -> UOp | None:
    """Move a value and keep its shape: FLIP, a shift by PAD and SHRINK, another shape and back."""
    views = [(view, weight) for view, weight, ops in VIEWS if g.vocabulary.has(*ops)]
    return g.choices.weighted(views)(g.choices, u) if views else None


def _long_axis(choices: Choices, u: UOp) -> int:
    return choices.pick([k for k, s in enumerate(u.shape) if s > 1])


def _flip(choices: Choices, u: UOp) -> UOp:
    flags = [choices.chance(50) for _ in u.shape]
    flags[choices.below(len(flags))] = True
    return nodes.flip(u, flags)


def shift(choices: Choices, u: UOp, fill: PadFill = PadFill.ZERO) -> UOp:
    """Shift along an axis longer than 1; the fill enters on one side."""
    axis = _long_axis(choices, u)
    by = choices.between(1, u.shape[axis] - 1)
    none = [0] * len(u.shape)
    step = [by * (k == axis) for k in range(len(u.shape))]
    sizes = [s + b for s, b in zip(u.shape, step, strict=True)]
    before, after = (step, none) if choices.chance(50) else (none, step)
    return nodes.shrink(nodes.pad(u, before, sizes, fill), after, u.shape)


def _there_and_back(choices: Choices, u: UOp) -> UOp:
    """Flatten, reverse or transpose, and return: the order of elements shows."""
    *outer, last = u.shape
    if outer and choices.chance(60):
        return nodes.reshape(nodes.permute(nodes.reshape(u, (last, prod(outer))), (1, 0)), u.shape)
    return nodes.reshape(nodes.flip_all(nodes.reshape(u, (prod(u.shape),))), u.shape)


def _row(choices: Choices, u: UOp) -> UOp:
    """Select one position along an axis, which then broadcasts."""
    axis = _long_axis(choices, u)
    offset = [choices.below(s) if k == axis else 0 for k, s in enumerate(u.shape)]
    return nodes.shrink(u, offset, (1 if k == axis else s for k, s in enumerate(u.shape)))


def _regrouped(choices: Choices, u: UOp) -> UOp:
    shape = (prod(u.shape),) if choices.chance(50) else (*u.shape[1:], u.shape[0])
    return nodes.reshape(nodes.reshape(u, shape), u.shape)


def _repeated(choices: Choices, u: UOp) -> UOp:
    """Repeat along a new axis, maybe merge it with another one, and fold again."""
    n = choices.between(2, 3)
    repeated = nodes.copies(u, n)
    if choices.chance(50):
        repeated = nodes.reshape(
            nodes.reshape(repeated, (n * u.shape[0], *u.shape[1:])), (n, *u.shape)
        )
    # The sum of two equal floats is the same in any order.
    op = Op.ADD if n == 2 or not u.dtype.is_float else Op.MAX
    return nodes.reshape(nodes.fold(op, repeated, (0,)), u.shape)


def _spread(choices: Choices, u: UOp) -> UOp:
    """Fold along an axis, and expand it again."""
    axis = _long_axis(choices, u)
    op = Op.MAX if u.dtype.is_float else choices.pick((Op.ADD, Op.MUL, Op.MAX))
    return nodes.expand(nodes.fold(op, u, (axis,)), u.shape)


VIEWS: tuple[tuple[Callable[[Choices, UOp], UOp], int, tuple[Op, ...]], ...] = (
    (_flip, 4, (Op.FLIP,)),
    (shift, 3, (Op.PAD, Op.SHRINK)),
    (_there_and_back, 3, (Op.RESHAPE, Op.PERMUTE, Op.FLIP)),
    (_row, 1, (Op.SHRINK,)),
    (_regrouped, 1, (Op.RESHAPE,)),
    (_repeated, 1, (Op.RESHAPE, Op.EXPAND, Op.REDUCE)),
    (_spread, 1, (Op.EXPAND, Op.REDUCE)),
)
"""The ways to move a value, with their weights and ops."""


# Steps towards usual compiler bugs: absent elements, chains of dtypes, constants.


@growth.on_candidate(lambda g, v: bool(v.shape) and not g.width(v))
def absent(g: growth.Growth, u: UOp) -> UOp | None:
    """Build a PAD with absent elements, an op or two on it in any operand, and a consumer."""
    before = [g.choices.below(3) for _ in u.shape]
    sizes = [b + s + g.choices.between(int(not b), 2) for b, s in zip(before, u.shape, strict=True)]
    value = padded = nodes.pad(u, before, sizes, PadFill.INVALID)
    for _ in range(g.choices.between(1, 2)):
        value = _changed(g, value, u, before)
    # What is cut out again holds elements that were absent, along every axis.
    start = tuple(0 if b else t - s for b, s, t in zip(before, u.shape, sizes, strict=True))
    # A fold of bools is the same everywhere, as a rule.
    consumers = CONSUMERS[1:] if value.dtype is dtypes.bool else CONSUMERS
    result = g.choices.pick(consumers)(g, value, padded)
    if result.shape == value.shape:
        return nodes.shrink(result, start, u.shape)
    # A fold left one element along an axis.
    shape = (1 if t == 1 else s for s, t in zip(u.shape, result.shape, strict=True))
    offset = (0 if t == 1 else b for b, t in zip(start, result.shape, strict=True))
    return nodes.shrink(result, offset, shape)


def _changed(g: growth.Growth, value: UOp, u: UOp, before: list[int]) -> UOp:
    """Apply an op to absent elements; its other operands may be absent elsewhere."""
    dtype, kind = value.dtype, g.choices.below(9)
    ops = g.vocabulary.on(dtype)
    if kind == 0 and ops.unary:
        return UOp(g.choices.pick(ops.unary), value)
    if kind == 1:
        wide = g.vocabulary.of_dtypes((dtypes.int64, dtypes.float32, dtypes.bool))
        fits = [d for d in wide if d is not dtype and not (dtype.is_float and d.is_int)]
        return nodes.cast(value, g.choices.pick(fits)) if fits else value
    other = _other(g, value, u)
    if kind == 2 and dtype is not dtypes.bool and ops.comparisons:
        return UOp(g.choices.pick(ops.comparisons), *either_way(g.choices, value, other))
    if kind == 3:
        condition = UOp(Op.CMPLT, *either_way(g.choices, value, other))
        return UOp(Op.WHERE, condition, *either_way(g.choices, value, other))
    if kind == 4 and dtype is not dtypes.bool:
        operands = [other, g.constant(dtype)]
        operands.insert(g.choices.below(3), value)
        return UOp(Op.MULACC, *operands)
    op = g.choices.pick(ops.binary or FOLDS)
    if DECLARATIONS[op].is_partial:
        return UOp(op, value, guarded(g, op, other))
    return UOp(op, *either_way(g.choices, value, other))


def _other(g: growth.Growth, value: UOp, u: UOp) -> UOp:
    """Return another operand: a constant, or a value with or without absent elements."""
    kind = g.choices.below(3)
    if kind == 0:
        return g.constant(value.dtype)
    if kind == 1:
        return g.input(value.dtype, value.shape)
    fill = g.choices.pick((PadFill.INVALID, PadFill.ZERO))
    moved = random_offset(g.choices, u.shape, value.shape)
    return nodes.pad(g.input(value.dtype, u.shape), moved, value.shape, fill)


def _folded(g: growth.Growth, value: UOp, padded: UOp) -> UOp:
    """Fold without the absent elements; floats are not summed, because they may cancel."""
    op = Op.MAX if value.dtype.is_float else g.choices.pick(folds(g))
    return nodes.fold(op, value, (g.choices.below(len(value.shape)),))


def _loaded(g: growth.Growth, value: UOp, padded: UOp) -> UOp:
    """Load under a gate, whose absent elements count as false."""
    other, alt = (g.input(padded.dtype, value.shape) for _ in range(2))
    if value.dtype is dtypes.bool:
        return UOp(Op.LOAD, other, alt, value)
    return UOp(Op.LOAD, value, g.input(value.dtype, value.shape), _present(value, padded))


CONSUMERS: tuple[Callable[[growth.Growth, UOp, UOp], UOp], ...] = (
    _folded,
    lambda g, value, padded: UOp(
        Op.WHERE, _present(value, padded), value, g.input(value.dtype, value.shape)
    ),
    _loaded,
    # A buffer stays as it was at absent elements.
    lambda g, value, _: UOp(Op.LOAD, nodes.after(g.buffer(value.dtype, value.shape), value)),
)


def _present(value: UOp, padded: UOp) -> UOp:
    """Return where a value made of a PAD is present, in the shape of the value."""
    present = nodes.inside(padded)
    return present if value.shape == present.shape else nodes.expand(present, value.shape)


@growth.on_candidate(growth.is_narrow_number)
def chain(g: growth.Growth, u: UOp) -> UOp | None:
    """Convert from dtype to dtype, with ops in between: no step may be dropped or done wider."""
    value = u
    for _ in range(g.choices.between(2, LONGEST_CHAIN)):
        value = _converted(g, value)
        if g.choices.chance(70):
            value = _with_constant(g, value)
    return value


def _converted(g: growth.Growth, value: UOp) -> UOp:
    source = value.dtype
    same = [d for d in g.palette if d.itemsize == source.itemsize and d is not source]
    if same and g.choices.chance(30) and source.kind is not Kind.BOOL:
        return nodes.bitcast(value, g.choices.pick(same))
    others = [d for d in g.palette if d is not source]
    if not others:
        return value
    target = g.choices.pick(others)
    if source.is_float and target.is_int:
        value = fitting(g, value, target)
    return nodes.cast(value, target)


def _with_constant(g: growth.Growth, value: UOp) -> UOp:
    op = g.choices.pick(g.vocabulary.on(value.dtype).binary or FOLDS)
    constant = g.constant(value.dtype)
    if DECLARATIONS[op].is_partial:
        return UOp(op, value, guarded(g, op, constant))
    return UOp(op, *either_way(g.choices, value, constant))


@growth.on_candidate(growth.is_narrow_number)
def with_constants(g: growth.Growth, u: UOp) -> UOp | None:
    """Use constants with a value: twice in one op, in a comparison, as a branch, or all of it."""
    kind, first, second = g.choices.below(5), g.constant(u.dtype), g.constant(u.dtype)
    # A compiler may merge these, with both constants, into one.
    merging = (Op.ADD, Op.MUL, Op.SUB, Op.MAX)
    twice, by = g.vocabulary.of(merging), g.vocabulary.of(FLOOR_DIVISIONS)
    compares, sums = g.vocabulary.on(u.dtype).comparisons, g.vocabulary.of((Op.ADD, Op.SUB))
    if kind == 1 and compares:
        return UOp(Op.WHERE, UOp(g.choices.pick(compares), u, first), u, second)
    if kind == 2 and twice:
        folded = _with_constant(g, first)
        return UOp(g.choices.pick(twice), u, folded)
    if kind == 3 and not u.dtype.is_float and by and twice:
        op = g.choices.pick(by)
        inner = UOp(g.choices.pick(twice), u, first)
        return UOp(op, inner, guarded(g, op, second))
    if kind == 4 and sums:
        return UOp(g.choices.pick(sums), UOp(Op.MUL, u, first), second)
    op = g.choices.pick(twice or merging)
    return UOp(op, *either_way(g.choices, UOp(op, u, first), second))


def aimed(declaration: OpDef, dtype: DType) -> growth.GrowthStep:
    """Return a step that puts one op on values of one dtype, or on an input if there is none."""
    dts = operand_dtypes(declaration, dtype)

    def step(g: growth.Growth) -> UOp | None:
        operands: list[UOp] = []
        for d in dts:
            like = g.take(lambda v, d=d: v.dtype is d and not g.width(v))  # type: ignore[misc]
            operands.append(g.input(d, g.base) if like is None else like)
        if declaration.is_partial:
            operands[1] = guarded(g, declaration.op, operands[1])
        return UOp(declaration.op, *operands)

    return step
