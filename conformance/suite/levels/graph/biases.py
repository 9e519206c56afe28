"""Define steps towards usual compiler bugs: absent elements, chains of dtypes, constants."""

from __future__ import annotations

from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.growth import (
    Growth,
    GrowthStep,
    is_narrow_number,
    on_candidate,
)
from uop.conformance.suite.levels.graph.steps import FOLDS, either_way, fitting, folds, guarded
from uop.conformance.suite.levels.op.elementwise import operand_dtypes
from uop.conformance.suite.levels.op.movement import random_offset
from uop.spec.args import PadFill
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.registry import DECLARATIONS, OpDef
from uop.spec.uop import UOp

LONGEST_CHAIN = 4


@on_candidate(lambda g, v: bool(v.shape) and not g.width(v))
def absent(g: Growth, u: UOp) -> UOp | None:
    """Build a PAD with absent elements, an op or two on it in any operand, and a consumer."""
    before = [g.choices.below(3) for _ in u.shape]
    sizes = [b + s + g.choices.between(int(not b), 2) for b, s in zip(before, u.shape, strict=True)]
    value = padded = nodes.pad(u, before, sizes, PadFill.INVALID)
    for _ in range(g.choices.between(1, 2)):
        value = _changed(g, value, u, before)
    # What is cut out again holds elements that were absent, along every axis.
    start = tuple(0 if b else t - s for b, s, t in zip(before, u.shape, sizes, strict=True))
    # A fold of bools is the same everywhere, as a rule.
    consumers = (_selected, _loaded, _stored) if value.dtype is dtypes.bool else CONSUMERS
    result = g.choices.pick(consumers)(g, value, padded)
    if result.shape == value.shape:
        return nodes.shrink(result, start, u.shape)
    # A fold left one element along an axis.
    shape = (1 if t == 1 else s for s, t in zip(u.shape, result.shape, strict=True))
    offset = (0 if t == 1 else b for b, t in zip(start, result.shape, strict=True))
    return nodes.shrink(result, offset, shape)


def _changed(g: Growth, value: UOp, u: UOp, before: list[int]) -> UOp:
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


def _other(g: Growth, value: UOp, u: UOp) -> UOp:
    """Return another operand: a constant, or a value with or without absent elements."""
    kind = g.choices.below(3)
    if kind == 0:
        return g.constant(value.dtype)
    if kind == 1:
        return g.input(value.dtype, value.shape)
    fill = g.choices.pick((PadFill.INVALID, PadFill.ZERO))
    moved = random_offset(g.choices, u.shape, value.shape)
    return nodes.pad(g.input(value.dtype, u.shape), moved, value.shape, fill)


def _folded(g: Growth, value: UOp, padded: UOp) -> UOp:
    """Fold without the absent elements; floats are not summed, because they may cancel."""
    op = Op.MAX if value.dtype.is_float else g.choices.pick(folds(g))
    return nodes.fold(op, value, (g.choices.below(len(value.shape)),))


def _selected(g: Growth, value: UOp, padded: UOp) -> UOp:
    return UOp(Op.WHERE, _present(value, padded), value, g.input(value.dtype, value.shape))


def _loaded(g: Growth, value: UOp, padded: UOp) -> UOp:
    """Load under a gate, whose absent elements count as false."""
    other, alt = (g.input(padded.dtype, value.shape) for _ in range(2))
    if value.dtype is dtypes.bool:
        return UOp(Op.LOAD, other, alt, value)
    return UOp(Op.LOAD, value, g.input(value.dtype, value.shape), _present(value, padded))


def _stored(g: Growth, value: UOp, padded: UOp) -> UOp:
    """Store into a buffer, which stays as it was at absent elements."""
    return UOp(Op.LOAD, nodes.after(g.buffer(value.dtype, value.shape), value))


CONSUMERS = (_folded, _selected, _loaded, _stored)


def _present(value: UOp, padded: UOp) -> UOp:
    """Return where a value made of a PAD is present, in the shape of the value."""
    present = nodes.inside(padded)
    return present if value.shape == present.shape else nodes.expand(present, value.shape)


@on_candidate(is_narrow_number)
def chain(g: Growth, u: UOp) -> UOp | None:
    """Convert from dtype to dtype, with ops in between: no step may be dropped or done wider."""
    value = u
    for _ in range(g.choices.between(2, LONGEST_CHAIN)):
        value = _converted(g, value)
        if g.choices.chance(70):
            value = _with_constant(g, value)
    return value


def _converted(g: Growth, value: UOp) -> UOp:
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


def _with_constant(g: Growth, value: UOp) -> UOp:
    op = g.choices.pick(g.vocabulary.on(value.dtype).binary or FOLDS)
    constant = g.constant(value.dtype)
    if DECLARATIONS[op].is_partial:
        return UOp(op, value, guarded(g, op, constant))
    return UOp(op, *either_way(g.choices, value, constant))


@on_candidate(is_narrow_number)
def with_constants(g: Growth, u: UOp) -> UOp | None:
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


def aimed(declaration: OpDef, dtype: DType) -> GrowthStep:
    """Return a step that puts one op on values of one dtype, or on an input if there is none."""
    dts = operand_dtypes(declaration, dtype)

    def step(g: Growth) -> UOp | None:
        operands: list[UOp] = []
        for d in dts:
            like = g.take(lambda v, d=d: v.dtype is d and not g.width(v))  # type: ignore[misc]
            operands.append(g.input(d, g.base) if like is None else like)
        if declaration.is_partial:
            operands[1] = guarded(g, declaration.op, operands[1])
        return UOp(declaration.op, *operands)

    return step
