"""Generate level graph: what frontends spell in several ops, and compilers recognise as one.

- computed-reads: elements read by indices that wrap, are clamped, rolled, scaled or constant, of
  views, of other reads and of a table as one row; views and folds of what is read.
- rearranged: blocks, tiles, diagonals, rolls, concatenations, by chains of views.
- windows: windows of a row that overlap, leave gaps or are padded; scans by masks and by steps.
- picks: one-hot rows, places of the largest and the least, ranks, counts, sums by number. Many
  elements are equal.
- alike, alike-views: values that differ in one thing: the order of operands, a constant, a dtype,
  an axis, an offset. A compiler that computes equal values once may take them for equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from math import prod

from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import pairs
from uop.conformance.suite.levels.group import Counts, Group
from uop.conformance.suite.values import array, draw_bits, draw_ordinary, draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import PadFill
from uop.spec.dtype import NUMBERS, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, const, index_const, param

IN_SMOKE = {"int8", "uint8", "int32", "uint64", "float16", "float32"}
COUNTS: Counts = (1, 2, 8)
READ = 9
"""How many indices read a table."""

KINDS = pairs.Kinds()


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    return KINDS.groups(vocabulary, IN_SMOKE)


def _counted(n: int, dtype: DType = dtypes.int32) -> UOp:
    return UOp(Op.STACK, *(const(k, dtype) for k in range(n)))


def _numbers(*values: int) -> UOp:
    return UOp(Op.STACK, *(const(value, dtypes.int32) for value in values))


def _row(u: UOp) -> UOp:
    return nodes.reshape(u, (1, prod(u.shape)))


def _column(u: UOp) -> UOp:
    return nodes.reshape(u, (prod(u.shape), 1))


def _flat(u: UOp) -> UOp:
    return nodes.reshape(u, (prod(u.shape),))


def _part(u: UOp, first: int, count: int) -> UOp:
    """Return elements of a vector, or rows."""
    rest = u.shape[1:]
    return nodes.shrink(u, (first, *(0 for _ in rest)), (count, *rest))


def _placed(u: UOp, first: int, count: int) -> UOp:
    """Return a vector of so many elements, or a matrix of so many rows, 0 around those of u."""
    rest = u.shape[1:]
    return nodes.pad(u, (first, *(0 for _ in rest)), (count, *rest), PadFill.ZERO)


def _rolled(u: UOp, by: int) -> UOp:
    n = u.shape[0]
    ahead, behind = _part(u, n - by, by), _part(u, 0, n - by)
    return UOp(Op.ADD, _placed(ahead, 0, n), _placed(behind, by, n))


def _repeated(u: UOp, axis: int, count: int) -> UOp:
    """Return u with copies along a new axis."""
    shape = (*u.shape[:axis], 1, *u.shape[axis:])
    return nodes.expand(nodes.reshape(u, shape), (*shape[:axis], count, *shape[axis + 1 :]))


def _tiled(u: UOp, count: int) -> UOp:
    return _flat(_repeated(u, 0, count))


def _every(u: UOp, first: int, step: int) -> UOp:
    """Return each element of a vector that is a multiple of a step behind the first one."""
    count = u.shape[0] // step
    whole = nodes.reshape(_part(u, 0, count * step), (count, step))
    return _flat(nodes.shrink(whole, (0, first), (count, 1)))


def _selected(mask: UOp, value: UOp, other: UOp) -> UOp:
    return UOp(Op.WHERE, mask, value, other)


@KINDS.add("computed-reads", COUNTS, NUMBERS, pairs.drawn(draw_bits, draw_ordinary))
def _computed_reads(p: pairs.Plan) -> Iterator[UOp]:
    """Read rows by indices that are computed, of a table and of views of it."""
    n, m = p.choices.between(6, 8), p.choices.between(4, 5)
    table, row = param(0, (n, m), p.dtype), param(1, (1, m), p.dtype)
    place, signed, far = (param(slot, (READ,), dtypes.int32) for slot in (2, 3, 4))
    zero, count, last = (const(k, dtypes.int32) for k in (0, n, n - 1))
    two, step = (const(k, dtypes.int32) for k in (2, p.choices.between(1, n - 2)))
    is_inside = UOp(Op.AND, UOp(Op.CMPLE, zero, far), UOp(Op.CMPLT, far, count))
    clamped = UOp(Op.MIN, UOp(Op.MAX, far, zero), last)
    wrapped = _selected(UOp(Op.CMPLT, signed, zero), UOp(Op.ADD, signed, count), signed)
    opposite = UOp(Op.SUB, last, place)
    computed = (
        *(wrapped, clamped, UOp(Op.MOD, far, count), opposite),
        UOp(Op.MOD, UOp(Op.ADD, place, step), count),
        UOp(Op.MOD, UOp(Op.SUB, place, step), count),
        UOp(Op.IDIV, place, two),
        UOp(Op.MUL, UOp(Op.IDIV, place, two), two),
        UOp(Op.MIN, UOp(Op.MAX, far, UOp(Op.NEG, far)), last),
        UOp(Op.CMOD, UOp(Op.ADD, UOp(Op.CMOD, far, count), count), count),
        nodes.cast(UOp(Op.CMPLT, far, count), dtypes.int32),
        UOp(Op.XOR, place, nodes.cast(UOp(Op.CMPEQ, place, zero), dtypes.int32)),
    )
    yield from (UOp(Op.INDEX, table, i) for i in computed)
    for kind in (dtypes.uint8, dtypes.int8):
        # What wraps in 8 bits is a place again.
        there = UOp(Op.ADD, nodes.cast(place, kind), const(kind.max, kind))
        back = UOp(Op.ADD, UOp(Op.ADD, there, const(kind.max, kind)), const(2, kind))
        yield UOp(Op.INDEX, table, back)
    shifted = nodes.cast(wrapped, dtypes.int64)
    for op in (Op.SHL, Op.SHR):
        # An index of 64 bits loses none of them.
        shifted = UOp(op, shifted, const(40, dtypes.int64))
    yield UOp(Op.INDEX, table, shifted)
    middle = p.choices.between(1, 2)
    for listed in (
        range(n)[::-1],
        range(n)[::2],
        range(n)[1::2],
        range(n)[middle : middle + 3],
        range(n)[middle + 2 : middle - 1 : -1],
        (middle,) * 3,
        (0, 2, 1),
        (1, 0, 3, 2),
        (0, 1, 2, 2),
    ):
        yield UOp(Op.INDEX, table, _numbers(*listed))
        yield UOp(Op.INDEX, nodes.permute(table, (1, 0)), _numbers(*(k % m for k in listed)))
    yield _selected(_column(is_inside), UOp(Op.INDEX, table, clamped), p.const(0))
    yield _selected(_column(is_inside), UOp(Op.INDEX, table, clamped), row)
    across, other = UOp(Op.MOD, place, const(m, dtypes.int32)), nodes.flip_all(place)
    yield UOp(Op.INDEX, table, wrapped, across)
    yield UOp(Op.INDEX, table, clamped, const(1, dtypes.int32))
    yield UOp(Op.INDEX, nodes.permute(table, (1, 0)), across, wrapped)
    at = UOp(Op.ADD, UOp(Op.MUL, place, const(m, dtypes.int32)), across)
    yield UOp(Op.INDEX, _flat(table), at)
    yield UOp(Op.INDEX, _flat(nodes.permute(table, (1, 0))), at)
    views = (
        nodes.flip(table, (True, False)),
        nodes.flip(table, (False, True)),
        nodes.pad(table, (1, 1), (n + 2, m + 1), PadFill.ZERO),
        nodes.shrink(nodes.pad(table, (2, 0), (n + 2, m), PadFill.ZERO), (1, 0), (n, m)),
        nodes.shrink(UOp(Op.STACK, row, row, row, row), (0, 0, 1), (4, 1, m - 1)),
        _repeated(row, 0, n),
        nodes.expand(row, (n, m)),
        nodes.expand(nodes.shrink(table, (0, 1), (n, 1)), (n, m)),
        nodes.reshape(nodes.permute(table, (1, 0)), (n, m)),
        nodes.permute(nodes.reshape(table, (m, n)), (1, 0)),
    )
    yield from (
        UOp(Op.INDEX, u, wrapped if u.shape[0] >= n else UOp(Op.AND, place, const(3, place.dtype)))
        for u in views
    )
    read = UOp(Op.INDEX, table, place)
    yield UOp(Op.INDEX, UOp(Op.INDEX, table, nodes.flip_all(_counted(n))), place)
    yield UOp(Op.INDEX, read, other)
    yield UOp(Op.INDEX, table, UOp(Op.INDEX, place, other))
    yield from (UOp(Op.MAX, read, u) for u in (row, nodes.flip_all(read)))
    yield UOp(Op.SUB, read, UOp(Op.INDEX, table, opposite))
    yield UOp(Op.INDEX, UOp(Op.SUB, table, row), place)
    yield UOp(Op.INDEX, UOp(Op.SUB, table, nodes.flip_all(table)), wrapped)
    yield from (nodes.fold(Op.MAX, u, (k,)) for u in (read, nodes.flip_all(read)) for k in (0, 1))
    yield UOp(Op.INDEX, nodes.fold(Op.MAX, table, (1,)), wrapped)
    alone = UOp(Op.INDEX, wrapped, const(2, dtypes.int32))
    yield UOp(Op.INDEX, table, alone)
    yield UOp(Op.INDEX, table, alone, across)
    yield UOp(Op.INDEX, table, nodes.reshape(nodes.fold(Op.MAX, place, (0,)), ()))
    mixed = sample(draw_within(-n, n - 1), dtypes.int32, READ, p.choices)
    # Every program has both ends, and a pair that is its own reverse in no order.
    mixed[:4] = -n, -1, 0, n - 1
    p.given[2] = sample(draw_within(0, n - 1), dtypes.int32, READ, p.choices)
    p.given[2][:4] = n - 1, 0, 1, 0
    p.given[3], p.given[4] = mixed, sample(draw_within(-40, 40), dtypes.int32, READ, p.choices)
    p.given[4][:5] = -40, -1, n - 1, n, 3 * n + 1


@KINDS.add("rearranged", COUNTS, NUMBERS, pairs.drawn(draw_bits, draw_ordinary))
def _rearranged(p: pairs.Plan) -> Iterator[UOp]:
    """Order elements anew by chains of views, as frontends do for what has no op."""
    n = p.choices.between(3, 4)
    x, y, square = param(0, (12,), p.dtype), param(1, (12,), p.dtype), param(2, (n, n), p.dtype)
    plane, zero = param(3, (4, 6), p.dtype), p.const(0)
    for by in (1, 5, 7):
        yield _rolled(x, by)
    yield _rolled(plane, 1)
    yield UOp(Op.SUB, _rolled(x, 2), x)
    for count in (2, 3):
        yield _tiled(x, count)
        yield _flat(_repeated(x, 1, count))
        yield _flat(_repeated(square, 1, count))
        yield nodes.reshape(_repeated(plane, 0, count), (4 * count, 6))
        yield nodes.reshape(_repeated(plane, 1, count), (4, 6 * count))
        yield nodes.reshape(_repeated(plane, 2, count), (4, 6 * count))
        yield from (_every(x, first, count) for first in range(count))
        yield _every(nodes.flip_all(x), 1, count)
        yield _every(_part(x, 1, 11), 0, count)
    both = UOp(Op.STACK, x, y)
    yield _flat(both)
    yield _flat(nodes.permute(both, (1, 0)))
    yield _flat(nodes.permute(nodes.reshape(both, (2, 3, 4)), (1, 0, 2)))
    joined = UOp(Op.ADD, _placed(x, 0, 24), _placed(y, 12, 24))
    yield joined
    yield UOp(Op.MAX, joined, p.const(3))
    is_first = UOp(Op.CMPLT, _counted(24), const(12, dtypes.int32))
    yield _selected(is_first, _placed(x, 0, 24), _placed(y, 12, 24))
    yield UOp(Op.XOR if p.dtype.is_int else Op.ADD, _placed(x, 0, 17), _placed(y, 5, 17))
    for shape, order in (
        ((2, 2, 3, 2), (0, 2, 1, 3)),
        ((2, 2, 3, 2), (1, 3, 0, 2)),
        ((2, 2, 2, 3), (0, 2, 1, 3)),
        ((2, 2, 2, 3), (2, 3, 0, 1)),
        ((4, 2, 3), (1, 0, 2)),
        ((4, 3, 2), (0, 2, 1)),
        ((2, 12), (1, 0)),
        ((8, 3), (1, 0)),
        ((3, 8), (1, 0)),
    ):
        turned = nodes.permute(nodes.reshape(plane, shape), order)
        yield nodes.reshape(turned, plane.shape)
        yield nodes.reshape(nodes.flip(turned, (k == 1 for k in range(len(shape)))), (24,))
        yield nodes.fold(Op.MAX, nodes.reshape(turned, (6, 4)), (1,))
        yield nodes.reshape(nodes.fold(Op.MAX, turned, (1,)), (24 // turned.shape[1],))
    parted: tuple[Shape, ...] = ((24,), (2, 12), (8, 3), (2, 2, 6))
    for sizes in parted:
        split = nodes.reshape(plane, sizes)
        for flags in ((k == 0 for k in range(len(sizes))), (True for _ in sizes)):
            yield nodes.reshape(nodes.flip(split, flags), plane.shape)
        yield nodes.reshape(_placed(split, 1, sizes[0] + 1), (24 + 24 // sizes[0],))
        yield _flat(_part(split, 1, sizes[0] - 1))
    wide = nodes.pad(plane, (1, 0), (6, 7), PadFill.ZERO)
    yield nodes.reshape(wide, (7, 6))
    yield nodes.reshape(wide, (2, 21))
    yield nodes.reshape(nodes.shrink(plane, (1, 1), (2, 4)), (4, 2))
    yield nodes.shrink(nodes.permute(plane, (1, 0)), (1, 2), (4, 2))
    yield nodes.permute(nodes.pad(plane, (1, 2), (5, 9), PadFill.ZERO), (1, 0))
    flat = _flat(square)
    yield _every(_placed(flat, 0, n * (n + 1)), 0, n + 1)
    yield _every(_flat(nodes.flip(square, (False, True))), 0, n + 1)
    skewed = nodes.pad(square, (0, 0), (n, n + 1), PadFill.ZERO)
    yield nodes.reshape(_part(_flat(skewed), 0, n * n), (n, n))
    i, j = _column(_counted(n)), _row(_counted(n))
    is_same = UOp(Op.CMPEQ, i, j)
    yield nodes.fold(Op.ADD, _selected(is_same, square, zero), (0, 1))
    yield nodes.fold(Op.ADD, _selected(is_same, square, zero), (0,))
    yield _selected(is_same, zero, square)
    yield _selected(is_same, _row(_part(x, 0, n)), zero)
    for op in (Op.CMPLT, Op.CMPLE):
        yield _selected(UOp(op, i, j), square, nodes.permute(square, (1, 0)))
        yield _selected(UOp(op, UOp(Op.ADD, i, const(1, i.dtype)), j), square, zero)


def _windows_of(u: UOp, size: int) -> UOp:
    """Return a matrix with the windows of a vector as columns, by views of copies of it."""
    n = u.shape[0]
    copies = _part(_tiled(u, size + 1), 0, size * (n + 1))
    return nodes.shrink(nodes.reshape(copies, (size, n + 1)), (0, 0), (size, n + 1 - size))


@KINDS.add("windows", COUNTS, NUMBERS, pairs.drawn(draw_ordinary, draw_within(1, 3)))
def _windows(p: pairs.Plan) -> Iterator[UOp]:
    """Fold windows of a vector, and all elements up to each one."""
    n = p.choices.between(9, 11)
    x, low, zero = param(0, (n,), p.dtype), p.const(p.dtype.min), p.const(0)
    plane, folds = param(1, (4, 5), p.dtype), ((Op.ADD, zero), (Op.MAX, low))
    for size in (2, 3):
        seen = _windows_of(x, size)
        beside = UOp(Op.STACK, *(_part(x, k, n + 1 - size) for k in range(size)))
        weights = _column(_part(param(2, (3,), p.dtype), 0, size))
        for op, least in folds:
            yield from (nodes.fold(op, u, (0,)) for u in (seen, beside))
            blocks = nodes.reshape(_part(x, 0, n // size * size), (n // size, size))
            yield nodes.fold(op, blocks, (1,))
            yield nodes.fold(op, _windows_of(_placed(x, 1, n + 2), size), (0,))
            yield nodes.fold(op, _windows_of(_placed(x, size - 1, n + size - 1), size), (0,))
            inside = UOp(Op.CMPLT, _counted(n + 1), const(n, dtypes.int32))
            padded = _selected(inside, _placed(x, 0, n + 1), least)
            yield nodes.fold(op, _windows_of(padded, size), (0,))
            apart = [_part(x, 2 * k, n + 2 - 2 * size) for k in range(size)]
            yield nodes.fold(op, UOp(Op.STACK, *apart), (0,))
            yield _every(_flat(nodes.fold(op, seen, (0,))), 1, 2)
        yield nodes.fold(Op.ADD, UOp(Op.MUL, seen, weights), (0,))
        yield nodes.fold(Op.ADD, UOp(Op.MUL, seen, nodes.flip_all(weights)), (0,))
        around = _windows_of(_placed(x, 1, n + 1), size)
        yield nodes.fold(Op.ADD, UOp(Op.MUL, around, weights), (0,))
    yield UOp(Op.SUB, _part(x, 1, n - 1), _part(x, 0, n - 1))
    yield UOp(Op.SUB, x, _placed(_part(x, 0, n - 1), 1, n))
    yield UOp(Op.SUB, x, _placed(_part(x, 1, n - 1), 0, n))
    places = _counted(n)
    i, j, by_row = _row(places), _column(places), _column(x)
    for op in (Op.CMPLE, Op.CMPLT, Op.CMPGE, Op.CMPGT):
        mask = UOp(op, j, i)
        for fold, least in folds:
            yield nodes.fold(fold, _selected(mask, by_row, least), (0,))
        yield nodes.fold(Op.ADD, UOp(Op.MUL, nodes.cast(mask, p.dtype), by_row), (0,))
    near = UOp(Op.AND, UOp(Op.CMPLE, j, i), UOp(Op.CMPLT, i, UOp(Op.ADD, j, const(3, j.dtype))))
    yield nodes.fold(Op.ADD, _selected(near, by_row, zero), (0,))
    yield nodes.fold(Op.MUL, _selected(UOp(Op.CMPLT, i, const(3, i.dtype)), _row(x), zero), (1,))
    small = _part(x, 0, 4)
    yield nodes.fold(Op.MUL, _selected(_up_to(4), _column(small), p.const(1)), (0,))
    for axis, count in enumerate(plane.shape):
        shape = (count, count, 1) if axis == 0 else (1, count, count)
        mask = nodes.reshape(_up_to(count), shape)
        spread = _repeated(plane, axis + 1, 1)
        for fold, least in folds:
            yield nodes.fold(fold, _selected(mask, spread, least), (axis,))
    for op, least in folds:
        value = x
        for by in (1, 2, 4, 8):
            moved = _placed(_part(value, 0, n - by), by, n)
            is_there = UOp(Op.CMPLE, const(by, dtypes.int32), places)
            value = UOp(op, value, _selected(is_there, moved, least))
        yield value
    yield nodes.fold(Op.ADD, nodes.cast(_up_to(n), dtypes.int32), (0,))
    same = UOp(Op.CMPEQ, by_row, _row(x))
    yield nodes.fold(Op.ADD, _selected(same, by_row, zero), (0,))
    yield nodes.fold(Op.ADD, nodes.cast(UOp(Op.AND, same, UOp(Op.CMPLT, j, i)), p.dtype), (0,))


def _up_to(n: int) -> UOp:
    """Return a matrix that is true where the row is not behind the column."""
    return UOp(Op.CMPLE, _column(_counted(n)), _row(_counted(n)))


@KINDS.add("picks", COUNTS, NUMBERS, pairs.just_given)
def _picks(p: pairs.Plan) -> Iterator[UOp]:
    """Find places and numbers of elements, in rows where many are equal, and use them."""
    rows, n, m = 4, p.choices.between(5, 6), 4
    keys, values = param(0, (rows, n), p.dtype), param(1, (rows, n), p.dtype)
    numbers, table = param(2, (READ,), dtypes.int32), param(3, (m, 3), p.dtype)
    low, high, zero, one = map(p.const, (p.dtype.min, p.dtype.max, 0, 1))
    places, whole = _row(_counted(n)), const(n, dtypes.int32)
    back = UOp(Op.SUB, const(n - 1, dtypes.int32), places)
    for op in (Op.MAX, Op.MIN):
        best = nodes.fold(op, keys, (1,))
        is_best = UOp(Op.CMPEQ, keys, best)
        first = nodes.fold(Op.MIN, _selected(is_best, places, whole), (1,))
        yield first
        yield nodes.fold(Op.MAX, _selected(is_best, places, const(-1, dtypes.int32)), (1,))
        flags = nodes.cast(is_best, dtypes.int32)
        behind = nodes.fold(Op.MAX, UOp(Op.MUL, flags, back), (1,))
        yield UOp(Op.SUB, const(n - 1, dtypes.int32), behind)
        yield nodes.fold(Op.MAX, UOp(Op.MUL, flags, places), (1,))
        is_first = UOp(Op.CMPEQ, places, first)
        yield nodes.fold(Op.ADD, _selected(is_first, values, zero), (1,))
        yield nodes.fold(Op.ADD, _selected(is_best, one, zero), (1,))
        rest = low if op is Op.MAX else high
        yield nodes.fold(op, _selected(is_first, rest, keys), (1,))
        yield nodes.fold(op, _selected(is_best, rest, keys), (1,))
        yield nodes.fold(op, _selected(is_best, values, rest), (1,))
        yield UOp(Op.INDEX, values, UOp(Op.MIN, _flat(first), const(rows - 1, dtypes.int32)))
        best_row = UOp(Op.CMPEQ, keys, nodes.fold(op, keys, (0,)))
        down = _column(_counted(rows))
        yield nodes.fold(Op.MIN, _selected(best_row, down, const(rows, dtypes.int32)), (0,))
        if p.dtype.is_signed:
            negated = nodes.fold(op, UOp(Op.NEG, keys), (1,))
            yield UOp(Op.NEG, negated)
    is_one = UOp(Op.CMPEQ, _column(numbers), _row(_counted(m)))
    picked = nodes.cast(is_one, p.dtype)
    yield picked
    yield _selected(is_one, p.const(2), one)
    yield nodes.fold(Op.ADD, picked, (0,))
    cells, spread = nodes.reshape(picked, (READ, m, 1)), nodes.reshape(table, (1, m, 3))
    yield nodes.fold(Op.ADD, UOp(Op.MUL, cells, spread), (1,))
    yield nodes.fold(Op.MAX, _selected(nodes.reshape(is_one, (READ, m, 1)), spread, low), (1,))
    weights = param(4, (READ,), p.dtype)
    for least, op in ((zero, Op.ADD), (low, Op.MAX), (one, Op.MUL)):
        yield nodes.fold(op, _selected(is_one, _column(weights), least), (0,))
    yield nodes.fold(Op.ADD, _selected(is_one, zero, _column(weights)), (0,))
    a, b = _column(weights), _row(weights)
    i, j = _column(_counted(READ)), _row(_counted(READ))
    is_less, is_same = UOp(Op.CMPLT, a, b), UOp(Op.CMPEQ, a, b)
    earlier = UOp(Op.AND, is_same, UOp(Op.CMPLT, i, j))
    rank = nodes.fold(Op.ADD, nodes.cast(UOp(Op.OR, is_less, earlier), dtypes.int32), (0,))
    yield rank
    yield nodes.fold(Op.ADD, nodes.cast(is_less, dtypes.int32), (0,))
    yield nodes.fold(Op.ADD, nodes.cast(UOp(Op.CMPLE, a, b), dtypes.int32), (0,))
    sorted_ = _selected(UOp(Op.CMPEQ, _column(rank), j), a, zero)
    yield nodes.fold(Op.ADD, sorted_, (0,))
    yield nodes.fold(Op.ADD, nodes.cast(earlier, dtypes.int32), (0,))
    yield UOp(Op.NOT, nodes.fold(Op.MAX, earlier, (0,)))
    for op in (Op.MAX, Op.MIN, Op.ADD, Op.MUL):
        for test in (UOp(Op.CMPLT, keys, values), UOp(Op.NOT, UOp(Op.CMPLT, values, keys))):
            yield nodes.fold(op, test, (1,))
    swapped = nodes.flip(nodes.reshape(_part(weights, 0, 8), (4, 2)), (False, True))
    straight = nodes.reshape(_part(weights, 0, 8), (4, 2))
    is_left = UOp(Op.CMPEQ, _row(_counted(2)), const(0, dtypes.int32))
    order = (UOp(op, straight, swapped) for op in (Op.MIN, Op.MAX))
    yield nodes.reshape(_selected(is_left, *order), (8,))
    few = draw_within(-4 * p.dtype.is_signed, -1 if p.dtype.is_signed else 2)
    shapes: dict[int, Shape] = {0: (rows, n), 1: (rows, n), 3: (m, 3), 4: (READ,)}
    for slot, shape in shapes.items():
        draw = few if slot in (0, 4) else draw_within(-5 * p.dtype.is_signed, 5)
        p.given[slot] = sample(draw, p.dtype, shape, p.choices)
    # One row of equal elements, one where two are the largest, one with both ends of the dtype.
    p.given[0][0], p.given[0][1, 1:3] = p.given[0][0, 0], p.given[0][1].max()
    p.given[0][2, :2] = array(p.dtype, map(p.dtype.encode, (p.dtype.min, p.dtype.max)))
    p.given[2] = sample(draw_within(-1, m), dtypes.int32, READ, p.choices)
    p.given[2][:4] = -1, m, 1, 1


@KINDS.add("alike", COUNTS, NUMBERS)
def _alike(p: pairs.Plan) -> Iterator[UOp]:
    """Apply each op to the same operands in other orders, along other axes, to other numbers."""
    x, y, z = p.inputs(3)
    numbers = [p.const(k) for k in p.choices.shuffled((2, 3, 5))[:2]]
    if p.dtype.is_float:
        numbers += [p.const(k) for k in (0.0, -0.0)]
    own, divisions = p.vocabulary.on(p.dtype), p.of(Op.CDIV, Op.CMOD) if p.dtype.is_int else ()
    for op in (*own.binary, *own.comparisons, *divisions):
        yield from (UOp(op, x, number) for number in numbers)
        if not DECLARATIONS[op].is_partial:
            yield from (UOp(op, *both) for both in ((x, y), (y, x), (x, z)))
            yield from (UOp(op, number, x) for number in numbers)
    yield from (UOp(Op.MULACC, *three) for three in ((x, y, z), (x, z, y), (z, y, x)))
    tests = [UOp(op, *both) for op in (Op.CMPLT, Op.CMPLE) for both in ((x, y), (y, x))]
    yield from (_selected(test, *both) for test in tests for both in ((x, y), (y, x), (x, z)))
    for dtype in p.vocabulary.of_dtypes(d for d in NUMBERS if d is not dtypes.index):
        if dtype.is_float or not p.dtype.is_float:
            yield nodes.cast(x, dtype)
            if dtype.is_float and p.dtype.is_float:
                yield nodes.cast(nodes.cast(x, dtype), p.dtype)
        if dtype.bits == p.dtype.bits:
            yield nodes.bitcast(x, dtype)
        if dtype.is_int and not p.dtype.is_float:
            yield nodes.cast(nodes.cast(x, dtype), dtypes.int64)


@KINDS.add("alike-views", COUNTS, NUMBERS, pairs.ordinary_first)
def _alike_views(p: pairs.Plan) -> Iterator[UOp]:
    """Take views, folds and parts of a cube along each axis, and join vectors in each order."""
    x, y = p.inputs(2)
    cube, square = param(2, (3, 3, 3), p.dtype), param(3, (3, 3), p.dtype)
    yield from (UOp(Op.STACK, *both) for both in ((x, y), (y, x), (x, x)))
    for flags in product((False, True), repeat=3):
        if any(flags):
            axes = [k for k, flag in enumerate(flags) if flag]
            yield nodes.flip(cube, flags)
            yield from (nodes.fold(op, cube, axes) for op in (Op.ADD, Op.MAX, Op.MIN))
            yield nodes.shrink(cube, map(int, flags), (2, 2, 2))
            yield nodes.pad(cube, map(int, flags), (4, 4, 4), PadFill.ZERO)
            yield nodes.pad(cube, map(int, flags), (5, 5, 5), PadFill.ZERO)
    yield from (nodes.permute(cube, order) for order in permutations(range(3)))
    yield from (nodes.reshape(cube, shape) for shape in ((27,), (3, 9), (9, 3), (1, 27)))
    yield from (UOp(Op.INDEX, cube, index_const(k)) for k in range(3))
    for i, j in permutations(range(3), 2):
        yield UOp(Op.INDEX, cube, index_const(i), index_const(j))
        yield UOp(Op.INDEX, square, _numbers(i, j))
    line = UOp(Op.INDEX, square, index_const(1))
    yield from (nodes.expand(u, (3, 3)) for u in (_row(line), _column(line)))
    yield from (UOp(Op.SUB, square, u) for u in (_row(line), _column(line)))
