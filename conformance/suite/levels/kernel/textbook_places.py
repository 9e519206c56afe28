"""Generate level kernel, textbook of places: kernels that differ in where they read and write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from uop.conformance.suite.levels.kernel.scalar import (
    Memory,
    at,
    flat,
    less,
    load,
    loop,
    modulo,
    plus,
    shared,
    special,
    times,
    total,
)
from uop.conformance.suite.levels.kernel.textbook import SIDE, Kernel, square, written
from uop.conformance.suite.levels.nodes import cast, dims, store
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const


def _strided(k: Kernel) -> UOp:
    """Read every third element, write every second one."""
    n = k.size()
    out, a, i = k.memory(2 * n + 1), k.memory(3 * n), k.counter(n)
    return out.store(plus(times(i, 2), 1), a.load(plus(times(i, 3), 1)))


def _in_threes(k: Kernel) -> UOp:
    """Read vectors of 3, write them in planes, and write them turned."""
    n = k.size()
    planes, out, a, i = k.memory(3 * n), k.memory(3 * n), k.memory(3 * n), k.counter(n)
    first = times(i, 3)
    together = UOp(Op.STACK, first, plus(first, 1), plus(first, 2))
    apart = UOp(Op.STACK, *(plus(i, n * c) for c in range(3)))
    three = a.load(together)
    factors = UOp(Op.STACK, *map(k.number, (1, 2, 3)))
    turned = UOp(Op.ADD, UOp(Op.MUL, three, factors), UOp(Op.INDEX, three, dims((2, 0, 1))))
    return UOp(Op.GROUP, planes.store(apart, three), out.store(together, turned))


def _from_planes(k: Kernel) -> UOp:
    """Read 4 planes, write vectors of 4 and the sum of two lanes."""
    n = k.size()
    out, sums, a, i = k.memory(4 * n), k.memory(n), k.memory(4 * n), k.counter(n)
    four = a.load(UOp(Op.STACK, *(plus(i, n * c) for c in range(4))))
    together = UOp(Op.STACK, *(plus(times(i, 4), c) for c in range(4)))
    lanes = (UOp(Op.INDEX, four, index_const(c)) for c in (1, 3))
    return UOp(Op.GROUP, out.store(together, four), sums.store(i, UOp(Op.SUB, *lanes)))


def _interleaved(k: Kernel) -> UOp:
    """Write elements of two memories by turns, and take those of a third apart."""
    n = 2 * k.size()
    out, back, a, b, c = k.memory(2 * n), k.memory(n), k.memory(n), k.memory(n), k.memory(n)
    i = k.counter(n)
    place = UOp(Op.ADD, times(modulo(i, 2), n // 2), UOp(Op.IDIV, i, index_const(2)))
    first, second = times(i, 2), plus(times(i, 2), 1)
    stores = (out.store(first, a.load(i)), out.store(second, b.load(i)))
    return UOp(Op.GROUP, *stores, back.store(place, c.load(i)))


def _clamped(k: Kernel) -> UOp:
    """Read the nearest element of what lies outside, by choices and by maxima."""
    n = k.size()
    out, other, a, i = k.memory(n + 4), k.memory(n + 4), k.memory(n), k.counter(n + 4)
    place, zero, last = plus(i, -2), index_const(0), index_const(n - 1)
    upper = UOp(Op.WHERE, less(last, place), last, place)
    chosen = UOp(Op.WHERE, less(place, zero), zero, upper)
    above = UOp(Op.SUB, last, UOp(Op.MAX, place, zero))
    bounded = UOp(Op.SUB, last, UOp(Op.MAX, above, zero))
    return UOp(Op.GROUP, out.store(i, a.load(chosen)), other.store(i, a.load(bounded)))


def _mirrored(k: Kernel) -> UOp:
    """Read what lies outside from inside: without the edge, and with it."""
    n = k.size()
    out, other, a, i = k.memory(n + 4), k.memory(n + 4), k.memory(n), k.counter(n + 4)
    stores = []
    for target, edge in ((out, 0), (other, 1)):
        place = plus(i, -2)
        below = UOp(Op.SUB, index_const(-edge), place)
        above = UOp(Op.SUB, index_const(2 * n - 2 + edge), place)
        upper = UOp(Op.WHERE, less(index_const(n - 1), place), above, place)
        chosen = UOp(Op.WHERE, less(place, index_const(0)), below, upper)
        stores.append(target.store(i, a.load(chosen)))
    return UOp(Op.GROUP, *stores)


def _turned(k: Kernel) -> UOp:
    """Turn each row by its number, and divide numbers below zero."""
    n, m = k.size(), k.size()
    out, other, a = k.memory(n * m), k.memory(n * m), k.memory(n * m)
    i, j = k.counter(n), k.counter(m)
    row = times(i, m)
    place, before = flat((i, j)), modulo(plus(UOp(Op.SUB, j, i), -1), m)
    half = plus(UOp(Op.IDIV, plus(j, -3), index_const(2)), 2)
    turned = a.load(UOp(Op.ADD, row, modulo(UOp(Op.ADD, i, j), m)))
    both = UOp(Op.SUB, a.load(UOp(Op.ADD, row, before)), a.load(UOp(Op.ADD, row, half)))
    return UOp(Op.GROUP, out.store(place, turned), other.store(place, both))


def _in_tiles(k: Kernel) -> UOp:
    """Write a matrix in tiles of 2 rows of 3, and read another one so."""
    rows, columns = 2 * k.choices.between(2, 3), 3 * k.choices.between(2, 3)
    n = rows * columns
    out, back, a, b = k.memory(n), k.memory(n), k.memory(n), k.memory(n)
    y, x = k.counter(rows), k.counter(columns)
    tile = total(
        times(UOp(Op.IDIV, y, index_const(2)), 2 * columns),
        times(UOp(Op.IDIV, x, index_const(3)), 6),
        times(modulo(y, 2), 3),
        modulo(x, 3),
    )
    here = flat((y, x))
    return UOp(Op.GROUP, out.store(tile, a.load(here)), back.store(here, b.load(tile)))


def _diagonals(k: Kernel) -> UOp:
    """Subtract the diagonals of a matrix, and write one of another."""
    n = k.size()
    out, matrix, a, i = k.memory(n), k.memory(n * n), k.memory(n * n), k.counter(n)
    main, other = times(i, n + 1), times(plus(i, 1), n - 1)
    stored = out.store(i, UOp(Op.SUB, a.load(main), a.load(other)))
    return UOp(Op.GROUP, stored, matrix.store(main, a.load(plus(times(i, n), n - 1))))


def _with_tail(k: Kernel) -> UOp:
    """Work on vectors of 4 in one loop, and on the elements that are left in another."""
    k.kind = None
    quarters, rest = k.choices.between(2, 3), k.choices.between(1, 3)
    n = 4 * quarters + rest
    out, a, b, i, j = k.memory(n), k.memory(n), k.memory(n), loop(0, quarters), loop(1, rest)
    lanes = UOp(Op.STACK, *(plus(times(i, 4), c) for c in range(4)))
    four = out.store(lanes, UOp(Op.SUB, a.load(lanes), b.load(lanes)))
    place = plus(j, 4 * quarters)
    one = out.store(place, UOp(Op.SUB, a.load(place), b.load(place)))
    return UOp(Op.GROUP, UOp(Op.END, four, i), UOp(Op.END, one, j))


def _crossed(k: Kernel) -> UOp:
    """Add up neighbours in a square, and those at a corner; outside of it are numbers."""
    n = k.size()
    out, corners, a = k.memory(n * n), k.memory(n * n), k.memory(n * n)
    i, j = k.counter(n), k.counter(n)
    here = flat((i, j))
    above, left = less(index_const(0), i), less(index_const(0), j)
    below, right = less(i, index_const(n - 1)), less(j, index_const(n - 1))

    def near(step: int, instead: int, gate: UOp) -> UOp:
        return UOp(Op.LOAD, a.at(plus(here, step)), k.number(instead), gate)

    cross = total(near(-n, 1, above), near(n, 2, below), near(-1, 3, left), near(1, 4, right))
    both = near(1 - n, 5, UOp(Op.AND, above, right))
    other = UOp(Op.WHERE, UOp(Op.OR, below, left), a.load(here), k.number(6))
    stored = out.store(here, UOp(Op.SUB, cross, a.load(here)))
    return UOp(Op.GROUP, stored, corners.store(here, UOp(Op.SUB, both, other)))


def _convolved(k: Kernel) -> UOp:
    """Fold windows of every second element that begin at every third, by weights from the end."""
    n, channels = k.size(), 2
    out, a, weights = k.memory(n), k.memory((3 * n + 2) * channels), k.memory(3 * channels)
    i = k.counter(n)

    def term(r: UOp) -> UOp:
        channel, tap = UOp(Op.IDIV, r, index_const(3)), modulo(r, 3)
        place = total(times(channel, 3 * n + 2), times(i, 3), times(tap, 2))
        weight = UOp(Op.SUB, index_const(3 * channels - 1), r)
        return UOp(Op.MUL, a.load(place), weights.load(weight))

    return out.store(i, k.fold(Op.ADD, 3 * channels, term))


def _looked_up_twice(k: Kernel) -> UOp:
    """Read at a place that is read at another place; other places have few bits."""
    n = k.choices.pick((7, 9, 10))
    out, other, a = k.memory(n), k.memory(n), k.memory(n)
    places = [k.memory(n, d) for d in (dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.int8)]
    i = k.counter(n)

    def read(memory: Memory, i: UOp) -> UOp:
        return modulo(cast(memory.load(i), dtypes.index), n)

    stored = out.store(i, a.load(read(places[0], read(places[1], i))))
    return UOp(
        Op.GROUP, stored, other.store(i, UOp(Op.SUB, *(a.load(read(m, i)) for m in places[2:])))
    )


def _surrounded(k: Kernel) -> UOp:
    """Put a vector between numbers, and another one into what stands there."""
    n = k.size()
    out, kept, a, b = k.memory(n + 5), k.memory(n + 5), k.memory(n), k.memory(n + 5)
    i = k.counter(n + 5)
    inside = UOp(Op.AND, less(index_const(1), i), less(i, index_const(n + 2)))
    outside = UOp(Op.OR, less(i, index_const(2)), less(index_const(n + 1), i))
    element = UOp(Op.LOAD, a.at(plus(i, -2)), k.number(3), inside)
    return UOp(
        Op.GROUP,
        out.store(i, UOp(Op.ADD, element, UOp(Op.WHERE, outside, b.load(i), k.number(1)))),
        kept.store(i, b.load(i), inside),
    )


def _flags(k: Kernel) -> UOp:
    """Read and write bools."""
    n, flag = k.choices.between(9, 12), dtypes.bool
    smaller, differ, chosen = k.memory(n, flag), k.memory(n, flag), k.memory(n)
    counts, a, b, given = k.memory(n, dtypes.int32), k.memory(n), k.memory(n), k.memory(n, flag)
    i = k.counter(n)
    x, y, known = a.load(i), b.load(i), given.load(i)
    ones = k.fold(Op.ADD, n, lambda r: cast(given.load(r), dtypes.int32))
    number = UOp(Op.SUB, ones, cast(known, dtypes.int32))
    return UOp(
        Op.GROUP,
        smaller.store(i, UOp(Op.AND, less(x, y), known)),
        differ.store(i, UOp(Op.CMPNE, less(y, x), UOp(Op.OR, known, less(x, k.number(3))))),
        chosen.store(i, UOp(Op.WHERE, known, UOp(Op.SUB, x, y), x)),
        counts.store(i, number, UOp(Op.CMPNE, known, const(True, flag))),
    )


def _cube(k: Kernel) -> UOp:
    """Turn the axes of a cube, and add a number that each axis has."""
    n = 3
    out, a, rows, columns = k.memory(n**3), k.memory(n**3), k.memory(n), k.memory(n)
    x, y, z = k.counter(n), k.counter(n), k.counter(n)
    edges = UOp(Op.SUB, rows.load(x), columns.load(z))
    return out.store(flat((x, y, z)), UOp(Op.ADD, a.load(flat((z, x, y))), edges))


def _enlarged(k: Kernel) -> UOp:
    """Write each element twice, then the sum with the next one; the last has none."""
    n = k.size()
    out, a, i = k.memory(2 * n), k.memory(n), k.counter(2 * n)
    half, last = UOp(Op.IDIV, plus(i, 1), index_const(2)), index_const(n - 1)
    after = UOp(Op.WHERE, less(last, half), last, half)
    return out.store(i, UOp(Op.ADD, a.load(UOp(Op.IDIV, i, index_const(2))), a.load(after)))


def _relaxed(k: Kernel) -> UOp:
    """Run three times, each time on what the time before has written."""
    n = k.size()
    k.runs = 3
    out, a, i = k.memory(n), k.memory(n), k.counter(n)
    return out.store(i, UOp(Op.SUB, a.load(modulo(plus(i, 1), n)), a.load(modulo(plus(i, -1), n))))


def _with_itself(k: Kernel) -> UOp:
    """Take a buffer twice, and update it by both."""
    n = k.size()
    out, a, b, i = k.memory(n), k.memory(n), k.memory(n), k.counter(n)
    again = k.again(a)
    both = UOp(Op.ADD, a.load(i), again.load(UOp(Op.SUB, index_const(n - 1), i)))
    b_again = k.again(b)
    updated = b.store(i, UOp(Op.SUB, UOp(Op.ADD, b_again.load(i), b.load(i)), a.load(i)))
    return UOp(Op.GROUP, out.store(i, both), updated)


def _repeatedly(k: Kernel) -> UOp:
    """Read one element several times, alone, in a fold and as the element of a counter."""
    n = k.size()
    out, a, i = k.memory(n), k.memory(n), k.counter(n)
    first = a.load(index_const(0))
    folded = k.fold(Op.ADD, n, lambda r: UOp(Op.SUB, a.load(r), first))
    return out.store(i, UOp(Op.SUB, UOp(Op.ADD, folded, UOp(Op.MUL, a.load(i), first)), first))


def _tiled_transpose(k: Kernel) -> UOp:
    """Turn a matrix by tiles in LOCAL memory."""
    k.kind = None
    n, m = 2 * SIDE, 3 * SIDE
    out, a, tile = k.memory(n * m), k.memory(n * m), shared(9, SIDE**2, k.dtype)
    group_y, group_x, y, x = square(k)
    here = total(times(group_y, SIDE * m), times(y, m), times(group_x, SIDE), x)
    there = total(times(group_x, SIDE * n), times(y, n), times(group_y, SIDE), x)
    filled = store(at(tile, flat((y, x))), a.load(here))
    done = UOp(Op.AFTER, tile, UOp(Op.BARRIER, filled))
    return out.store(there, load(done, flat((x, y))))


def _on_both_axes(k: Kernel) -> UOp:
    """Cover an image with groups of 2 by 3 items, which exchange elements in either order of axes.

    Some of the items are outside of the image.
    """
    k.kind = None
    height, width = 3, 2
    rows, columns = 2 * height - 1, 3 * width - 1
    out, other, a = k.memory(rows * columns), k.memory(rows * columns), k.memory(rows * columns)
    group_x, group_y = special("gidx0", 3), special("gidx1", 2)
    x, y = special("lidx0", width), special("lidx1", height)
    column, row = (UOp(Op.ADD, times(group_x, width), x), UOp(Op.ADD, times(group_y, height), y))
    inside = UOp(Op.AND, less(column, index_const(columns)), less(row, index_const(rows)))
    here, stores = UOp(Op.ADD, times(row, columns), column), []
    element = UOp(Op.LOAD, a.at(here), k.number(1), inside)
    by_rows, by_columns = flat((y, x)), flat((x, y))
    for slot, target, place, read in (
        (8, out, by_rows, UOp(Op.ADD, times(modulo(plus(y, 1), height), width), x)),
        (9, other, by_columns, UOp(Op.ADD, times(modulo(plus(x, 1), width), height), y)),
    ):
        tile = shared(slot, height * width, k.dtype)
        done = UOp(Op.AFTER, tile, UOp(Op.BARRIER, store(at(tile, place), element)))
        value = UOp(Op.SUB, load(done, read), element)
        stores.append(target.store(here, value, inside))
    return UOp(Op.GROUP, *stores)


KERNELS: tuple[Callable[[Kernel], UOp], ...] = (
    *(_strided, _in_threes, _from_planes, _interleaved, _clamped, _mirrored, _turned),
    *(_in_tiles, _diagonals, _with_tail, _crossed, _convolved, _looked_up_twice, _surrounded),
    *(_flags, _cube, _enlarged, _relaxed, _with_itself, _repeatedly, _tiled_transpose),
    _on_both_axes,
)
of_places = partial(written, KERNELS)
