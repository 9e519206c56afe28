"""Generate level graph: what a compiler decides about an op from what is around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TypeVar

import numpy as np

from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.levels.graph import pairs
from uop.conformance.suite.levels.graph.pairs import ARITHMETIC
from uop.conformance.suite.levels.graph.patterns.rewrites import MOVED, SIDES
from uop.conformance.suite.levels.graph.steps import FOLDS, either_way
from uop.conformance.suite.levels.group import Counts, Generated, program
from uop.conformance.suite.levels.nodes import cast, flip_all, fold, outputs
from uop.conformance.suite.values import array
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import ConstArg
from uop.spec.dtype import INTS, NUMBERS, VALUES, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, param

TOGETHER = 16
"""The values in one program; each is an output or two."""
ENDS = (-128, -127, -100, -7, -3, -2, -1, 0, 1, 2, 3, 5, 8, 100, 126, 127)
"""Narrow values, of an unsigned operand modulo 256; two inputs have all pairs of them."""
FACTORS = (1, 2, 3, 5, 16)
CHAINS = 3
T = TypeVar("T")
Values = Callable[[DType], UOp]


KINDS = pairs.Kinds()
groups = KINDS.groups


def _counts(
    few: int, listed: Callable[[DType, Vocabulary], Sequence[object]]
) -> Callable[[DType, Vocabulary], Counts]:
    """Return what counts the programs of what is listed; `few` are in a smoke run."""

    def counts(dtype: DType, vocabulary: Vocabulary) -> Counts:
        count = -(-len(listed(dtype, vocabulary)) // TOGETHER)
        return (few if count else 0, count, 4 * count)

    return counts


def _narrow(slot: int, kind: DType) -> Values:
    return lambda dtype: cast(param(slot, (len(ENDS) ** 2,), kind), dtype)


def _negative(slot: int) -> Values:
    return lambda dtype: UOp(Op.SUB, const(-1, dtype), _narrow(slot, dtypes.uint8)(dtype))


def _positive(slot: int) -> Values:
    return lambda dtype: UOp(Op.ADD, _narrow(slot, dtypes.uint8)(dtype), const(1, dtype))


FIRST: dict[bool, tuple[Values, ...]] = {
    True: (_narrow(0, dtypes.int8), _narrow(1, dtypes.uint8), _negative(1)),
    False: (_narrow(1, dtypes.uint8), _positive(1)),
}
"""The first operands, by whether the dtype has a sign."""
SECOND: dict[bool, tuple[Values | Sequence[int], ...]] = {
    True: (FACTORS, (-7, -3, -2, -1), _positive(3), _negative(3), _narrow(2, dtypes.int8)),
    False: (FACTORS, _positive(3), _narrow(3, dtypes.uint8)),
}
"""The second ones, the last of which may be zero; numbers are constants."""
Bounded = tuple[Op, Values, Values | Sequence[int] | None]
"""An op on narrow operands; it has one operand where the second is None."""


def _value(row: Bounded, dtype: DType, choices: Choices) -> UOp:
    op, first, second = row
    if second is None:
        return UOp(op, first(dtype))
    if callable(second):
        return UOp(op, first(dtype), second(dtype))
    numbers = range(1, dtype.bits // 2) if DECLARATIONS[op].is_shift else second
    return UOp(op, first(dtype), const(choices.pick(numbers), dtype))


@cache
def _bounded(dtype: DType, vocabulary: Vocabulary) -> tuple[Bounded, ...]:
    """Return the ops with each pair of operands, those of a dtype from its share on."""
    if not dtype.is_int or dtype.bits == 8:
        return ()
    first, second = FIRST[dtype.is_signed], SECOND[dtype.is_signed]
    every: list[Bounded] = [(op, u, None) for op in vocabulary.of((Op.NEG,), dtype) for u in first]
    for op in (*vocabulary.on(dtype).binary, *vocabulary.of((Op.CDIV, Op.CMOD), dtype)):
        # Of a quotient the last operand may be zero, and a count of a shift is a constant.
        declared = DECLARATIONS[op]
        last = 1 if declared.is_shift else len(second) - declared.is_division
        every += [(op, one, other) for one in first for other in second[:last]]
    return _from_own_share(dtype, every, "ends")


def _all_pairs(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return narrow values: one of the first two slots and one of the others hold all pairs."""
    columns = np.repeat(ENDS, len(ENDS)), np.tile(ENDS, len(ENDS))
    inputs = slots_of(root).items()
    return [{k: array(u.dtype, (int(n) % 256 for n in columns[k // 2])) for k, u in inputs}]


@KINDS.add("ends", _counts(4, _bounded), VALUES, _all_pairs)
def _ends(p: pairs.Plan) -> Iterator[UOp]:
    """Compare the next values with numbers between the least and the largest of them.

    A compiler with a wrong interval replaces the comparison by a constant.
    """
    every = [_value(row, p.dtype, p.choices) for row in _turn(p, _bounded)]
    for u in dict.fromkeys(filter(p.vocabulary.speaks, every)):
        result = evaluate(u, _all_pairs(u, p.choices)[0])
        assert isinstance(result, np.ndarray)
        low, high = int(result.min()), int(result.max())
        below = p.choices.pick([low, (3 * low + high) // 4, min(max(low, -1), high)])
        above = p.choices.pick([high, (low + 3 * high) // 4, max(min(high, 3), low)])
        yield UOp(Op.CMPLT, u, p.const(above))
        yield UOp(Op.CMPLT, p.const(below), u)


@cache
def _viewed(dtype: DType, vocabulary: Vocabulary) -> tuple[tuple[Op, Op, bool], ...]:
    """Return ops with views, first the op inside the view or the other way round."""
    ops = vocabulary.on(dtype)
    one, two = ops.unary + ops.unary_wide, ops.binary + ops.comparisons
    views = vocabulary.of(MOVED)
    every = [(op, view, False) for op in (*two, *one) for view in views]
    every += [(op, view, True) for op in (*two, *one) for view in vocabulary.of((Op.PAD,))]
    return _from_own_share(dtype, every, "views")


@KINDS.add("under-views", _counts(1, _viewed), VALUES, pairs.ordinary_first)
def _under_views(p: pairs.Plan) -> Iterator[UOp]:
    """Apply the next ops to views of their operands, or take a view of the result.

    A compiler that moves an op through a view may lose what the view adds.
    """
    for op, view, is_inside in _turn(p, _viewed):
        shape = (1, SIDES[1]) if view is Op.EXPAND else SIDES
        declared = DECLARATIONS[op]
        slots = range(2 * (view is Op.EXPAND), 2 * (view is Op.EXPAND) + len(declared.src))
        operands = [param(slot, shape, p.dtype) for slot in slots]
        if not is_inside:
            operands = [MOVED[view](u) for u in operands]
        if declared.is_partial:
            # It must fit, and a view may add zeros.
            operands[1] = p.const(2)
        elif len(operands) == 2 and not is_inside and p.choices.chance(30):
            operands[1] = p.const(p.choices.below(2))
        result = UOp(op, *operands)
        yield MOVED[view](result) if is_inside else result


@cache
def _wrapping(dtype: DType, vocabulary: Vocabulary) -> tuple[tuple[Op, Op], ...]:
    """Return pairs of an op that wraps and one that shows it, of a dtype from its share on."""
    if not dtype.is_int:
        return ()
    ops = vocabulary.on(dtype)
    outer = ops.binary + ops.comparisons + vocabulary.of((Op.CDIV, Op.CMOD, Op.CAST), dtype)
    inner = vocabulary.of((Op.ADD, Op.SUB, Op.MUL, Op.NEG, Op.SHL, Op.REDUCE), dtype)
    # The low bits of these are the same with and without the wrap.
    same = (Op.ADD, Op.SUB, Op.MUL, Op.SHL, Op.AND, Op.OR, Op.XOR)
    every = [(one, other) for one in inner for other in outer if other not in same]
    return _from_own_share(dtype, every, "wraps")


@KINDS.add("wraps", _counts(1, _wrapping), VALUES)
def _wraps(p: pairs.Plan) -> Iterator[UOp]:
    """Apply an op to what wraps; a compiler that computes both in a wider dtype is wrong."""
    x, y, z = p.inputs(3)
    for inner, outer in _turn(p, _wrapping):
        count = p.const(1 + p.choices.below(p.dtype.bits - 1))
        other = [] if inner is Op.NEG else [count if inner is Op.SHL else p.choices.pick((x, y))]
        value = fold(Op.ADD, x, (0,)) if inner is Op.REDUCE else UOp(inner, x, *other)
        if outer is Op.CAST:
            yield cast(value, p.choices.pick(_wider(p.dtype)))
        elif DECLARATIONS[outer].is_partial:
            divisor = p.const(p.choices.pick(FACTORS[1:]))
            yield UOp(outer, value, count if DECLARATIONS[outer].is_shift else divisor)
        else:
            yield UOp(outer, *either_way(p.choices, value, p.choices.pick((z, p.const(0)))))


def _wider(dtype: DType) -> list[DType]:
    return [d for d in VALUES if d is dtypes.float64 or (d.is_int and d.bits > dtype.bits)]


@KINDS.add("wrapped-constants", lambda dtype, _: (int(dtype.bits in (8, 32)), 1, 6), INTS)
def _wrapped_constants(p: pairs.Plan) -> Iterator[UOp]:
    """Apply ops to constants that wrap, and use the results beside data.

    A compiler that computes them in numbers without end is wrong.
    """
    (x,), low, high = p.inputs(1), int(p.dtype.min), int(p.dtype.max)
    for inner in p.of(*ARITHMETIC):
        first = low + p.choices.below(9) if inner is Op.SUB else high - p.choices.below(9)
        second = p.const(p.choices.between(high // 4, high // 2))
        value = UOp(inner, p.const(first), second)
        for op in p.of(Op.SHR, Op.IDIV, Op.MOD, Op.MAX):
            yield UOp(inner, x, UOp(op, value, p.const(p.choices.between(2, 5))))
        yield from (cast(value, d) for d in _wider(p.dtype))
        yield UOp(Op.CMPLT, value, second)


def _is_inside(kind: DType, dtype: DType) -> bool:
    """Return whether a dtype has all integers of another one, and those next to its ends."""
    if dtype.is_float:
        return kind.bits < dtype.format.precision
    return dtype.is_int and dtype.min <= kind.min and kind.max < dtype.max


CLAMPED = tuple(d for d in VALUES if any(_is_inside(kind, d) for kind in INTS))


@KINDS.add("clamped", (1, 1, 1), CLAMPED, pairs.just_given)
def _clamped(p: pairs.Plan) -> Iterator[UOp]:
    """Clamp to the range of another dtype, first from below or first from above, and convert.

    A compiler may take it for a conversion that saturates.
    """
    for slot, kind in enumerate(d for d in INTS if _is_inside(d, p.dtype)):
        low, high = p.const(kind.min), p.const(kind.max)
        numbers = [n + k for n in (kind.min, 0, kind.max) for k in (-2, -1, 0, 1, 2)]
        numbers += [p.choices.between(int(kind.min), int(kind.max)) for _ in range(3)]
        column = [n for n in numbers if p.dtype.is_float or p.dtype.min <= n <= p.dtype.max]
        x = param(slot, (len(column),), p.dtype)
        yield cast(UOp(Op.MIN, UOp(Op.MAX, x, low), high), kind)
        yield cast(UOp(Op.MAX, UOp(Op.MIN, x, high), low), kind)
        p.given[slot] = array(p.dtype, (ConstArg.of(n, p.dtype).bits for n in column))


def _from_own_share(dtype: DType, every: Sequence[T], name: str) -> tuple[T, ...]:
    """Return what is listed in an order that its name decides, those of a dtype first."""
    shuffled = CountedChoices(0, name).shuffled(every)
    begin = pairs.own_share(dtype, len(shuffled))
    return (*shuffled[begin:], *shuffled[:begin])


def _turn(p: pairs.Plan, listed: Callable[[DType, Vocabulary], Sequence[T]]) -> list[T]:
    """Return the next ones of what is listed; after the last the first follows."""
    every = listed(p.dtype, p.vocabulary)
    return [every[(TOGETHER * p.index + k) % len(every)] for k in range(TOGETHER)]


def _last_reads(p: pairs.Plan) -> Generated:
    """Return values, and what is computed from them and from folds and views of them, in any order.

    One is returned twice. A compiler that writes over a value too early is wrong.
    """
    inputs, found = p.inputs(3, (2 * TOGETHER + 1,)), []
    ops, folds = p.of(*ARITHMETIC), p.of(Op.MAX, *FOLDS)[:1]
    for _ in range(CHAINS):
        x, y, z = p.choices.shuffled(inputs)
        f, g, h = (p.choices.pick(ops) for _ in range(3))
        first = UOp(f, x, y)
        second = UOp(g, first, z)
        turned = UOp(h, flip_all(first), second)
        every = [second, turned, *(fold(op, u, (0,)) for op in folds for u in (first, second))]
        found += p.choices.shuffled([*every, p.choices.pick([first, second])])
    root = outputs(*found, found[0])
    return program(root, *pairs.data_for(root, p.choices))


def _counts_of_reads(dtype: DType, vocabulary: Vocabulary) -> Counts:
    return (1, 1, 12) if vocabulary.of(ARITHMETIC, dtype) else (0, 0, 0)


KINDS.append(pairs.Kind("last-reads", _counts_of_reads, NUMBERS, _last_reads))
