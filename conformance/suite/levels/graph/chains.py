"""Generate level graph: a few ops that compilers merge, by rules that hold for some numbers, shapes
or dtypes alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import prod

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import pairs
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Counts
from uop.conformance.suite.values import around_ties, crossed, draw_special, draw_within, sample
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import PadFill
from uop.spec.dtype import FLOATS, INTS, NUMBERS, VALUES, DType, dtypes
from uop.spec.frontend.tensor import Tensor
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
USUAL: Counts = (1, 2, 12)
RARELY: Counts = (1, 1, 12)
OFTEN: Counts = (1, 2, 24)
MOVED = (dtypes.int8, dtypes.int32, dtypes.float32)
"""Few dtypes: a view is the same on all."""
SHAPES = (((3, 1), (1, 2, 3)), ((1, 4), (2, 3, 1)))
"""An axis can be repeated, and each joined with one that is."""
DIVISORS = (3, 5, 6, 7, 9, 10, 11, 13, 14, 21, 25, 28, 49, 60, 100, 125)
"""Few of them have a magic number of as many bits as the dtype."""
TWICE = ((2, 4), (3, 12), (16, 12), (4, 2), (5, 3), (100, 2))
"""Pairs of divisors: one is a multiple of the other, or the product is large for 8 bits."""
ROWS = (5, 6, 7, 9)
"""Lengths that are no multiple of a vector."""
WIDE = tuple(d for d in INTS if d.bits > 8)
NARROW = tuple(d for d in INTS if d.bits < 64)
SIGNED = tuple(d for d in INTS if d.is_signed)

KINDS = pairs.Kinds()
groups = KINDS.groups


def _on_both_sides(dtype: DType, n: int, key: int) -> Array:
    """Draw numbers on both sides of 0, where the dtype has those below."""
    return draw_within(-40 * dtype.is_signed, 40)(dtype, n, key)


def related(choices: Choices) -> list[int]:
    """Return four factors, which are multiples of one of them in most draws.

    Rules about quotients hold where one divides the other.
    """
    if choices.chance(25):
        return [choices.pick(FACTORS) for _ in range(4)]
    first = choices.pick(FACTORS)
    return [first * choices.pick((1, 1, 2, 3)) for _ in range(4)]


@KINDS.add("affine", (3, 4, 48), INTS, pairs.drawn(draw_within(0, 20), _on_both_sides))
def _affine(p: pairs.Plan) -> Iterator[Tensor]:
    """Divide x * k + r and its kin by a number, and compare them with a number or a value.

    By such rules compilers simplify addresses. Whether one holds depends on k, on the divisor and
    on the range of r.
    """
    x, y, z = p.tensors(3)
    outer = p.of(Op.IDIV, Op.MOD, Op.CDIV, Op.CMOD, Op.CMPLT) or (Op.CMPLT,)
    for _ in range(RESULTS):
        k, m, c, divisor = related(p.choices)
        rest = y % m
        product = p.choices.pick((x, x % c, rest)) * k
        sums = (product + rest, product + p.choices.between(1, 11), rest - x % c)
        value = p.choices.pick((product, *sums, x * x, x // c * k, product + y // m * c))
        op = p.choices.pick(outer)
        if op is not Op.CMPLT:
            value = Tensor.of(op, value, p.const(divisor))
            if p.choices.chance(70):
                yield value
                continue
        limit = p.choices.pick((z, Tensor(p.choices.pick((0, 1, 3, 7, 10)), p.dtype)))
        yield Tensor.of(Op.CMPLT, *p.choices.shuffled([value, limit]))


@KINDS.add("shifts", RARELY, INTS)
def _shifts(p: pairs.Plan) -> Iterator[UOp]:
    """Shift x, apply each op with a constant that is a multiple of 2**k, and shift back."""
    x, y = p.inputs(2)
    for op in (Op.ADD, Op.SUB, Op.MUL, Op.XOR, Op.AND, Op.MAX):
        for there, back in ((Op.SHL, Op.SHR), (Op.SHR, Op.SHL)):
            few = p.choices.between(1, p.dtype.bits // 2 - 1)
            k, mask = p.const(few), p.const((1 << p.dtype.bits - few - 1) - 1)
            number = p.const(p.choices.pick((1, 3)) << few)
            yield UOp(back, UOp(op, UOp(there, x, k), number), k)
            yield UOp(op, UOp(there, y, k), mask)
            yield UOp(back, UOp(there, y, k), k)


@KINDS.add("filled", USUAL, WIDE)
def _filled(p: pairs.Plan) -> Iterator[UOp]:
    """Divide a narrow value times a factor that leaves little room in a wide dtype."""
    dtype = p.dtype
    narrow = next(d for d in INTS if d.kind is dtype.kind and 2 * d.bits == dtype.bits)
    x = nodes.cast(param(0, (pairs.LENGTH,), narrow), dtype)
    most = int(dtype.max) // (int(narrow.max) + 1)
    for op in _divisions(p, p.dtype) or (Op.IDIV,):
        for divisor in p.choices.shuffled((2, *FACTORS, 7, 100)[:: 1 + p.index % 2])[:4]:
            product = UOp(Op.MUL, x, p.const(most - p.choices.below(most // 4)))
            yield UOp(op, product, p.const(divisor))


@KINDS.add("adjusted", USUAL, SIGNED)
def _adjusted(p: pairs.Plan) -> Iterator[UOp]:
    """Add the divisor, or 1, to a quotient or a remainder of x where x or the result has a sign."""
    (x,), zero = p.inputs(1), p.const(0)
    for op in _divisions(p, p.dtype) or (Op.MOD,):
        divisor = p.const(p.choices.pick(FACTORS))
        result = UOp(op, x, divisor)
        for signed in (x, result):
            other = p.choices.pick((UOp(Op.CMPLT, zero, signed), UOp(Op.CMPNE, signed, zero)))
            step = p.choices.pick((divisor, p.const(1), p.const(-1)))
            negative = UOp(Op.CMPLT, signed, zero)
            yield UOp(Op.WHERE, negative, UOp(Op.ADD, result, divisor), result)
            yield UOp(Op.WHERE, other, UOp(Op.ADD, result, step), result)


@KINDS.add("view-chains", OFTEN, VALUES, pairs.ordinary_first)
def _view_chains(p: pairs.Plan) -> Iterator[UOp]:
    """Take views of views, along axes of size 1 too, and fold half of them."""
    for slot, shape in enumerate(((3, 1, 2), (2, 3), (1, 4), (2, 2, 3))):
        for k in range(RESULTS // 4):
            u = param(slot, shape, p.dtype)
            for _ in range(p.choices.between(2, STEPS)):
                u = _view(p, u)
            yield _fold(p, u) if k % 2 else u


def _view(p: pairs.Plan, u: UOp) -> UOp:
    choices, op, shape = p.choices, p.choices.pick(_views(p)), u.shape
    if op is Op.PERMUTE:
        return nodes.permute(u, choices.shuffled(range(len(shape))))
    if op is Op.FLIP:
        return nodes.flip(u, (choices.chance(50) for _ in shape))
    if op is Op.RESHAPE:
        return nodes.reshape(u, _other_shape(choices, shape))
    if op is Op.SHRINK:
        offset = [choices.below(s) for s in shape]
        sizes = (choices.between(1, s - o) for s, o in zip(shape, offset, strict=True))
        return nodes.shrink(u, offset, sizes)
    if op is Op.PAD:
        before = [choices.below(3) for _ in shape]
        sizes = (s + b + choices.below(2) for s, b in zip(shape, before, strict=True))
        return nodes.pad(u, before, sizes, PadFill.ZERO)
    return nodes.expand(u, (choices.between(1, 3) if s == 1 else s for s in shape))


def _other_shape(choices: Choices, shape: Shape) -> list[int]:
    """Return a shape of as many elements: axes split and joined anew, with an axis of size 1."""
    left, sizes = prod(shape), []
    while left > 1:
        size = choices.pick([n for n in range(2, left + 1) if left % n == 0])
        sizes.append(size)
        left //= size
    return choices.shuffled([*sizes, 1])


def _fold(p: pairs.Plan, u: UOp) -> UOp:
    axes = [k for k in range(len(u.shape)) if p.choices.chance(50)] or [0]
    return nodes.fold(p.choices.pick(p.folds), u, axes)


@KINDS.add("folded-constants", OFTEN, VALUES, pairs.ordinary_first)
def _folded_constants(p: pairs.Plan) -> Iterator[UOp]:
    """Fold a constant that is repeated, padded and cut, and add a value that is none."""
    (x,), is_bool = p.inputs(1, (1,)), p.dtype is dtypes.bool
    for number in p.choices.shuffled(range(2, 2 + RESULTS)):
        n, before = p.choices.between(1, 4), p.choices.below(3)
        value = p.const(bool(number % 2) if is_bool else number)
        u = nodes.expand(nodes.reshape(value, (1,)), (n,))
        if p.choices.chance(70):
            fill = p.choices.pick((PadFill.INVALID, PadFill.ZERO))
            u = nodes.pad(u, (before,), (n + before + p.choices.below(3),), fill)
        if p.choices.chance(30):
            ops = p.vocabulary.of((Op.ADD, Op.MUL, Op.MAX)) or (Op.ADD,)
            u = UOp(p.choices.pick(ops), u, value)
        yield UOp(Op.OR if is_bool else Op.ADD, _fold(p, u), x)


@KINDS.add("bits-between", OFTEN, NUMBERS)
def _bits_between(p: pairs.Plan) -> Iterator[UOp]:
    """Apply ops to the bits of values, and turn the results back."""
    x, y = p.inputs(2)
    kinds = [d for d in VALUES if d not in (dtypes.bool, dtypes.index, p.dtype)]
    others = [d for d in kinds if d.bits == p.dtype.bits and d.kind is not p.dtype.kind]
    for _ in range(RESULTS if others else 0):
        kind = p.choices.pick(others)
        ops = p.vocabulary.on(kind)
        one, two = ops.unary + ops.unary_wide, ops.binary + ops.comparisons
        total = [op for op in (*one, *two) if not DECLARATIONS[op].is_partial]
        op = p.choices.pick(total or [Op.NOOP])
        value = UOp(op, *(nodes.bitcast(u, kind) for u in ((x, y) if op in two else (x,))))
        yield nodes.bitcast(value, p.dtype) if value.dtype is kind else value


@KINDS.add("casts-in-folds", RARELY, NUMBERS)
def _casts_in_folds(p: pairs.Plan) -> Iterator[UOp]:
    """Fold what is cast to a dtype, and cast folds to it: the element that decides may change."""
    kinds = (d for d in VALUES if d not in (p.dtype, dtypes.index))
    # A float outside an integer's range has no value in it.
    fits = [d for d in kinds if p.dtype.is_float or not d.is_float]
    for slot in range(RESULTS // 4):
        x = param(slot, (3, 4), p.choices.pick(p.vocabulary.of_dtypes(fits) or [p.dtype]))
        for axes in ((0,), (1,)):
            yield nodes.fold(p.choices.pick(p.folds), nodes.cast(x, p.dtype), axes)
        if x.dtype is not dtypes.bool:
            yield nodes.cast(nodes.fold(p.choices.pick(FOLDS), x, (1,)), p.dtype)


@KINDS.add("idioms", RARELY, NUMBERS, pairs.just_given)
def _idioms(p: pairs.Plan) -> Iterator[Tensor]:
    """Use what compilers replace as a whole: select by number, count trues, find the place of the
    largest, and take a variance. Some numbers select nothing, and several elements are the largest.
    """
    choices, dtype = p.choices, p.dtype
    n, count = choices.between(3, 5), 300
    numbers = Tensor.stack(*(Tensor(k, dtypes.int32) for k in range(n))).reshape(n, 1)
    rows, wanted = Tensor(param(0, (n, 1), dtype)), Tensor(param(1, (1, count), dtypes.int32))
    is_one, same = numbers == wanted, rows == rows.reduce(Op.MAX, 0)
    yield (rows * is_one.cast(dtype)).reduce(Op.ADD, 0)
    yield is_one.where(rows, 0).reduce(choices.pick((Op.ADD, Op.MAX)), 0)
    yield (wanted < n).cast(dtype).reduce(Op.ADD, 1)
    yield (same.cast(dtypes.int32) * numbers).reduce(Op.MAX, 0)
    if dtype.is_float:
        apart = rows - rows.reduce(Op.ADD, 0) * (1 / n)
        yield (apart * apart).reduce(Op.ADD, 0)
    large = 1 << (dtype.format.precision - 2) if dtype.is_float else 1
    least = choices.pick((1, large))
    p.given[0] = sample(draw_within(least, least + 2), dtype, (n, 1), choices)
    p.given[1] = sample(draw_within(-2, n), dtypes.int32, (1, count), choices)


@KINDS.add(
    "selections", RARELY, NUMBERS, lambda root, choices: pairs.ordinary_first(root, choices)[:2]
)
def _selections(p: pairs.Plan) -> Iterator[UOp]:
    """Contract, mask and select, where sizes are equal, so only the order of axes can be wrong.

    Operands of contractions have their axes in any order, masks are triangles, elements of one
    value are joined anew, and elements are read from a part of a square.
    """
    choices, dtype, n = p.choices, p.dtype, p.choices.between(2, 4)
    x, y = p.inputs(2, (n, n, n))
    square, row = param(2, (n, n), dtype), param(3, (1, n), dtype)
    picks = param(4, (n,), dtypes.int32)
    for _ in range(4):
        left = nodes.reshape(nodes.permute(x, choices.shuffled(range(3))), (n, n, 1, n))
        right = nodes.reshape(nodes.permute(y, choices.shuffled(range(3))), (n, 1, n, n))
        product = UOp(Op.MUL, *(nodes.expand(u, (n,) * 4) for u in (left, right)))
        yield nodes.fold(Op.ADD, product, (choices.below(4),))
    numbers = UOp(Op.STACK, *(const(k, dtypes.int32) for k in range(n)))
    i, j = nodes.reshape(numbers, (n, 1)), nodes.reshape(numbers, (1, n))
    for op in (Op.CMPLT, Op.CMPLE, Op.CMPGT, Op.CMPGE, Op.CMPNE):
        mask, scaled = UOp(op, j, i), UOp(Op.MUL, square, p.const(3))
        for fold, value, other in (
            (Op.ADD, nodes.expand(row, (n, n)), p.const(0)),
            (Op.MAX, square, p.const(dtype.min)),
            (Op.MAX, scaled, p.const(1)),
        ):
            yield nodes.fold(fold, UOp(Op.WHERE, mask, value, other), (choices.below(2),))
    elements = param(5, (8,), dtype)
    for first, last in ((0, 3), (1, 6), (2, 6), (3, 7)):
        # From the first one to the last one, as a run is, in any order.
        order = (first, *choices.shuffled(range(first + 1, last)), last)
        yield UOp(Op.STACK, *(UOp(Op.INDEX, elements, index_const(k)) for k in order))
    part = nodes.shrink(square, (0, 0), (n, n - 1))
    yield UOp(Op.INDEX, part, picks, index_const(choices.below(n - 1)))
    yield UOp(Op.INDEX, nodes.permute(part, (1, 0)), index_const(choices.below(n - 1)), picks)
    p.given[4] = sample(draw_within(0, n - 1), dtypes.int32, (n,), choices)


@KINDS.add("view-pairs", USUAL, MOVED, pairs.ordinary_first)
def _view_pairs(p: pairs.Plan) -> Iterator[UOp]:
    """Take each view of each view; those that order elements anew on two shapes."""
    x, y = (param(slot, shape, p.dtype) for slot, shape in enumerate(SHAPES[p.index % 2]))
    for inner, outer in product(_views(p), _views(p)):
        is_ordering = {inner, outer} <= {Op.PERMUTE, Op.RESHAPE, Op.EXPAND}
        for u in (x, y) if is_ordering else (x if p.choices.chance(50) else y,):
            yield _viewed(p.choices, outer, _viewed(p.choices, inner, u))


@KINDS.add("left-out", USUAL, MOVED, pairs.ordinary_first)
def _left_out(p: pairs.Plan) -> Iterator[UOp]:
    """Store a part that is padded with absent elements, and compute with the buffer after it."""
    n = p.choices.between(2, 4)
    for slot in range(4):
        before = p.choices.below(3)
        size = n + before + p.choices.between(1, 3)
        part = nodes.pad(param(4, (n,), p.dtype), (before,), (size,), PadFill.INVALID)
        whole = nodes.after(nodes.buffer(slot, (size,), p.dtype), part)
        yield UOp(p.choices.pick((Op.ADD, Op.MUL, Op.MAX)), whole, whole)
        yield nodes.fold(p.choices.pick(FOLDS), whole, (0,))
        yield nodes.flip_all(whole)
        for op in p.choices.shuffled(FOLDS)[:2]:
            yield nodes.fold(op, nodes.reshape(part, (size, 1)), (1,))


@KINDS.add("called-on-views", USUAL, MOVED, pairs.ordinary_first)
def _called_on_views(p: pairs.Plan) -> Iterator[UOp]:
    """Call one FUNCTION on a square, its transpose, and both in reverse, and with constants."""
    n = p.choices.between(2, 4)
    x, y, own, other = p.inputs(4, (n, n))
    reverse = (True, False)
    body = (UOp(p.choices.pick((Op.ADD, Op.SUB, Op.MUL)), x, y), nodes.flip(x, reverse))
    views = [own, nodes.permute(own, (1, 0))]
    views += [nodes.flip(u, reverse) for u in views]
    views.append(UOp(Op.CONTIGUOUS, views[1]))
    for u in p.choices.shuffled(views):
        # The body is over PARAMs of its own, slots 0 and 1.
        yield from nodes.call(body, *p.choices.shuffled((u, other)))
    for number in (1, 2, 3):
        repeated = nodes.expand(nodes.reshape(p.const(number), (1, 1)), (n, n))
        yield from nodes.call(body, own, repeated)


@KINDS.add("returned", (1, 1, 6), MOVED, pairs.ordinary_first)
def _returned(p: pairs.Plan) -> Iterator[UOp]:
    """Return inputs and views of results beside what is computed of them: it may not take their
    memory.
    """
    x, y = p.inputs(2)
    one, two = (p.choices.pick((Op.ADD, Op.SUB, Op.MUL, Op.MAX)) for _ in range(2))
    z = UOp(one, y, p.const(5))
    yield from (UOp(one, x, p.const(3)), x, nodes.flip_all(z), UOp(two, y, x), y, nodes.flip_all(y))
    yield from (nodes.reshape(z, (5, z.shape[0] // 5)), UOp(two, x, p.const(2)))


def _viewed(choices: Choices, op: Op, u: UOp) -> UOp:
    """Return a view that changes something: every axis that can be repeated or cut is."""
    shape = [int(n) for n in u.shape]
    if op is Op.PERMUTE:
        first = choices.between(1, max(1, len(shape) - 1))
        return nodes.permute(u, [*range(first, len(shape)), *range(first)])
    if op is Op.FLIP:
        return nodes.flip_all(u)
    if op is Op.RESHAPE:
        # Two axes become one.
        k = choices.below(max(1, len(shape) - 1))
        joined = shape[k] * (shape[k + 1 :] or [1])[0]
        return nodes.reshape(u, [*shape[:k], joined, *shape[k + 2 :]])
    if op is Op.SHRINK:
        return nodes.shrink(u, (n // 2 for n in shape), (n - n // 2 for n in shape))
    if op is Op.PAD:
        sizes = (n + n % 2 + 1 for n in shape)
        return nodes.pad(u, (n % 2 for n in shape), sizes, PadFill.ZERO)
    return nodes.expand(u, (choices.between(2, 3) if n == 1 else n for n in shape))


@KINDS.add("unchanged", USUAL, MOVED, pairs.ordinary_first)
def _unchanged(p: pairs.Plan) -> Iterator[Tensor]:
    """Multiply squares of which one is a view of itself, fold that view, and transpose it."""
    n = p.choices.between(2, 4)
    x, y = p.tensors(2, (n, n))
    moved = (x.permute(0, 1), x.reshape(n, n), x.shrink_to(n, n), x.pad((0, 0), (0, 0)))
    for same in (*moved, x.flip(()), x.expand(n, n)):
        left, right = p.choices.shuffled((same, y))
        product = left.reshape(n, n, 1).expand(n, n, n) * right.reshape(1, n, n).expand(n, n, n)
        yield product.reduce(Op.ADD, 1)
        yield same.reduce(p.choices.pick(FOLDS), p.choices.below(2))
        yield same.T


@KINDS.add("two-axes", USUAL, MOVED, pairs.ordinary_first)
def _two_axes(p: pairs.Plan) -> Iterator[UOp]:
    """Select along two axes of a cube by data, and fold each two axes, one of them repeated too."""
    n = p.choices.between(3, 4)
    (x,), places = p.inputs(1, (n, n, n)), [param(k, (n,), dtypes.int32) for k in (1, 2)]
    yield from (UOp(Op.INDEX, u, *places) for u in (x, nodes.permute(x, (1, 2, 0))))
    for axes in combinations(range(3), 2):
        yield nodes.fold(p.choices.pick(p.folds), x, axes)
    repeated = nodes.expand(nodes.shrink(x, (0, 0, 0), (1, n, n)), x.shape)
    yield from (nodes.fold(p.folds[0], repeated, axes) for axes in ((0, 1), (0, 2)))
    for k in (1, 2):
        p.given[k] = sample(draw_within(0, n - 1), dtypes.int32, (n,), p.choices)


@KINDS.add("long-folds", USUAL, MOVED, pairs.ordinary_first)
def _long_folds(p: pairs.Plan) -> Iterator[UOp]:
    """Take each view of a fold along an axis of more elements than one group of items has."""
    for slot, op in enumerate(p.choices.shuffled(FOLDS)[:3]):
        x = param(slot, (1 + slot % 2, p.choices.between(513, 1100)), p.dtype)
        row = nodes.fold(op, x, (1,))
        yield from (_viewed(p.choices, view, row) for view in _views(p))


@KINDS.add("centred", (1, 1, 6), NUMBERS, pairs.ordinary_first)
def _centred(p: pairs.Plan) -> Iterator[UOp]:
    """Fold what an op gives of each element and a fold of its row."""
    for slot, n in enumerate(p.choices.shuffled(ROWS)):
        x = param(slot, (3, n), p.dtype)
        for outer in (Op.ADD, Op.MAX):
            row = nodes.fold(p.choices.pick((Op.MAX, Op.ADD)), x, (1,))
            op = p.choices.pick((Op.SUB, Op.ADD, Op.MUL, Op.MAX))
            yield nodes.fold(outer, UOp(op, *p.choices.shuffled((x, row))), (1,))


@KINDS.add("powers", (1, 1, 6), INTS, pairs.ordinary_first)
def _powers(p: pairs.Plan) -> Iterator[UOp]:
    """Multiply and divide by 1 << y, which may be the least value of the dtype, and by 3 << y."""
    x, y = p.inputs(2)
    for op in (Op.MUL, *_divisions(p, p.dtype)):
        for number in (1, 3):
            yield UOp(op, x, UOp(Op.SHL, p.const(number), y))
    p.given[1] = sample(draw_within(0, p.dtype.bits - 1), p.dtype, (pairs.LENGTH,), p.choices)


def _at_ends(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches next to both ends of a dtype, and the usual ones but for the first."""
    ends: list[dict[int, Array]] = [{}, {}]
    for slot, u in slots_of(root).items():
        low, high = int(u.dtype.min), int(u.dtype.max)
        ends[0][slot] = np.array(range(high - pairs.LENGTH + 1, high + 1), np_dtype(u.dtype))
        ends[1][slot] = np.array(range(low, low + pairs.LENGTH), np_dtype(u.dtype))
    return [*ends, *pairs.ordinary_first(root, choices)[1:]]


@KINDS.add("divided", (2, 2, 12), INTS, _at_ends)
def _divided(p: pairs.Plan) -> Iterator[UOp]:
    """Divide by constants the numbers next to the ends of a dtype, and by some of them any."""
    (x,) = p.inputs(1)
    for divisor in p.choices.shuffled(DIVISORS)[: RESULTS // 2]:
        yield from (UOp(op, x, p.const(divisor)) for op in _divisions(p, p.dtype))


@KINDS.add("twice-divided", (2, 2, 12), INTS, pairs.ordinary_first)
def _twice_divided(p: pairs.Plan) -> Iterator[UOp]:
    """Divide twice; the product of both constants, or of a quotient, may leave the dtype."""
    (x,), most = p.inputs(1), int(p.dtype.max)
    ops = _divisions(p, p.dtype)
    for first, second in product(ops, ops):
        for numbers in p.choices.shuffled((*TWICE, (most // 7, 12), (most // 5, 12)))[:3]:
            a, b = map(p.const, numbers)
            once = UOp(first, x, a)
            yield UOp(second, once, b)
            yield UOp(second, UOp(Op.MUL, once, a), b)


BEYOND_A_BYTE = pairs.drawn(draw_within(0, 600), draw_special)
"""Draw numbers most of which need more than 8 bits, and special values."""


@KINDS.add("narrowed", (2, 2, 12), WIDE, BEYOND_A_BYTE)
def _narrowed(p: pairs.Plan) -> Iterator[UOp]:
    """Keep the lower bits of a wide value, or of what is computed of it, and compute with them."""
    x, y = p.inputs(2)
    for narrow in (d for d in INTS if d.bits < p.dtype.bits):
        cut, number = nodes.cast(x, narrow), const(p.choices.between(1, 99), narrow)
        for op in p.vocabulary.on(narrow).comparisons:
            other = p.choices.pick((number, nodes.cast(y, narrow)))
            yield UOp(op, *p.choices.shuffled((cut, other)))
        for op in (Op.MAX, Op.SHR, *_divisions(p, narrow)):
            yield UOp(op, cut, const(3, narrow))
            yield nodes.cast(UOp(op, x, p.const(3)), narrow)
        yield nodes.cast(UOp(Op.ADD, cut, number), p.dtype)


@KINDS.add("rounded", (3, 3, 12), (dtypes.float32,), pairs.just_given)
def _rounded(p: pairs.Plan) -> Iterator[UOp]:
    """Convert to each float what lies around its ties, or the larger of two, and back.

    At those points a second rounding shows.
    """
    floats = p.vocabulary.of_dtypes(FLOATS)
    for source in p.vocabulary.of_dtypes(d for d in VALUES if d is not dtypes.index):
        ties = np.concatenate([around_ties(source, target) for target in floats])
        slots = len(p.given), len(p.given) + 1
        x, y = (param(slot, ties.shape, source) for slot in slots)
        u = UOp(Op.MAX, x, y) if p.index % 3 == 1 and p.vocabulary.has(Op.MAX) else x
        made = [nodes.cast(u, target) for target in floats if len(around_ties(source, target))]
        yield from made
        yield from (nodes.cast(v, source) for v in made if p.index % 3)
        for slot in slots:
            p.given[slot] = np.roll(ties, 9 * slot + p.choices.below(9))


@KINDS.add("widened-pairs", (2, 3, 12), NARROW)
def _widened_pairs(p: pairs.Plan) -> Iterator[Tensor]:
    """Multiply two integers made wider, and make wider the product of narrow ones."""
    x, y = p.tensors(2)
    number = int(p.dtype.max) - p.choices.below(20)
    for wide in (d for d in INTS if d.bits > p.dtype.bits):
        a, b, count = x.cast(wide), y.cast(wide), p.choices.between(1, p.dtype.bits - 1)
        both = a * b
        yield from (both, both + a, both.reshape(pairs.LENGTH // 5, 5).reduce(Op.ADD, 1))
        yield from (a * number, a << count, (x * y).cast(wide))


@KINDS.add("widened-apart", (1, 2, 12), NARROW)
def _widened_apart(p: pairs.Plan) -> Iterator[UOp]:
    """Compare and combine integers of two dtypes in one that holds both."""
    (x,) = p.inputs(1)
    for slot, kind in enumerate((d for d in NARROW if d is not p.dtype), 1):
        y, bits = param(slot, x.shape, kind), max(p.dtype.bits, kind.bits)
        wide = p.choices.pick([d for d in WIDE if d.is_signed and d.bits > bits])
        ops = p.choices.shuffled(p.vocabulary.on(wide).comparisons)[:3]
        for op in (*ops, p.choices.pick((Op.MAX, Op.SUB, Op.MUL))):
            yield UOp(op, *p.choices.shuffled((nodes.cast(x, wide), nodes.cast(y, wide))))


def _few_in_a_row(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return rows with all pairs of a few special values."""
    return [{k: np.stack(crossed(u.dtype), 1) for k, u in slots_of(root).items()}]


@KINDS.add("tests-folded", (2, 2, 12), VALUES, _few_in_a_row)
def _tests_folded(p: pairs.Plan) -> Iterator[UOp]:
    """Fold what a test gives of each element, and test what a fold gives of a row."""
    x = param(0, (len(crossed(p.dtype)[0]), 2), p.dtype)
    ops = p.choices.shuffled(p.vocabulary.on(p.dtype).comparisons)
    of_bools = p.vocabulary.of((*FOLDS, Op.MIN), dtypes.bool) or FOLDS
    yield from (nodes.fold(op, nodes.cast(x, dtypes.bool), (1,)) for op in of_bools)
    special = sample(draw_special, p.dtype, 1, p.choices)[0]
    for number in (p.const(p.choices.below(2)), nodes.constant(special, p.dtype)):
        for op in ops:
            test = UOp(op, *p.choices.shuffled((x, number)))
            yield nodes.fold(p.choices.pick(of_bools), test, (1,))
            row = nodes.fold(p.choices.pick(p.folds), x, (1,))
            yield UOp(op, *p.choices.shuffled((row, number)))


def _views(p: pairs.Plan) -> tuple[Op, ...]:
    views = (Op.PERMUTE, Op.RESHAPE, Op.SHRINK, Op.PAD, Op.FLIP, Op.EXPAND)
    return p.vocabulary.of(views) or views


def _divisions(p: pairs.Plan, dtype: DType) -> tuple[Op, ...]:
    return p.vocabulary.of((*FLOOR_DIVISIONS, Op.CDIV, Op.CMOD), dtype)
