"""Generate level graph, combined: ops that compilers merge into one, in every combination of two.

- view-pairs: each view of each view, on shapes in which the order of elements shows.
- centred: folds of x with a fold of x, along rows that are no multiple of a vector.
- powers: products, quotients and remainders by 1 << y, for each count y of a dtype.
- narrowed: comparisons, maxima and quotients of an integer that lost its upper bits.
- divided: quotients and remainders by constants, of numbers at both ends of a dtype.
- twice-divided: a quotient or remainder by a constant, also times it, divided by another one.
- unchanged: products, folds and transposes of views that change nothing.
- long-folds: views of folds of more elements than one group of work items has.
- left-out: ops and folds of a buffer in which a STORE has left out absent elements, and of these.
- called-on-views: one FUNCTION of several views of a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.pair_forms import LENGTH
from uop.conformance.suite.levels.graph.pairs import Build, groups_of, on_data, ordinary_first
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Counts, Generated, Group
from uop.conformance.suite.levels.nodes import (
    after,
    buffer,
    call,
    cast,
    expand,
    flip,
    fold,
    pad,
    permute,
    reshape,
    shrink,
)
from uop.conformance.suite.values import draw_special, draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import PadFill
from uop.spec.dtype import INTS, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, param

MOVED = (dtypes.int8, dtypes.int32, dtypes.float32)
"""Few dtypes: a view is the same on all."""
SHAPES = (((3, 1), (1, 2, 3)), ((1, 4), (2, 3, 1)))
"""An axis can be repeated, and each joined with one that is."""
DIVISORS = (3, 5, 6, 7, 9, 10, 11, 13, 14, 21, 25, 28, 49, 60, 100, 125)
"""Few of them have a magic number of as many bits as the dtype."""
RESULTS = 8
TWICE = ((2, 4), (3, 12), (16, 12), (4, 2), (5, 3), (100, 2))
"""Pairs of divisors: one is a multiple of the other, or the product is large for 8 bits."""
ROWS = (5, 6, 7, 9)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    return groups_of(vocabulary, _builds)


def _builds(dtype: DType) -> Iterator[tuple[str, Counts, Build]]:
    if dtype in MOVED:
        yield "view-pairs", (1, 2, 12), _view_pairs
        yield "left-out", (1, 2, 12), _left_out
        yield "called-on-views", (1, 2, 12), _called_on_views
        yield "unchanged", (1, 2, 12), _unchanged
        yield "long-folds", (1, 2, 12), _long_folds
    if dtype.is_int or dtype.is_float:
        yield "centred", (1, 1, 6), _centred
    if dtype.is_int:
        yield "powers", (1, 1, 6), _powers
        yield "divided", (2, 2, 12), _divided
        yield "twice-divided", (2, 2, 12), _twice_divided
    if dtype.is_int and dtype.bits > 8:
        yield "narrowed", (2, 2, 12), _narrowed


def _view_pairs(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Take each view of each view; those that order elements anew on two shapes."""
    views = _views(vocabulary)
    x, y = (param(slot, shape, dtype) for slot, shape in enumerate(SHAPES[index % 2]))
    found = []
    for inner, outer in product(views, views):
        is_ordering = {inner, outer} <= {Op.PERMUTE, Op.RESHAPE, Op.EXPAND}
        for u in (x, y) if is_ordering else (x if choices.chance(50) else y,):
            found.append(_viewed(choices, outer, _viewed(choices, inner, u)))
    return on_data(found, vocabulary, choices, ordinary_first)


def _views(vocabulary: Vocabulary) -> tuple[Op, ...]:
    views = (Op.PERMUTE, Op.RESHAPE, Op.SHRINK, Op.PAD, Op.FLIP, Op.EXPAND)
    return vocabulary.of(views) or views


def _divisions(vocabulary: Vocabulary, dtype: DType) -> list[Op]:
    return [op for op in vocabulary.on(dtype).binary if DECLARATIONS[op].is_division]


def _viewed(choices: Choices, op: Op, u: UOp) -> UOp:
    """Return a view that changes something: every axis that can be repeated or cut is."""
    shape = [int(n) for n in u.shape]
    if op is Op.PERMUTE:
        first = choices.between(1, max(1, len(shape) - 1))
        return permute(u, [*range(first, len(shape)), *range(first)])
    if op is Op.FLIP:
        return flip(u, (True,) * len(shape))
    if op is Op.RESHAPE:
        # Two axes become one.
        k = choices.below(max(1, len(shape) - 1))
        return reshape(u, [*shape[:k], shape[k] * (shape[k + 1 :] or [1])[0], *shape[k + 2 :]])
    if op is Op.SHRINK:
        return shrink(u, (n // 2 for n in shape), (n - n // 2 for n in shape))
    if op is Op.PAD:
        return pad(u, (n % 2 for n in shape), (n + n % 2 + 1 for n in shape), PadFill.ZERO)
    return expand(u, (choices.between(2, 3) if n == 1 else n for n in shape))


def _unchanged(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Multiply squares of which one is a view of itself, fold that view, and transpose it."""
    n = choices.between(2, 4)
    x, y = (param(slot, (n, n), dtype) for slot in range(2))
    found = []
    for same in (
        permute(x, (0, 1)),
        reshape(x, (n, n)),
        shrink(x, (0, 0), (n, n)),
        pad(x, (0, 0), (n, n)),
        flip(x, (False, False)),
        expand(x, (n, n)),
    ):
        left, right = choices.shuffled((same, y))
        factors = reshape(left, (n, n, 1)), reshape(right, (1, n, n))
        found.append(fold(Op.ADD, UOp(Op.MUL, *(expand(u, (n,) * 3) for u in factors)), (1,)))
        found += [fold(choices.pick(FOLDS), same, (choices.below(2),)), permute(same, (1, 0))]
    return on_data(found, vocabulary, choices, ordinary_first)


def _long_folds(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Take each view of a fold along a long axis."""
    found = []
    for slot, op in enumerate(choices.shuffled(FOLDS)[:3]):
        x = param(slot, (1 + slot % 2, choices.between(513, 1100)), dtype)
        row = fold(op, x, (1,))
        found += [_viewed(choices, view, row) for view in _views(vocabulary)]
    return on_data(found, vocabulary, choices, ordinary_first)


def _left_out(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Store a part that is padded with absent elements, and compute with the buffer after it."""
    n, found = choices.between(2, 4), []
    for slot in range(4):
        before = choices.below(3)
        size = n + before + choices.between(1, 3)
        part = pad(param(4, (n,), dtype), (before,), (size,), PadFill.INVALID)
        whole = after(buffer(slot, (size,), dtype), part)
        found += [UOp(choices.pick((Op.ADD, Op.MUL, Op.MAX)), whole, whole)]
        found += [fold(choices.pick(FOLDS), whole, (0,)), flip(whole, (True,))]
        found += [fold(op, reshape(part, (size, 1)), (1,)) for op in choices.shuffled(FOLDS)[:2]]
    return on_data(found, vocabulary, choices, ordinary_first)


def _called_on_views(
    dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    """Call one FUNCTION on a square, its transpose, and both in reverse."""
    n = choices.between(2, 4)
    x, y, own = (param(slot, (n, n), dtype) for slot in range(3))
    body = (UOp(choices.pick((Op.ADD, Op.SUB, Op.MUL)), x, y), flip(x, (True, False)))
    turned = permute(own, (1, 0))
    views = [own, turned, *(flip(u, (True, False)) for u in (own, turned))]
    other = param(3, (n, n), dtype)
    found = [v for u in choices.shuffled(views) for v in call(body, *choices.shuffled((u, other)))]
    return on_data(found, vocabulary, choices, ordinary_first)


def _centred(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Fold what an op gives of each element and a fold of its row."""
    found = []
    for slot, n in enumerate(choices.shuffled(ROWS)):
        x = param(slot, (3, n), dtype)
        for outer in (Op.ADD, Op.MAX):
            row = fold(choices.pick((Op.MAX, Op.ADD)), x, (1,))
            op = choices.pick((Op.SUB, Op.ADD, Op.MUL, Op.MAX))
            found.append(fold(outer, UOp(op, *choices.shuffled((x, row))), (1,)))
    return on_data(found, vocabulary, choices, ordinary_first)


def _powers(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Multiply and divide by 1 << y, which may be the least value of the dtype, and by 3 << y."""
    x, y = (param(slot, (LENGTH,), dtype) for slot in range(2))
    found = []
    for op in (Op.MUL, *_divisions(vocabulary, dtype)):
        power = UOp(Op.SHL, const(1, dtype), y)
        found += [UOp(op, x, power), UOp(op, x, UOp(Op.SHL, const(3, dtype), y))]
    counts = {1: sample(draw_within(0, dtype.bits - 1), dtype, (LENGTH,), choices)}
    return on_data(
        found, vocabulary, choices, lambda *made: [b | counts for b in ordinary_first(*made)]
    )


def _divided(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Divide by constants the numbers next to the ends of a dtype, and by some of them any."""
    x = param(0, (LENGTH,), dtype)
    divisors = [const(d, dtype) for d in choices.shuffled(DIVISORS)[:RESULTS]]
    found = [UOp(op, x, d) for d in divisors for op in _divisions(vocabulary, dtype)]
    low, high = int(dtype.min), int(dtype.max)
    ends = range(high - LENGTH + 1, high + 1), range(low, low + LENGTH)
    at_ends = [{0: np.array(end, np_dtype(dtype))} for end in ends]
    return on_data(found, vocabulary, choices, lambda *made: [*at_ends, *ordinary_first(*made)[1:]])


def _twice_divided(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Divide twice; the product of both constants, or of a quotient, may leave the dtype."""
    x, found = param(0, (LENGTH,), dtype), []
    ops = _divisions(vocabulary, dtype)
    pairs = (*TWICE, (int(dtype.max) // 7, 12), (int(dtype.max) // 12, 20))
    for first, second in product(ops, ops):
        for numbers in choices.shuffled(pairs)[:3]:
            a, b = (const(n, dtype) for n in numbers)
            once = UOp(first, x, a)
            found += [UOp(second, once, b), UOp(second, UOp(Op.MUL, once, a), b)]
    return on_data(found, vocabulary, choices, ordinary_first)


def _narrowed(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Compare, divide and select by a wide value of which only the lower bits are kept."""
    x, y = (param(slot, (LENGTH,), dtype) for slot in range(2))
    found = []
    for narrow in (d for d in INTS if d.bits < dtype.bits):
        cut, number = cast(x, narrow), const(choices.between(1, 99), narrow)
        for op in vocabulary.on(narrow).comparisons:
            other = choices.pick((number, cast(y, narrow)))
            found.append(UOp(op, *choices.shuffled((cut, other))))
        for op in (Op.MAX, Op.SHR, *_divisions(vocabulary, narrow)):
            found.append(UOp(op, cut, const(3, narrow)))
        found.append(cast(UOp(Op.ADD, cut, number), dtype))
    return on_data(found, vocabulary, choices, _beyond_a_byte)


def _beyond_a_byte(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return a batch of numbers most of which need more than 8 bits, and one of special values."""
    inputs, draws = slots_of(root).items(), (draw_within(0, 600), draw_special)
    return [{k: sample(draw, u.dtype, u.shape, choices) for k, u in inputs} for draw in draws]
