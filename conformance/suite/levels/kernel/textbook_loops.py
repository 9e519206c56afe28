"""Generate level kernel, textbook of loops: kernels whose iterations depend on each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from uop.conformance.suite.levels.kernel.scalar import (
    at,
    flat,
    less,
    load,
    loop,
    modulo,
    plus,
    register,
    times,
)
from uop.conformance.suite.levels.kernel.textbook import Kernel, written
from uop.conformance.suite.levels.nodes import cast, store
from uop.spec.args import AxisType, RangeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

ZERO, ONE = index_const(0), index_const(1)
FAR = 5
"""A distance between iterations that is less than a vector of 8."""


def _cleared(k: Kernel) -> UOp:
    """Fold rows in two registers: one is cleared before each row, one is carried over."""
    k.kind = None
    rows, n = k.choices.between(3, 5), k.size()
    out, carried, a = k.memory(rows), k.memory(rows), k.memory(rows * n)
    i, j, r = loop(0, rows), loop(1, n), loop(2, n)
    own, kept = register(8, 1, k.dtype), register(9, 1, k.dtype)
    begun = store(at(UOp(Op.AFTER, own, i), ZERO), k.number(2))
    inside = UOp(Op.AFTER, own, begun, j)
    element = a.load(UOp(Op.ADD, times(i, n), j))
    step = store(at(inside, ZERO), UOp(Op.SUB, load(inside, ZERO), element))
    done = UOp(Op.AFTER, own, UOp(Op.END, step, j))
    once = UOp(Op.AFTER, kept, store(at(kept, ZERO), k.number(1)), i, r)
    other = a.load(UOp(Op.ADD, times(i, n), r))
    more = store(at(once, ZERO), UOp(Op.ADD, load(once, ZERO), other))
    all_of_it = UOp(Op.AFTER, kept, UOp(Op.END, more, r))
    stores = (out.store(i, load(done, ZERO)), carried.store(i, load(all_of_it, ZERO)))
    return UOp(Op.END, UOp(Op.GROUP, *stores), i)


def _in_both_directions(k: Kernel) -> UOp:
    """Compute each element from the one after it, and each from the one before."""
    k.kind = None
    n = k.size()
    down, up, a, b = k.memory(n + 1), k.memory(n + 1), k.memory(n), k.memory(n)
    i, j = loop(0, n), loop(1, n)
    place = UOp(Op.SUB, index_const(n - 1), i)
    value = UOp(Op.SUB, a.load(place), down.load(plus(place, 1)))
    old, new = up.load(j), b.load(j)
    larger = UOp(Op.WHERE, less(old, new), new, old)
    return UOp(
        Op.GROUP,
        UOp(Op.END, down.store(place, value), i),
        UOp(Op.END, up.store(plus(j, 1), larger), j),
    )


def _by_data(k: Kernel) -> UOp:
    """Add to places that come again, and write to such places."""
    k.kind = None
    n, bins = k.choices.between(7, 10), 3
    sums, last, a = k.memory(bins), k.memory(bins), k.memory(n)
    places, i, j = k.memory(n, dtypes.int32), loop(0, n), loop(1, n)
    one, other = (modulo(cast(places.load(r), dtypes.index), bins) for r in (i, j))
    added = sums.store(one, UOp(Op.ADD, sums.load(one), a.load(i)))
    stored = last.store(other, a.load(j), less(a.load(j), k.number(9)))
    return UOp(Op.GROUP, UOp(Op.END, added, i), UOp(Op.END, stored, j))


def _as_often_as_data_says(k: Kernel) -> UOp:
    """Run loops as often as an element says, as often as a counter, once, and never."""
    k.kind = AxisType.LOOP
    n = k.size()
    out, folded, once, never = (k.memory(n) for _ in range(4))
    a, numbers, i = k.memory(n + 3), k.memory(n, dtypes.int32), k.counter(n)

    def inner(id: int, count: UOp, kind: AxisType = AxisType.LOOP) -> UOp:
        return UOp(Op.RANGE, count, arg=RangeArg(id, kind))

    j = inner(1, modulo(cast(numbers.load(i), dtypes.index), 4))
    r = inner(2, modulo(i, 3), AxisType.REDUCE)
    one, none = inner(3, ONE), inner(4, ZERO)
    held = UOp(Op.AFTER, out.param, j)
    more = store(at(held, i), UOp(Op.SUB, a.load(UOp(Op.ADD, i, j)), load(held, i)))
    element = a.load(UOp(Op.ADD, i, r))
    return UOp(
        Op.GROUP,
        UOp(Op.END, more, j),
        folded.store(i, UOp(Op.REDUCE, element, r, arg=ReduceArg(Op.ADD))),
        UOp(Op.END, once.store(i, a.load(plus(UOp(Op.ADD, i, one), 1))), one),
        UOp(Op.END, never.store(i, a.load(UOp(Op.ADD, i, none))), none),
    )


def _from_afar(k: Kernel) -> UOp:
    """Compute elements from those some iterations before, and before those are written."""
    k.kind = None
    n = k.choices.between(11, 13)
    ahead, behind, a = k.memory(n + FAR), k.memory(n + FAR), k.memory(n)
    i, j = loop(0, n), loop(1, n)
    stored = ahead.store(plus(i, FAR), UOp(Op.SUB, a.load(i), ahead.load(i)))
    other = behind.store(j, UOp(Op.SUB, a.load(j), behind.load(plus(j, FAR))))
    return UOp(Op.GROUP, UOp(Op.END, stored, i), UOp(Op.END, other, j))


def _aligned(k: Kernel) -> UOp:
    """Compute a matrix from the elements above, to the left and between, as edit distances do."""
    k.kind = AxisType.LOOP
    n, m = k.choices.between(3, 4), k.choices.between(3, 5)
    width = m + 1
    d, a, b = k.memory((n + 1) * width), k.memory(n), k.memory(m)
    i, j = k.counter(n), k.counter(m)
    corner = UOp(Op.ADD, times(i, width), j)
    other = d.load(corner)
    more = UOp(Op.WHERE, less(a.load(i), b.load(j)), UOp(Op.ADD, other, k.number(2)), other)
    above, left = d.load(plus(corner, 1)), d.load(plus(corner, width))
    larger = UOp(Op.WHERE, less(above, left), left, above)
    return d.store(plus(corner, width + 1), UOp(Op.SUB, larger, more))


def _at_the_ends(k: Kernel) -> UOp:
    """Let the first and the last iteration do something else; write one place in all of them."""
    k.kind = AxisType.LOOP
    n = k.size()
    out, ends, a, i = k.memory(n), k.memory(3), k.memory(n), k.counter(n)
    is_first, is_last = less(i, ONE), less(index_const(n - 2), i)
    x = a.load(i)
    inner = UOp(Op.WHERE, is_last, UOp(Op.SUB, k.number(1), x), UOp(Op.ADD, x, x))
    return UOp(
        Op.GROUP,
        out.store(i, UOp(Op.WHERE, is_first, k.number(7), inner)),
        ends.store(ZERO, x),
        ends.store(ONE, x, is_first),
        ends.store(index_const(2), x, less(x, k.number(9))),
    )


def _not_invariant(k: Kernel) -> UOp:
    """Use one element in all iterations, the first of which writes it, or one in the middle."""
    k.kind = None
    n = k.size()
    x, y, a, i, j = k.memory(n), k.memory(n), k.memory(n), loop(0, n), loop(1, n)
    first = x.store(i, UOp(Op.ADD, x.load(ZERO), a.load(i)))
    middle = y.store(j, UOp(Op.SUB, a.load(j), y.load(index_const(n // 2))))
    return UOp(Op.GROUP, UOp(Op.END, first, i), UOp(Op.END, middle, j))


def _one_after_the_other(k: Kernel) -> UOp:
    """Write in one loop what the next one reads from the end."""
    k.kind = None
    n = k.size()
    out, b, a, i, j = k.memory(n), k.memory(n), k.memory(n), loop(0, n), loop(1, n)
    doubled = UOp(Op.END, b.store(i, UOp(Op.ADD, a.load(i), a.load(i))), i)
    done = UOp(Op.AFTER, b.param, doubled)
    value = UOp(Op.SUB, load(done, UOp(Op.SUB, index_const(n - 1), j)), a.load(j))
    return UOp(Op.END, out.store(j, value), j)


def _folds(k: Kernel) -> UOp:
    """Fold by each op: over two loops, over one that the term does not have, and over none."""
    n, m, depth = k.size(), k.choices.between(2, 3), k.size()
    a, i = k.memory(n * m * depth), k.counter(n)
    stores = []
    for op in (Op.ADD, Op.MUL, Op.MAX):
        k.folds += 2
        r, s = (loop(9 + k.folds + c, size, AxisType.REDUCE) for c, size in ((0, m), (1, depth)))
        k.folds += 1
        both = UOp(Op.REDUCE, a.load(flat((i, r, s))), s, r, arg=ReduceArg(op))
        one = k.fold(op, m, lambda r: a.load(i))
        inner = k.fold(op, 3, lambda r: cast(r, k.dtype))
        none = k.fold(op, 0, lambda r: a.load(UOp(Op.ADD, i, r)))
        for value in (both, UOp(Op.SUB, one, inner), UOp(op, none, a.load(i))):
            stores.append(k.memory(n).store(i, value))
    return UOp(Op.GROUP, *stores)


KERNELS: tuple[Callable[[Kernel], UOp], ...] = (
    *(_cleared, _in_both_directions, _by_data, _as_often_as_data_says, _from_afar, _aligned),
    *(_at_the_ends, _not_invariant, _one_after_the_other, _folds),
)
of_loops = partial(written, KERNELS)
