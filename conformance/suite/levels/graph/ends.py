"""Generate level graph: what a compiler decides about an op from what is around it.

- ends: a comparison inside the interval of an op on narrow values, at a value that both sides have.
  A compiler with a wrong interval replaces the comparison by a constant.
- under-views: one op between two views that are equal, and a view of the op. A compiler that moves
  an op through a view may lose what the view adds.
- wraps: an integer op that wraps, in another one that differs without the wrap. A compiler that
  computes both in a wider dtype is wrong.
- wrapped-constants: the same of constants alone, beside data. A compiler that computes them in
  numbers without end is wrong.
- clamped: a conversion to fewer bits of what was clamped to their range. A compiler may take it for
  a conversion that saturates.
- last-reads: outputs that read other outputs, folds of them and views. A compiler that writes over
  a value too early is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeVar

import numpy as np

from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.levels.graph.pairs import (
    ARITHMETIC,
    LENGTH,
    Build,
    data_for,
    groups_of,
    on_data,
    ordinary_first,
    own_share,
)
from uop.conformance.suite.levels.graph.rewrites import MOVED, SIDES
from uop.conformance.suite.levels.graph.steps import FOLDS, either_way
from uop.conformance.suite.levels.group import Counts, Generated, Group, program
from uop.conformance.suite.levels.nodes import cast, flip_all, fold, outputs
from uop.conformance.suite.values import array
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import ConstArg
from uop.spec.dtype import INTS, VALUES, DType, dtypes
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


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    return groups_of(vocabulary, partial(_builds, vocabulary))


def _builds(vocabulary: Vocabulary, dtype: DType) -> Iterator[tuple[str, Counts, Build]]:
    for name, few, listed, build in LISTED:
        if count := -(-len(listed(dtype, vocabulary)) // TOGETHER):
            yield name, (few, count, 4 * count), build
    if dtype.is_int:
        yield "wrapped-constants", (int(dtype.bits in (8, 32)), 1, 6), _wrapped_constants
    if any(_is_inside(d, dtype) for d in INTS):
        yield "clamped", (1, 1, 1), _clamped
    if vocabulary.of(ARITHMETIC, dtype) and dtype is not dtypes.bool:
        yield "last-reads", (1, 1, 12), _last_reads


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


@dataclass(frozen=True, slots=True)
class Bounded:
    """An op on narrow operands; it has one operand where the second is None."""

    op: Op
    first: Values
    second: Values | Sequence[int] | None

    def value(self, dtype: DType, choices: Choices) -> UOp:
        if self.second is None:
            return UOp(self.op, self.first(dtype))
        if isinstance(self.second, Sequence):
            counts = range(1, dtype.bits // 2)
            other = const(
                choices.pick(counts if DECLARATIONS[self.op].is_shift else self.second), dtype
            )
        else:
            other = self.second(dtype)
        return UOp(self.op, self.first(dtype), other)


@cache
def _bounded(dtype: DType, vocabulary: Vocabulary) -> tuple[Bounded, ...]:
    """Return the ops with each pair of operands, those of a dtype from its share on."""
    if not dtype.is_int or dtype.bits == 8:
        return ()
    first, second = FIRST[dtype.is_signed], SECOND[dtype.is_signed]
    every = [Bounded(Op.NEG, one, None) for one in first if vocabulary.of((Op.NEG,), dtype)]
    for op in (*vocabulary.on(dtype).binary, *vocabulary.of((Op.CDIV, Op.CMOD), dtype)):
        # Of a quotient the last operand may be zero, and a count of a shift is a constant.
        declared = DECLARATIONS[op]
        last = 1 if declared.is_shift else len(second) - declared.is_division
        every += [Bounded(op, one, other) for one in first for other in second[:last]]
    every = CountedChoices(0, "ends").shuffled(every)
    begin = own_share(dtype, len(every))
    return (*every[begin:], *every[:begin])


def _ends(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Compare the next values with numbers between the least and the largest of them."""
    every = (row.value(dtype, choices) for row in _turn(_bounded(dtype, vocabulary), index))
    values = dict.fromkeys(u for u in every if vocabulary.speaks(u))
    found: list[UOp] = []
    for u in values:
        result = evaluate(u, {slot: _crossed(v, slot) for slot, v in slots_of(u).items()})
        assert isinstance(result, np.ndarray)
        low, high = int(result.min()), int(result.max())
        below = choices.pick([low, (3 * low + high) // 4, min(max(low, -1), high)])
        above = choices.pick([high, (low + 3 * high) // 4, max(min(high, 3), low)])
        found.append(UOp(Op.CMPLT, u, const(above, dtype)))
        found.append(UOp(Op.CMPLT, const(below, dtype), u))
    root = outputs(*found)
    return program(root, {slot: _crossed(u, slot) for slot, u in slots_of(root).items()})


def _crossed(u: UOp, slot: int) -> Array:
    """Return the narrow values such that two slots hold all pairs of them."""
    column = np.repeat(ENDS, len(ENDS)) if slot < 2 else np.tile(ENDS, len(ENDS))
    return array(u.dtype, (int(n) % 256 for n in column))


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
    pairs = [(one, other) for one in inner for other in outer if other not in same]
    every = CountedChoices(0, "wraps").shuffled(pairs)
    begin = own_share(dtype, len(every))
    return (*every[begin:], *every[:begin])


def _wraps(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Apply an op to what wraps."""
    x, y, z = (param(slot, (LENGTH,), dtype) for slot in range(3))
    wider, found = _wider(dtype), []
    for inner, outer in _turn(_wrapping(dtype, vocabulary), index):
        count = const(1 + choices.below(dtype.bits - 1), dtype)
        other = [] if inner is Op.NEG else [count if inner is Op.SHL else choices.pick((x, y))]
        value = fold(Op.ADD, x, (0,)) if inner is Op.REDUCE else UOp(inner, x, *other)
        if outer is Op.CAST:
            found.append(cast(value, choices.pick(wider)))
        elif DECLARATIONS[outer].is_partial:
            divisor = const(choices.pick(FACTORS[1:]), dtype)
            found.append(UOp(outer, value, count if DECLARATIONS[outer].is_shift else divisor))
        else:
            second = choices.pick((z, const(0, dtype)))
            found.append(UOp(outer, *either_way(choices, value, second)))
    return on_data(found, vocabulary, choices)


def _wider(dtype: DType) -> list[DType]:
    return [d for d in VALUES if d is dtypes.float64 or (d.is_int and d.bits > dtype.bits)]


def _wrapped_constants(
    dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    """Apply ops to constants that wrap, and use the results beside data."""
    x, low, high, found = param(0, (LENGTH,), dtype), int(dtype.min), int(dtype.max), []
    outer = vocabulary.of((Op.SHR, Op.IDIV, Op.MOD, Op.MAX), dtype)
    for inner in vocabulary.of((Op.ADD, Op.SUB, Op.MUL), dtype):
        first = low + choices.below(9) if inner is Op.SUB else high - choices.below(9)
        second = choices.between(high // 4, high // 2)
        value = UOp(inner, const(first, dtype), const(second, dtype))
        shown = [UOp(op, value, const(choices.between(2, 5), dtype)) for op in outer]
        found += [UOp(inner, x, v) for v in shown] + [cast(value, d) for d in _wider(dtype)]
        found.append(UOp(Op.CMPLT, value, const(second, dtype)))
    return on_data(found, vocabulary, choices)


def _clamped(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Clamp to the range of another dtype, first from below or first from above, and convert."""
    found, data = [], {}
    for slot, kind in enumerate(d for d in INTS if _is_inside(d, dtype)):
        low, high = (const(n, dtype) for n in (kind.min, kind.max))
        numbers = [n + k for n in (kind.min, 0, kind.max) for k in (-2, -1, 0, 1, 2)]
        numbers += [choices.between(int(kind.min), int(kind.max)) for _ in range(3)]
        column = [n for n in numbers if dtype.is_float or dtype.min <= n <= dtype.max]
        x = param(slot, (len(column),), dtype)
        every = (UOp(Op.MIN, UOp(Op.MAX, x, low), high), UOp(Op.MAX, UOp(Op.MIN, x, high), low))
        found += [cast(u, kind) for u in every if vocabulary.speaks(cast(u, kind))]
        data[slot] = array(dtype, (ConstArg.of(n, dtype).bits for n in column))
    root = outputs(*found)
    return program(root, {slot: data[slot] for slot in slots_of(root)})


def _is_inside(kind: DType, dtype: DType) -> bool:
    """Return whether a dtype has all integers of another one, and those next to its ends."""
    if dtype.is_float:
        return kind.bits < dtype.format.precision
    return (
        dtype.is_int and kind is not dtypes.index and dtype.min <= kind.min and kind.max < dtype.max
    )


def _turn(listed: Sequence[T], index: int) -> list[T]:
    """Return the next ones; after the last the first follows."""
    places = range(TOGETHER * index, TOGETHER * (index + 1))
    return [listed[k % len(listed)] for k in places]


@cache
def _viewed(dtype: DType, vocabulary: Vocabulary) -> tuple[tuple[Op, Op, bool], ...]:
    """Return ops with views, first the op inside the view or the other way round."""
    ops = vocabulary.on(dtype)
    one, two = ops.unary + ops.unary_wide, ops.binary + ops.comparisons
    views = vocabulary.of(MOVED)
    every = [(op, view, False) for op in (*two, *one) for view in views]
    every += [(op, view, True) for op in (*two, *one) for view in vocabulary.of((Op.PAD,))]
    every = CountedChoices(0, "views").shuffled(every)
    begin = own_share(dtype, len(every))
    return (*every[begin:], *every[:begin])


def _under_views(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Apply the next ops to views of their operands, or take a view of the result."""
    found = []
    for op, view, is_inside in _turn(_viewed(dtype, vocabulary), index):
        shape = (1, SIDES[1]) if view is Op.EXPAND else SIDES
        count = len(DECLARATIONS[op].src)
        operands = [param(2 * (view is Op.EXPAND) + k, shape, dtype) for k in range(count)]
        if is_inside:
            operands[1:] = [_fitting(op, u) for u in operands[1:]]
            found.append(MOVED[view](UOp(op, *operands)))
        else:
            moved = [MOVED[view](u) for u in operands]
            moved[1:] = [_fitting(op, u) for u in moved[1:]]
            if count == 2 and not DECLARATIONS[op].is_partial and choices.chance(30):
                moved[1] = const(choices.below(2), dtype)
            found.append(UOp(op, *moved))
    return on_data(found, vocabulary, choices, ordinary_first)


def _fitting(op: Op, u: UOp) -> UOp:
    """Return a second operand, or a constant where it must fit: a view may add zeros."""
    return const(2, u.dtype) if DECLARATIONS[op].is_partial else u


def _last_reads(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Return values, and what is computed from them and from folds and views of them, in any order.

    One is returned twice.
    """
    inputs = [param(slot, (2 * TOGETHER + 1,), dtype) for slot in range(3)]
    ops, folds = vocabulary.of(ARITHMETIC, dtype), vocabulary.of((Op.MAX, *FOLDS), dtype)
    found: list[UOp] = []
    for _ in range(CHAINS):
        x, y, z = choices.shuffled(inputs)
        f, g, h = (choices.pick(ops) for _ in range(3))
        first = UOp(f, x, y)
        second = UOp(g, first, z)
        turned = UOp(h, flip_all(first), second)
        every = [second, turned, *(fold(op, u, (0,)) for op in folds[:1] for u in (first, second))]
        found += choices.shuffled([*every, choices.pick([first, second])])
    root = outputs(*found, found[0])
    return program(root, *data_for(root, choices))


LISTED = (
    ("ends", 4, _bounded, _ends),
    ("under-views", 1, _viewed, _under_views),
    ("wraps", 1, _wrapping, _wraps),
)
"""The name, the programs of a dtype in a smoke run, what is listed, what builds the programs."""
