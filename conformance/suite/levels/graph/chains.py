"""Generate level graph: a few ops that compilers merge, by rules that hold for some numbers, shapes
or dtypes alone.

- affine: quotients, remainders and comparisons of x * k + r on narrow values, by which compilers
  simplify addresses. Whether a rule holds depends on k, on the divisor and on the range of r.
- filled: quotients and remainders of products that nearly fill a dtype, so that x + c may wrap.
- view-chains: several views, along axes of size 1 too, and a fold of them.
- folded-constants: folds of constants under views, with absent elements or zeros.
- bits-between: an op on the bits of values of another kind.
- shifts: a shift by k, an op with a multiple of 2**k or a mask, and the shift back.
- casts-in-folds: folds of casts, and casts of folds.
- selections: contractions of operands in any order of axes, folds under masks of triangles,
  elements of one value joined anew, and elements of a part of a square.
- adjusted: the divisor, or 1, added to a quotient or remainder where x or the result has a sign.
- idioms: what compilers replace as a whole: a selection by number, some of which select nothing; a
  count of trues; the place of the largest, of which there are several; a variance.
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
- two-axes: folds and selections along two axes of a cube at once, one of which may be repeated.
- rounded: conversions to each float at the points where a second rounding shows.
- widened-pairs: products of integers made wider, sums of them, and narrow products made wider.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import prod

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.pairs import (
    LENGTH,
    Build,
    groups_of,
    on_data,
    ordinary_first,
)
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Counts, Generated, Group, program
from uop.conformance.suite.levels.nodes import (
    after,
    bitcast,
    buffer,
    call,
    cast,
    expand,
    flip,
    fold,
    outputs,
    pad,
    permute,
    reshape,
    shrink,
)
from uop.conformance.suite.values import around_ties, draw_special, draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import PadFill
from uop.spec.dtype import FLOATS, INTS, VALUES, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, const, index_const, param

FACTORS = (2, 3, 4, 6, 8, 9, 12)
"""Numbers with and without common divisors."""
RESULTS = 16
"""The values in one program."""
STEPS = 3
"""The most views in a chain."""
COUNTS: Counts = (1, 2, 24)
MOVED = (dtypes.int8, dtypes.int32, dtypes.float32)
"""Few dtypes: a view is the same on all."""
SHAPES = (((3, 1), (1, 2, 3)), ((1, 4), (2, 3, 1)))
"""An axis can be repeated, and each joined with one that is."""
DIVISORS = (3, 5, 6, 7, 9, 10, 11, 13, 14, 21, 25, 28, 49, 60, 100, 125)
"""Few of them have a magic number of as many bits as the dtype."""
TWICE = ((2, 4), (3, 12), (16, 12), (4, 2), (5, 3), (100, 2))
"""Pairs of divisors: one is a multiple of the other, or the product is large for 8 bits."""
ROWS = (5, 6, 7, 9)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    return groups_of(vocabulary, _builds)


def _builds(dtype: DType) -> Iterator[tuple[str, Counts, Build]]:
    if dtype.is_int:
        yield "affine", (2, 3, 48), _affine
        yield "shifts", (1, 1, 12), _shifts
        if dtype.bits > 8:
            yield "filled", (1, 2, 12), _filled
        if dtype.is_signed:
            yield "adjusted", (1, 2, 12), _adjusted
    yield "view-chains", COUNTS, _view_chains
    yield "folded-constants", COUNTS, _folded_constants
    if dtype is not dtypes.bool:
        yield "bits-between", COUNTS, _bits_between
        yield "casts-in-folds", (1, 1, 12), _casts_in_folds
        yield "idioms", (1, 1, 12), _idioms
        yield "selections", (1, 1, 12), _selections
    if dtype in MOVED:
        yield "view-pairs", (1, 2, 12), _view_pairs
        yield "left-out", (1, 2, 12), _left_out
        yield "called-on-views", (1, 2, 12), _called_on_views
        yield "unchanged", (1, 2, 12), _unchanged
        yield "two-axes", (1, 2, 12), _two_axes
        yield "long-folds", (1, 2, 12), _long_folds
    if dtype.is_int or dtype.is_float:
        yield "centred", (1, 1, 6), _centred
    if dtype.is_int:
        yield "powers", (1, 1, 6), _powers
        yield "divided", (2, 2, 12), _divided
        yield "twice-divided", (2, 2, 12), _twice_divided
    if dtype.is_int and dtype.bits > 8:
        yield "narrowed", (2, 2, 12), _narrowed
    if dtype is dtypes.float32:
        yield "rounded", (3, 3, 12), _rounded
    if dtype.is_int and dtype.bits < 64:
        yield "widened-pairs", (2, 3, 12), _widened_pairs


def _affine(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Divide x * k + r and its kin by a number, and compare them with a number or a value."""
    x, y, z = (param(slot, (LENGTH,), dtype) for slot in range(3))
    found = []
    outer = vocabulary.of((Op.IDIV, Op.MOD, Op.CDIV, Op.CMOD, Op.CMPLT), dtype) or (Op.CMPLT,)
    for _ in range(RESULTS):
        k, m, c = (const(choices.pick(FACTORS), dtype) for _ in range(3))
        rest = UOp(Op.MOD, y, m)
        product = UOp(Op.MUL, choices.pick((x, UOp(Op.MOD, x, c), rest)), k)
        value = choices.pick(
            (
                product,
                UOp(Op.ADD, product, rest),
                UOp(Op.ADD, product, const(choices.between(1, 11), dtype)),
                UOp(Op.SUB, rest, UOp(Op.MOD, x, c)),
                UOp(Op.MUL, x, x),
                UOp(Op.ADD, product, UOp(Op.MUL, UOp(Op.IDIV, y, m), c)),
            ),
        )
        op = choices.pick(outer)
        if op is not Op.CMPLT:
            value = UOp(op, value, const(choices.pick(FACTORS), dtype))
            if choices.chance(50):
                found.append(value)
                continue
        limit = choices.pick((z, const(choices.pick((0, 1, 3, 7, 10)), dtype)))
        found.append(UOp(Op.CMPLT, *choices.shuffled([value, limit])))
    root = outputs(*dict.fromkeys(u for u in found if vocabulary.speaks(u)))
    ranges = (draw_within(0, 20), draw_within(-40 * dtype.is_signed, 40))
    inputs = slots_of(root)
    data = ({k: sample(draw, dtype, (LENGTH,), choices) for k in inputs} for draw in ranges)
    return program(root, *data)


def _shifts(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Shift x, apply each op with a constant that is a multiple of 2**k, and shift back."""
    x, y = (param(slot, (LENGTH,), dtype) for slot in range(2))
    found = []
    for op in (Op.ADD, Op.SUB, Op.MUL, Op.XOR, Op.AND, Op.MAX):
        for there, back in ((Op.SHL, Op.SHR), (Op.SHR, Op.SHL)):
            few = choices.between(1, dtype.bits // 2 - 1)
            k, mask = const(few, dtype), const((1 << dtype.bits - few - 1) - 1, dtype)
            number = const(choices.pick((1, 3)) << few, dtype)
            shifted = UOp(back, UOp(op, UOp(there, x, k), number), k)
            found += [shifted, UOp(op, UOp(there, y, k), mask), UOp(back, UOp(there, y, k), k)]
    return on_data(found, vocabulary, choices)


def _filled(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Divide a narrow value times a factor that leaves little room in a wide dtype."""
    narrow = next(d for d in INTS if d.kind is dtype.kind and 2 * d.bits == dtype.bits)
    x = cast(param(0, (LENGTH,), narrow), dtype)
    most = int(dtype.max) // (int(narrow.max) + 1)
    found = []
    for op in _divisions(vocabulary, dtype) or (Op.IDIV,):
        for divisor in choices.shuffled((2, *FACTORS, 7, 100)[:: 1 + index % 2])[:4]:
            product = UOp(Op.MUL, x, const(most - choices.below(most // 4), dtype))
            found.append(UOp(op, product, const(divisor, dtype)))
    return on_data(found, vocabulary, choices)


def _adjusted(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Add the divisor, or 1, to a quotient or a remainder of x where x or the result has a sign."""
    x, zero = param(0, (LENGTH,), dtype), const(0, dtype)
    found = []
    for op in _divisions(vocabulary, dtype) or (Op.MOD,):
        divisor = const(choices.pick(FACTORS), dtype)
        result = UOp(op, x, divisor)
        for signed in (x, result):
            negative = UOp(Op.CMPLT, signed, zero)
            other = choices.pick((UOp(Op.CMPLT, zero, signed), UOp(Op.CMPNE, signed, zero)))
            step = choices.pick((divisor, const(1, dtype), const(-1, dtype)))
            found.append(UOp(Op.WHERE, negative, UOp(Op.ADD, result, divisor), result))
            found.append(UOp(Op.WHERE, other, UOp(Op.ADD, result, step), result))
    return on_data(found, vocabulary, choices)


def _casts_in_folds(
    dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    """Fold what is cast to a dtype, and cast folds to it: the element that decides may change."""
    kinds = (d for d in VALUES if d not in (dtype, dtypes.index))
    # A float outside an integer's range has no value in it.
    fits = [d for d in kinds if dtype.is_float or not d.is_float]
    found = []
    for slot in range(RESULTS // 4):
        x = param(slot, (3, 4), choices.pick(vocabulary.of_dtypes(fits) or [dtype]))
        for axes in ((0,), (1,)):
            op = choices.pick(vocabulary.of(FOLDS, dtype) or FOLDS)
            found.append(fold(op, cast(x, dtype), axes))
        if x.dtype is not dtypes.bool:
            found.append(cast(fold(choices.pick(FOLDS), x, (1,)), dtype))
    return on_data(found, vocabulary, choices)


def _view_chains(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Take views of views, and fold half of them."""
    found = []
    for slot, shape in enumerate(((3, 1, 2), (2, 3), (1, 4), (2, 2, 3))):
        for k in range(RESULTS // 4):
            u = param(slot, shape, dtype)
            for _ in range(choices.between(2, STEPS)):
                u = _view(choices, vocabulary, u)
            found.append(_fold(choices, vocabulary, u) if k % 2 else u)
    return on_data(found, vocabulary, choices, ordinary_first)


def _view(choices: Choices, vocabulary: Vocabulary, u: UOp) -> UOp:
    """Return one view of a value that has at least one axis."""
    op, shape = choices.pick(_views(vocabulary)), u.shape
    if op is Op.PERMUTE:
        return permute(u, choices.shuffled(range(len(shape))))
    if op is Op.FLIP:
        return flip(u, (choices.chance(50) for _ in shape))
    if op is Op.RESHAPE:
        return reshape(u, _other_shape(choices, shape))
    if op is Op.SHRINK:
        offset = [choices.below(s) for s in shape]
        return shrink(
            u, offset, (choices.between(1, s - o) for s, o in zip(shape, offset, strict=True))
        )
    if op is Op.PAD:
        before = [choices.below(3) for _ in shape]
        sizes = [s + b + choices.below(2) for s, b in zip(shape, before, strict=True)]
        return pad(u, before, sizes, PadFill.ZERO)
    return expand(u, (choices.between(1, 3) if s == 1 else s for s in shape))


def _other_shape(choices: Choices, shape: Shape) -> list[int]:
    """Return a shape of as many elements: axes split and joined anew, with an axis of size 1."""
    left, sizes = prod(shape), []
    while left > 1:
        size = choices.pick([n for n in range(2, left + 1) if left % n == 0])
        sizes.append(size)
        left //= size
    return choices.shuffled([*sizes, 1])


def _fold(choices: Choices, vocabulary: Vocabulary, u: UOp) -> UOp:
    axes = [k for k in range(len(u.shape)) if choices.chance(50)] or [0]
    return fold(choices.pick(vocabulary.of(FOLDS, u.dtype) or FOLDS), u, axes)


def _folded_constants(
    dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    """Fold a constant that is repeated, padded and cut, and add a value that is none."""
    x = param(0, (1,), dtype)
    found = []
    for number in choices.shuffled(range(2, 2 + RESULTS)):
        n, before = choices.between(1, 4), choices.below(3)
        value = const(bool(number % 2) if dtype is dtypes.bool else number, dtype)
        u = expand(reshape(value, (1,)), (n,))
        if choices.chance(70):
            fill = choices.pick((PadFill.INVALID, PadFill.ZERO))
            u = pad(u, (before,), (n + before + choices.below(3),), fill)
        if choices.chance(30):
            u = UOp(choices.pick(vocabulary.of((Op.ADD, Op.MUL, Op.MAX)) or (Op.ADD,)), u, value)
        folded = _fold(choices, vocabulary, u)
        found.append(UOp(Op.ADD if dtype is not dtypes.bool else Op.OR, folded, x))
    return on_data(found, vocabulary, choices, ordinary_first)


def _bits_between(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Apply ops to the bits of values, and turn the results back."""
    x, y = (param(slot, (LENGTH,), dtype) for slot in range(2))
    kinds = [d for d in VALUES if d not in (dtypes.bool, dtypes.index, dtype)]
    others = [d for d in kinds if d.bits == dtype.bits and d.kind is not dtype.kind]
    found = []
    for _ in range(RESULTS if others else 0):
        kind = choices.pick(others)
        ops = vocabulary.on(kind)
        one, two = ops.unary + ops.unary_wide, ops.binary + ops.comparisons
        op = choices.pick(
            [op for op in (*one, *two) if not DECLARATIONS[op].is_partial] or [Op.NOOP]
        )
        operands = [bitcast(u, kind) for u in (x, y)][: 2 if op in two else 1]
        value = UOp(op, *operands)
        found.append(bitcast(value, dtype) if value.dtype is kind else value)
    return on_data(found, vocabulary, choices)


def _selections(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Contract, mask and select, where sizes are equal, so only the order of axes can be wrong."""
    n = choices.between(2, 4)
    x, y = (param(slot, (n, n, n), dtype) for slot in range(2))
    square, row = param(2, (n, n), dtype), param(3, (1, n), dtype)
    picks = param(4, (n,), dtypes.int32)
    found = []
    for _ in range(4):
        left = reshape(permute(x, choices.shuffled(range(3))), (n, n, 1, n))
        right = reshape(permute(y, choices.shuffled(range(3))), (n, 1, n, n))
        product = UOp(Op.MUL, expand(left, (n,) * 4), expand(right, (n,) * 4))
        found.append(fold(Op.ADD, product, (choices.below(4),)))
    numbers = UOp(Op.STACK, *(const(k, dtypes.int32) for k in range(n)))
    i, j = reshape(numbers, (n, 1)), reshape(numbers, (1, n))
    zero, low = const(0, dtype), const(dtype.min, dtype)
    for op in (Op.CMPLT, Op.CMPLE, Op.CMPGT, Op.CMPGE, Op.CMPNE):
        mask = UOp(op, j, i)
        repeated = UOp(Op.WHERE, mask, expand(row, (n, n)), zero)
        found.append(fold(Op.ADD, repeated, (choices.below(2),)))
        found.append(fold(Op.MAX, UOp(Op.WHERE, mask, square, low), (choices.below(2),)))
        scaled = UOp(Op.WHERE, mask, UOp(Op.MUL, square, const(3, dtype)), const(1, dtype))
        found.append(fold(Op.MAX, scaled, (choices.below(2),)))
    for first, last in ((0, 3), (1, 6), (2, 6), (3, 7)):
        # From the first one to the last one, as a run is, in any order.
        order = (first, *choices.shuffled(range(first + 1, last)), last)
        elements = param(5, (8,), dtype)
        found.append(UOp(Op.STACK, *(UOp(Op.INDEX, elements, index_const(k)) for k in order)))
    part = shrink(square, (0, 0), (n, n - 1))
    found.append(UOp(Op.INDEX, part, picks, index_const(choices.below(n - 1))))
    found.append(UOp(Op.INDEX, permute(part, (1, 0)), index_const(choices.below(n - 1)), picks))
    place = {4: sample(draw_within(0, n - 1), dtypes.int32, (n,), choices)}
    return on_data(
        found,
        vocabulary,
        choices,
        lambda root, choices: [b | place for b in ordinary_first(root, choices)[:2]],
    )


def _idioms(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Select, count, find the place of the largest, and take a variance."""
    n, count = choices.between(3, 5), 300
    numbers = (UOp(Op.STACK, *(const(k, dtypes.int32) for k in range(n))), (n, 1))
    rows, wanted = param(0, (n, 1), dtype), param(1, (1, count), dtypes.int32)
    is_one = UOp(Op.CMPEQ, reshape(*numbers), wanted)
    zero, same = const(0, dtype), UOp(Op.CMPEQ, rows, fold(Op.MAX, rows, (0,)))
    found = [
        fold(Op.ADD, UOp(Op.MUL, rows, cast(is_one, dtype)), (0,)),
        fold(choices.pick((Op.ADD, Op.MAX)), UOp(Op.WHERE, is_one, rows, zero), (0,)),
        fold(Op.ADD, cast(UOp(Op.CMPLT, wanted, const(n, dtypes.int32)), dtype), (1,)),
        fold(Op.MAX, UOp(Op.MUL, cast(same, dtypes.int32), reshape(*numbers)), (0,)),
    ]
    if dtype.is_float:
        mean = UOp(Op.MUL, fold(Op.ADD, rows, (0,)), const(1 / n, dtype))
        apart = UOp(Op.SUB, rows, mean)
        found.append(fold(Op.ADD, UOp(Op.MUL, apart, apart), (0,)))
    large = 1 << (dtype.format.precision - 2) if dtype.is_float else 1
    least = choices.pick((1, large))
    data = {
        0: sample(draw_within(least, least + 2), dtype, (n, 1), choices),
        1: sample(draw_within(-2, n), dtypes.int32, (1, count), choices),
    }
    return on_data(found, vocabulary, choices, lambda root, _: [data])


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


def _divisions(vocabulary: Vocabulary, dtype: DType) -> tuple[Op, ...]:
    return vocabulary.of((*FLOOR_DIVISIONS, Op.CDIV, Op.CMOD), dtype)


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
    divisors = [const(d, dtype) for d in choices.shuffled(DIVISORS)[: RESULTS // 2]]
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


def _two_axes(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Select along two axes of a cube by data, and fold each two axes."""
    n = choices.between(3, 4)
    x, *places = param(0, (n, n, n), dtype), *(param(k, (n,), dtypes.int32) for k in (1, 2))
    found = [UOp(Op.INDEX, u, *places) for u in (x, permute(x, (1, 2, 0)))]
    folds = vocabulary.of(FOLDS, dtype) or FOLDS
    repeated = expand(shrink(x, (0, 0, 0), (1, n, n)), x.shape)
    found += [fold(choices.pick(folds), x, axes) for axes in combinations(range(3), 2)]
    found += [fold(folds[0], repeated, axes) for axes in ((0, 1), (0, 2))]
    inside = {k: sample(draw_within(0, n - 1), dtypes.int32, (n,), choices) for k in (1, 2)}
    return on_data(
        found, vocabulary, choices, lambda *made: [b | inside for b in ordinary_first(*made)]
    )


def _rounded(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Convert to each float what lies around its ties, or the larger of two, and back."""
    floats, found = vocabulary.of_dtypes(FLOATS), []
    data: dict[int, Array] = {}
    for source in vocabulary.of_dtypes(d for d in VALUES if d is not dtypes.index):
        ties = np.concatenate([around_ties(source, target) for target in floats])
        slots = len(data), len(data) + 1
        x, y = (param(slot, ties.shape, source) for slot in slots)
        u = UOp(Op.MAX, x, y) if index % 3 == 1 and vocabulary.has(Op.MAX) else x
        made = [cast(u, target) for target in floats if len(around_ties(source, target))]
        found += [*made, *(cast(v, source) for v in made)] if index % 3 else made
        data |= {slot: np.roll(ties, 9 * slot + choices.below(9)) for slot in slots}
    return on_data(found, vocabulary, choices, lambda *_: [data])


def _widened_pairs(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Multiply two integers made wider, and make wider the product of narrow ones."""
    x, y = (param(slot, (LENGTH,), dtype) for slot in range(2))
    number, found = int(dtype.max) - choices.below(20), []
    for wide in (d for d in INTS if d.bits > dtype.bits):
        a, b, count = cast(x, wide), cast(y, wide), choices.between(1, dtype.bits - 1)
        both = UOp(Op.MUL, a, b)
        found += [both, UOp(Op.ADD, both, a), fold(Op.ADD, reshape(both, (LENGTH // 5, 5)), (1,))]
        found += [UOp(Op.MUL, a, const(number, wide)), UOp(Op.SHL, a, const(count, wide))]
        found.append(cast(UOp(Op.MUL, x, y), wide))
    return on_data(found, vocabulary, choices)
