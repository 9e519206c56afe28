"""Generate level kernel, textbook of steps: loops around registers and memory, in a LINEAR."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from uop.conformance.suite.levels.kernel.scalar import (
    less,
    loop,
    modulo,
    plus,
    register,
    special,
    times,
)
from uop.conformance.suite.levels.kernel.textbook import Kernel, Steps, written
from uop.conformance.suite.levels.nodes import cast
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

ZERO, ONE = index_const(0), index_const(1)


def _scanned(k: Kernel) -> UOp:
    """Add up each row: write the sums without and with each element, in every row anew."""
    rows, n = k.size(), k.size()
    before, after, a = k.memory(rows * n), k.memory(rows * n), k.memory(rows * n)
    row, j, acc, steps = special("gidx0", rows), loop(0, n), register(8, 1, k.dtype), Steps()
    place = UOp(Op.ADD, times(row, n), j)
    steps.put(acc, ZERO, k.number(1))
    with steps.each(j):
        steps.put(before.param, place, steps.get(acc, ZERO))
        steps.put(acc, ZERO, UOp(Op.ADD, steps.get(acc, ZERO), steps.get(a.param, place)))
        steps.put(after.param, place, steps.get(acc, ZERO))
    return steps.body


def _exchanged(k: Kernel) -> UOp:
    """Turn three registers in each iteration, one of which becomes a sum."""
    n = k.size()
    out, a, steps, i = k.memory(n), k.memory(3), Steps(), loop(0, n)
    own = [register(8 + r, 1, k.dtype) for r in range(3)]
    for r, one in enumerate(own):
        steps.put(one, ZERO, a.load(index_const(r)))
    with steps.each(i):
        x, y, z = (steps.get(one, ZERO) for one in own)
        for one, value in zip(own, (y, z, UOp(Op.SUB, x, y)), strict=True):
            steps.put(one, ZERO, value)
        steps.put(out.param, i, steps.get(own[0], ZERO))
    return steps.body


def _several(k: Kernel) -> UOp:
    """Keep a sum of elements by turns, the smallest and the number of small ones in one loop."""
    n = k.size()
    out, counted, a = k.memory(3), k.memory(1, dtypes.int32), k.memory(n)
    steps, i = Steps(), loop(0, n)
    sums, least = register(8, 2, k.dtype), register(9, 1, k.dtype)
    few = register(7, 1, dtypes.int32)
    for r in range(2):
        steps.put(sums, index_const(r), k.number(r))
    steps.put(least, ZERO, a.load(ZERO))
    steps.put(few, ZERO, const(0, dtypes.int32))
    with steps.each(i):
        x, turn = steps.get(a.param, i), modulo(i, 2)
        old = steps.get(least, ZERO)
        steps.put(sums, turn, UOp(Op.ADD, steps.get(sums, turn), x))
        steps.put(least, ZERO, UOp(Op.WHERE, less(x, old), x, old))
        more = UOp(Op.ADD, steps.get(few, ZERO), const(1, dtypes.int32))
        steps.put(few, ZERO, more, less(x, k.number(5)))
    for r in range(2):
        steps.put(out.param, index_const(r), steps.get(sums, index_const(r)))
    steps.put(out.param, index_const(2), steps.get(least, ZERO))
    steps.put(counted.param, ZERO, steps.get(few, ZERO))
    return steps.body


def _sorted(k: Kernel) -> UOp:
    """Exchange neighbours that are not in order, again and again."""
    n = k.size()
    a, steps, i, j = k.memory(n), Steps(), loop(0, n), loop(1, n - 1)
    with steps.each(i), steps.each(j):
        x, y = steps.get(a.param, j), steps.get(a.param, plus(j, 1))
        steps.put(a.param, j, UOp(Op.WHERE, less(y, x), y, x))
        steps.put(a.param, plus(j, 1), UOp(Op.WHERE, less(y, x), x, y))
    return steps.body


def _compacted(k: Kernel) -> UOp:
    """Write the elements above a number one after the other, and how many there are."""
    n, whole = k.choices.between(7, 10), dtypes.int32
    out, counted, a = k.memory(n), k.memory(1, whole), k.memory(n)
    count, steps, i = register(8, 1, whole), Steps(), loop(0, n)
    steps.put(count, ZERO, const(0, whole))
    with steps.each(i):
        x, place = steps.get(a.param, i), steps.get(count, ZERO)
        gate = less(k.number(3), x)
        steps.put(out.param, cast(place, dtypes.index), x, gate)
        more = UOp(Op.WHERE, gate, const(1, whole), const(0, whole))
        steps.put(count, ZERO, UOp(Op.ADD, place, more))
    steps.put(counted.param, ZERO, steps.get(count, ZERO))
    return steps.body


def _found(k: Kernel) -> UOp:
    """Find the first and the last element above a number: the first ends the search."""
    n, whole = k.choices.between(7, 10), dtypes.int32
    out, a, steps, i = k.memory(2, whole), k.memory(n), Steps(), loop(0, n)
    places = register(8, 2, whole)
    steps.put(places, ZERO, const(n, whole))
    steps.put(places, ONE, const(-1, whole))
    with steps.each(i):
        is_it = less(k.number(3), steps.get(a.param, i))
        searching = less(const(n - 1, whole), steps.get(places, ZERO))
        steps.put(places, ZERO, cast(i, whole), UOp(Op.AND, is_it, searching))
        steps.put(places, ONE, cast(i, whole), is_it)
    for r in range(2):
        steps.put(out.param, index_const(r), steps.get(places, index_const(r)))
    return steps.body


def _tied(k: Kernel) -> UOp:
    """Find the first and the last place of the largest of elements each of which comes again."""
    n, whole = k.choices.between(7, 10), dtypes.int32
    out, a, steps, i = k.memory(2, whole), k.memory(3), Steps(), loop(0, n)
    best = [register(8 + r, 1, k.dtype) for r in range(2)]
    places = register(7, 2, whole)
    for r, one in enumerate(best):
        steps.put(one, ZERO, a.load(ZERO))
        steps.put(places, index_const(r), const(0, whole))
    with steps.each(i):
        x = steps.get(a.param, modulo(i, 3))
        first = less(steps.get(best[0], ZERO), x)
        last = UOp(Op.CMPNE, less(x, steps.get(best[1], ZERO)), const(True, dtypes.bool))
        for r, gate in enumerate((first, last)):
            steps.put(best[r], ZERO, x, gate)
            steps.put(places, index_const(r), cast(i, whole), gate)
    for r in range(2):
        steps.put(out.param, index_const(r), steps.get(places, index_const(r)))
    return steps.body


def _stored_over(k: Kernel) -> UOp:
    """Write an element several times, and read it in between."""
    n = k.choices.between(9, 12)
    out, kept, a, i, steps = k.memory(n), k.memory(n), k.memory(n), special("gidx0", n), Steps()
    x = steps.get(a.param, i)
    steps.put(a.param, i, UOp(Op.ADD, x, k.number(1)))
    steps.put(out.param, i, UOp(Op.ADD, steps.get(a.param, i), x))
    steps.put(a.param, i, k.number(3), less(x, k.number(2)))
    steps.put(kept.param, i, x)
    steps.put(kept.param, i, steps.get(a.param, i), less(k.number(2), steps.get(out.param, i)))
    steps.put(a.param, i, UOp(Op.SUB, steps.get(out.param, i), steps.get(kept.param, i)))
    return steps.body


def _side_by_side(k: Kernel) -> UOp:
    """Write in each iteration what it reads of the one before, and what the next one replaces."""
    n = k.size()
    out, back, d, a = k.memory(n), k.memory(n), k.memory(n + 1), k.memory(n)
    steps, i = Steps(), loop(0, n)
    with steps.each(i):
        steps.put(out.param, i, steps.get(d.param, plus(i, 1)))
        steps.put(d.param, plus(i, 1), UOp(Op.SUB, steps.get(a.param, i), k.number(2)))
        both = UOp(Op.ADD, steps.get(d.param, i), steps.get(d.param, plus(i, 1)))
        steps.put(back.param, i, both)
    return steps.body


def _powers(k: Kernel) -> UOp:
    """Compute a polynomial from the highest power, and the powers of each element."""
    n, degree = k.size(), 4
    out, powers, a, factors = k.memory(n), k.memory(n * degree), k.memory(n), k.memory(degree)
    i, r = special("gidx0", n), loop(0, degree)
    steps, acc, power = Steps(), register(8, 1, k.dtype), register(9, 1, k.dtype)
    steps.put(acc, ZERO, k.number(0))
    steps.put(power, ZERO, k.number(1))
    x = steps.get(a.param, i)
    with steps.each(r):
        held = UOp(Op.MUL, steps.get(acc, ZERO), x)
        factor = steps.get(factors.param, UOp(Op.SUB, index_const(degree - 1), r))
        steps.put(acc, ZERO, UOp(Op.SUB, factor, held))
        steps.put(powers.param, UOp(Op.ADD, times(i, degree), r), steps.get(power, ZERO))
        steps.put(power, ZERO, UOp(Op.MUL, steps.get(power, ZERO), x))
    steps.put(out.param, i, steps.get(acc, ZERO))
    return steps.body


KERNELS: tuple[Callable[[Kernel], UOp], ...] = (
    *(_scanned, _exchanged, _several, _sorted, _compacted, _found, _tied, _stored_over),
    *(_side_by_side, _powers),
)
of_steps = partial(written, KERNELS)
