"""Generate level graph: chains in which a rule holds for some numbers, shapes or dtypes alone.

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
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.pair_forms import LENGTH
from uop.conformance.suite.levels.graph.pairs import Build, groups_of, on_data, ordinary_first
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Counts, Generated, Group, program
from uop.conformance.suite.levels.nodes import (
    bitcast,
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
from uop.conformance.suite.values import draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import PadFill
from uop.spec.dtype import INTS, VALUES, DType, dtypes
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
COUNTS: Counts = (1, 3, 24)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    return groups_of(vocabulary, _builds)


def _builds(dtype: DType) -> Iterator[tuple[str, Counts, Build]]:
    if dtype.is_int:
        yield "affine", (2, 6, 48), _affine
        yield "shifts", (1, 2, 12), _shifts
        if dtype.bits > 8:
            yield "filled", (1, 2, 12), _filled
        if dtype.is_signed:
            yield "adjusted", (1, 2, 12), _adjusted
    yield "view-chains", COUNTS, _view_chains
    yield "folded-constants", COUNTS, _folded_constants
    if dtype is not dtypes.bool:
        yield "bits-between", COUNTS, _bits_between
        yield "casts-in-folds", (1, 2, 12), _casts_in_folds
        yield "idioms", (1, 2, 12), _idioms
        yield "selections", (1, 2, 12), _selections


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
    for op in vocabulary.of((*FLOOR_DIVISIONS, Op.CDIV, Op.CMOD), dtype) or (Op.IDIV,):
        for divisor in choices.shuffled((2, *FACTORS, 7, 100)[:: 1 + index % 2])[:4]:
            product = UOp(Op.MUL, x, const(most - choices.below(most // 4), dtype))
            found.append(UOp(op, product, const(divisor, dtype)))
    return on_data(found, vocabulary, choices)


def _adjusted(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Add the divisor, or 1, to a quotient or a remainder of x where x or the result has a sign."""
    x, zero = param(0, (LENGTH,), dtype), const(0, dtype)
    found = []
    for op in vocabulary.of((*FLOOR_DIVISIONS, Op.CDIV, Op.CMOD), dtype) or (Op.MOD,):
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
    views = (Op.PERMUTE, Op.RESHAPE, Op.SHRINK, Op.PAD, Op.FLIP, Op.EXPAND)
    op, shape = choices.pick(vocabulary.of(views) or views), u.shape
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
