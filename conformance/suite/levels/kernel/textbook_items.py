"""Generate level kernel, textbook of items: kernels of work items that share memory and wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from uop.conformance.suite.levels.kernel.scalar import (
    at,
    flat,
    less,
    loop,
    modulo,
    plus,
    register,
    shared,
    special,
    times,
    total,
)
from uop.conformance.suite.levels.kernel.textbook import SIDE, Kernel, Steps, square, written
from uop.conformance.suite.levels.nodes import cast, dims
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

ZERO = index_const(0)
EIGHT = 8


def _tiled_product(k: Kernel) -> UOp:
    """Multiply matrices by tiles in LOCAL memory; items wait before and after they are used."""
    n, m, rounds = 2 * SIDE, 3 * SIDE, 2
    depth = rounds * SIDE
    out, a, b = k.memory(n * m), k.memory(n * depth), k.memory(depth * m)
    left, right = (shared(slot, SIDE**2, k.dtype) for slot in (8, 9))
    group_y, group_x, y, x = square(k)
    row, column = (UOp(Op.ADD, times(g, SIDE), i) for g, i in ((group_y, y), (group_x, x)))
    steps, acc, step, r = Steps(), register(7, 1, k.dtype), loop(0, rounds), loop(1, SIDE)
    steps.put(acc, ZERO, k.number(0))
    with steps.each(step):
        first = times(step, SIDE)
        steps.put(left, flat((y, x)), a.load(total(times(row, depth), first, x)))
        steps.put(right, flat((y, x)), b.load(total(times(UOp(Op.ADD, first, y), m), column)))
        steps.barrier()
        with steps.each(r):
            one = steps.get(left, UOp(Op.ADD, times(y, SIDE), r))
            other = steps.get(right, UOp(Op.ADD, times(r, SIDE), x))
            term = UOp(Op.MUL, one, other)
            steps.put(acc, ZERO, UOp(Op.ADD, steps.get(acc, ZERO), term))
        steps.barrier()
    steps.put(out.param, UOp(Op.ADD, times(row, m), column), steps.get(acc, ZERO))
    return steps.body


def _two_buffers(k: Kernel) -> UOp:
    """Fill one half of LOCAL memory while the other half is read; one barrier per round."""
    items, rounds = k.choices.between(3, 5), 3
    out, a = k.memory(rounds * items), k.memory((rounds + 1) * items)
    item, r, steps = special("lidx0", items), loop(0, rounds), Steps()
    halves = shared(9, 2 * items, k.dtype)
    steps.put(halves, item, a.load(item))
    steps.barrier()
    with steps.each(r):
        following = plus(r, 1)
        place = UOp(Op.ADD, times(modulo(following, 2), items), item)
        steps.put(halves, place, a.load(UOp(Op.ADD, times(following, items), item)))
        near = UOp(Op.ADD, times(modulo(r, 2), items), modulo(plus(item, 1), items))
        steps.put(out.param, UOp(Op.ADD, times(r, items), item), steps.get(halves, near))
        steps.barrier()
    return steps.body


def _tree(k: Kernel) -> UOp:
    """Add up halves of what is left until one is left, in each group; the distance is a number."""
    groups, whole = 2, dtypes.int32
    out, a = k.memory(groups), k.memory(groups * EIGHT)
    group, item, r = special("gidx0", groups), special("lidx0", EIGHT), loop(0, 3)
    steps, shares, distance = Steps(), shared(9, EIGHT, k.dtype), register(8, 1, whole)
    steps.put(shares, item, a.load(UOp(Op.ADD, times(group, EIGHT), item)))
    steps.put(distance, ZERO, const(EIGHT // 2, whole))
    steps.barrier()
    with steps.each(r):
        far = cast(steps.get(distance, ZERO), dtypes.index)
        with steps.where(less(item, far)):
            other = steps.get(shares, UOp(Op.ADD, item, far))
            steps.put(shares, item, UOp(Op.SUB, steps.get(shares, item), other))
        steps.barrier()
        half = UOp(Op.IDIV, steps.get(distance, ZERO), const(2, whole))
        steps.put(distance, ZERO, half)
    with steps.where(less(item, index_const(1))):
        steps.put(out.param, group, steps.get(shares, item))
    return steps.body


def _scanned(k: Kernel) -> UOp:
    """Add up the elements before each one, over distances that double; items wait twice a round."""
    items = k.choices.between(6, 7)
    out, a, item, steps = k.memory(items), k.memory(items), special("lidx0", items), Steps()
    sums = shared(9, items, k.dtype)
    steps.put(sums, item, a.load(item))
    for distance in (1, 2, 4):
        steps.barrier()
        place, gate = at(steps.now(sums), plus(item, -distance)), less(plus(item, -distance), ZERO)
        inside = UOp(Op.CMPNE, gate, const(True, dtypes.bool))
        before = steps.do(UOp(Op.LOAD, place, k.number(0), inside))
        more = UOp(Op.ADD, steps.get(sums, item), before)
        steps.do(more)
        steps.barrier()
        steps.put(sums, item, more)
    steps.put(out.param, item, steps.get(sums, item))
    return steps.body


def _with_edges(k: Kernel) -> UOp:
    """Read neighbours from LOCAL memory; one item reads those of the group, if there are any."""
    groups, items = 3, k.choices.between(3, 5)
    n = groups * items
    out, a, edged, steps = k.memory(n), k.memory(n), shared(9, items + 2, k.dtype), Steps()
    group, item = special("gidx0", groups), special("lidx0", items)
    begin = times(group, items)
    here = UOp(Op.ADD, begin, item)
    steps.put(edged, plus(item, 1), a.load(here))
    with steps.where(less(item, index_const(1))):
        left = UOp(Op.LOAD, a.at(plus(begin, -1)), k.number(5), less(ZERO, group))
        right_gate = less(group, index_const(groups - 1))
        right = UOp(Op.LOAD, a.at(plus(begin, items)), k.number(7), right_gate)
        steps.put(edged, ZERO, left)
        steps.put(edged, index_const(items + 1), right)
    steps.barrier()
    left, right = steps.get(edged, item), steps.get(edged, plus(item, 2))
    value = UOp(Op.ADD, UOp(Op.SUB, left, right), steps.get(edged, plus(item, 1)))
    steps.put(out.param, here, value)
    return steps.body


def _counted(k: Kernel) -> UOp:
    """Count numbers in LOCAL memory, which begins at zero, and add what each group has counted."""
    bins, items, groups = 3, 5, 2
    whole = _added_dtype(k)
    totals, of_groups = k.memory(bins, whole), k.memory(groups * bins, whole)
    numbers, weights = k.memory(groups * items, dtypes.int32), k.memory(groups * items, whole)
    group, item = special("gidx0", groups), special("lidx0", items)
    here, steps, counts = UOp(Op.ADD, times(group, items), item), Steps(), shared(9, bins, whole)
    owns = less(item, index_const(bins))
    with steps.where(owns):
        steps.put(counts, item, const(0, whole))
    steps.barrier()
    place = modulo(cast(numbers.load(here), dtypes.index), bins)
    steps.do(UOp(Op.ATOMICADD, at(counts, place), weights.load(here)))
    steps.barrier()
    with steps.where(owns):
        counted = steps.get(counts, item)
        steps.do(UOp(Op.ATOMICADD, totals.at(item), counted))
        steps.put(of_groups.param, UOp(Op.ADD, times(group, bins), item), counted)
    return steps.body


def _added_dtype(k: Kernel) -> DType:
    """Return a dtype that every target adds as one step, in one result."""
    return k.dtype if k.dtype.is_int and k.dtype.bits > 16 else dtypes.int32


def _added(k: Kernel) -> UOp:
    """Add in branches, in loops, constants and elements, each to a place of its own."""
    items, whole = k.size(), _added_dtype(k)
    sums, a, steps = k.memory(4, whole), k.memory(items, whole), Steps()
    item, r = special("gidx0", items), loop(0, 3)
    x = steps.do(a.load(item))
    steps.do(UOp(Op.ATOMICADD, sums.at(ZERO), x))
    with steps.where(less(const(3, whole), x)):
        steps.do(UOp(Op.ATOMICADD, sums.at(index_const(1)), const(5, whole)))
        with steps.where(less(item, index_const(items // 2))):
            steps.do(UOp(Op.ATOMICADD, sums.at(index_const(2)), x))
    with steps.each(r):
        value = UOp(Op.ADD, cast(r, whole), x)
        steps.do(UOp(Op.ATOMICADD, sums.at(index_const(3)), value))
    return steps.body


def _sorted(k: Kernel) -> UOp:
    """Let every second item exchange its element with the next one, by turns."""
    items = k.choices.between(5, 7)
    out, a, item, r = k.memory(items), k.memory(items), special("lidx0", items), loop(0, items)
    held, steps = shared(9, items, k.dtype), Steps()
    steps.put(held, item, a.load(item))
    steps.barrier()
    with steps.each(r):
        other = UOp(Op.CMPNE, modulo(UOp(Op.ADD, item, r), 2), ZERO)
        with steps.where(UOp(Op.AND, other, less(item, index_const(items - 1)))):
            x, y = steps.get(held, item), steps.get(held, plus(item, 1))
            steps.put(held, item, UOp(Op.WHERE, less(y, x), y, x))
            steps.put(held, plus(item, 1), UOp(Op.WHERE, less(y, x), x, y))
        steps.barrier()
    steps.put(out.param, item, steps.get(held, item))
    return steps.body


def _turned_in_place(k: Kernel) -> UOp:
    """Turn a buffer in place: items read it, wait, and write it."""
    items = k.size()
    a, item, steps = k.memory(items), special("lidx0", items), Steps()
    x = steps.get(a.param, UOp(Op.SUB, index_const(items - 1), item))
    steps.barrier()
    steps.put(a.param, item, UOp(Op.ADD, x, k.number(1)))
    return steps.body


def _used_again(k: Kernel) -> UOp:
    """Use one LOCAL memory for three exchanges, in each group from the start."""
    groups, items = 2, k.choices.between(4, 6)
    out, a, steps = k.memory(groups * items), k.memory(groups * items), Steps()
    held = shared(9, items, k.dtype)
    group, item = special("gidx0", groups), special("lidx0", items)
    here = UOp(Op.ADD, times(group, items), item)
    value = steps.get(a.param, here)
    turned = (modulo(plus(item, 1), items), UOp(Op.SUB, index_const(items - 1), item), item)
    for written_at, read_at in zip(turned, (item, turned[0], turned[1]), strict=True):
        steps.put(held, written_at, value)
        steps.barrier()
        value = steps.do(UOp(Op.SUB, steps.get(held, read_at), value))
        steps.barrier()
    steps.put(out.param, here, value)
    return steps.body


def _in_branches(k: Kernel) -> UOp:
    """Store several times in branches, in both of a gate, between barriers and after them."""
    items = k.choices.between(7, 9)
    first, second, third, a = (k.memory(items) for _ in range(4))
    item, held, steps = special("lidx0", items), shared(9, 2 * items, k.dtype), Steps()
    x = steps.get(a.param, item)
    steps.put(held, item, x)
    steps.put(held, plus(item, items), k.number(1))
    steps.barrier()
    some = less(item, index_const(items // 2))
    with steps.where(some):
        other = steps.get(held, modulo(plus(item, 1), items))
        steps.put(first.param, item, other)
        steps.put(held, plus(item, items), UOp(Op.SUB, x, other))
        with steps.where(less(x, k.number(4))):
            steps.put(second.param, item, other)
            steps.put(first.param, item, k.number(2))
        steps.put(third.param, item, x)
    with steps.where(UOp(Op.CMPNE, some, const(True, dtypes.bool))):
        steps.put(first.param, item, UOp(Op.ADD, x, x))
    steps.barrier()
    turned = UOp(Op.SUB, index_const(2 * items - 1), item)
    steps.put(third.param, item, steps.get(held, turned), less(index_const(1), item))
    return steps.body


def _own_array(k: Kernel) -> UOp:
    """Fill an array of registers, exchange some, and read it from the end and by data."""
    items, count = k.size(), 4
    out, chosen, a = k.memory(items * count), k.memory(items), k.memory(items * count)
    numbers, item = k.memory(items, dtypes.int32), special("gidx0", items)
    own, steps, r, s = register(8, count, k.dtype), Steps(), loop(0, count), loop(1, count)
    steps.do(own)
    with steps.each(r):
        steps.put(own, r, steps.get(a.param, UOp(Op.ADD, times(item, count), r)))
    x = steps.get(own, ZERO)
    steps.put(own, ZERO, UOp(Op.ADD, steps.get(own, index_const(2)), k.number(1)))
    steps.put(own, index_const(2), x)
    with steps.each(s):
        last = steps.get(own, UOp(Op.SUB, index_const(count - 1), s))
        steps.put(out.param, UOp(Op.ADD, times(item, count), s), last)
    place = modulo(cast(numbers.load(item), dtypes.index), count)
    steps.put(chosen.param, item, steps.get(own, place))
    return steps.body


def _in_strides(k: Kernel) -> UOp:
    """Let each item work on every fourth element, as long as there are any."""
    groups, items = 2, 2
    n = k.choices.pick((5, 7, 9, 10))
    out, mine, a = k.memory(n), k.memory(groups * items), k.memory(n)
    group, item, r = special("gidx0", groups), special("lidx0", items), loop(0, -(-n // 4))
    number = UOp(Op.ADD, times(group, items), item)
    steps, acc = Steps(), register(8, 1, k.dtype)
    steps.put(acc, ZERO, k.number(1))
    with steps.each(r):
        i = UOp(Op.ADD, times(r, groups * items), number)
        with steps.where(less(i, index_const(n))):
            x = steps.get(a.param, i)
            steps.put(acc, ZERO, UOp(Op.SUB, x, steps.get(acc, ZERO)))
            steps.put(out.param, i, UOp(Op.ADD, x, k.number(2)))
    steps.put(mine.param, number, steps.get(acc, ZERO))
    return steps.body


def _lanes(k: Kernel) -> UOp:
    """Move vectors of 4 through LOCAL memory, choose lanes by comparing, and add lanes up."""
    items = k.choices.between(3, 5)
    out, sums, a = k.memory(4 * items), k.memory(items), k.memory(4 * items)
    item = special("lidx0", items)
    held, steps = shared(9, 4 * items, k.dtype), Steps()
    turned = modulo(plus(item, 1), items)
    mine, others = (
        UOp(Op.STACK, *(plus(times(i, 4), c) for c in range(4))) for i in (item, turned)
    )
    four = steps.get(a.param, mine)
    steps.put(held, mine, UOp(Op.INDEX, four, dims((3, 1, 0, 2))))
    steps.barrier()
    near = steps.get(held, others)
    steps.put(out.param, mine, UOp(Op.WHERE, less(four, near), near, UOp(Op.SUB, four, near)))
    lanes = [UOp(Op.INDEX, near, index_const(c)) for c in range(4)]
    steps.put(sums.param, item, UOp(Op.SUB, total(*lanes[:3]), lanes[3]))
    return steps.body


def _led(k: Kernel) -> UOp:
    """Let the last item of each group write for all: what it has, and what the first one has."""
    groups, items = 3, k.choices.between(3, 5)
    out, a, n = k.memory(2 * groups), k.memory(groups * items), groups * items
    group, item = special("gidx0", groups), special("lidx0", items)
    here, steps, held = UOp(Op.ADD, times(group, items), item), Steps(), shared(9, 1, k.dtype)
    x = steps.get(a.param, UOp(Op.SUB, index_const(n - 1), here))
    steps.put(held, ZERO, x, UOp(Op.CMPNE, less(ZERO, item), const(True, dtypes.bool)))
    steps.barrier()
    with steps.where(less(index_const(items - 2), item)):
        steps.put(out.param, times(group, 2), x)
        steps.put(out.param, plus(times(group, 2), 1), UOp(Op.SUB, steps.get(held, ZERO), x))
    return steps.body


KERNELS: tuple[Callable[[Kernel], UOp], ...] = (
    *(_tiled_product, _two_buffers, _tree, _scanned, _with_edges, _counted, _added, _sorted),
    *(_turned_in_place, _used_again, _in_branches, _own_array, _in_strides, _lanes, _led),
)
of_items = partial(written, KERNELS)
