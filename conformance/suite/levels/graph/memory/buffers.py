"""Generate level graph, steps on memory: what models do with buffers that they keep.

Each program holds every step of its kind, each on buffers of its own. Steps that follow each other
are ordered by AFTER of the STORE before, often that of another buffer.

- updated: a buffer is computed from itself: from neighbours, folds, elements chosen by data, tests.
- trained: weights with momentum, means and counters, for one step or several.
- cached: rows are written at places that stand in the program or in the data, then all is read.
- exchanged: buffers and parts of them are swapped, turned, and copied on.
- written-twice: a STORE is followed by another one that leaves some of it, all of it, or nothing.
- read-again: the same is computed of a buffer before and after a STORE.
- lent: results are views of values with memory of their own, and values that others read too.
- stored-siblings: programs of a STORE or two, which differ in one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain, cycle, islice, product

import numpy as np

from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.steps import MEMORY
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.nodes import expand, fold, reshape, store
from uop.conformance.suite.values import Draw, draw_ordinary, draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import PadFill
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.graph import slot_of, slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const, param, variable

KINDS = (dtypes.int32, dtypes.uint8, dtypes.float32, dtypes.int64)
SIDES = (5, 6, 17, 4)
"""The sides of the matrices: with a middle and without, and one more than a vector."""
BATCHES = 2
"""What a run left in memory is not what the next one finds."""
ROWS, COLUMNS = 6, 3
"""The shape of a cache."""

Step = Callable[["Memory"], Iterator[UOp]]
"""Yields STOREs or results; a SINK or TUPLE of several that share buffers."""
Steps = tuple[Step, ...]


@dataclass(slots=True)
class Memory:
    """The buffers and inputs of one program, whose slots are in the order of their making."""

    choices: Choices
    dtype: DType
    side: int
    draws: list[Callable[[], Array]] = field(default_factory=list)
    """What makes the data of each slot, for one batch."""

    def _slot(self, draw: Callable[[], Array]) -> int:
        self.draws.append(draw)
        return len(self.draws) - 1

    def input(self, *shape: int, dtype: DType | None = None, draw: Draw = draw_ordinary) -> UOp:
        kind = dtype or self.dtype
        return param(self._slot(lambda: sample(draw, kind, shape, self.choices)), shape, kind)

    def numbers(self, low: int, high: int, count: int) -> UOp:
        """Return an input of int32 numbers, of which some are equal."""
        return self.input(count, dtype=dtypes.int32, draw=draw_within(low, high))

    def gate(self, *shape: int) -> UOp:
        return self.input(*shape, dtype=dtypes.bool)

    def places(self, below: int, count: int) -> UOp:
        """Return an input of different numbers below one."""
        numbers = partial(self.choices.shuffled, range(below))
        slot = self._slot(lambda: np.array(numbers()[:count], np.int32))
        return param(slot, (count,), dtypes.int32)

    def variable(self, low: int, high: int) -> UOp:
        """Return a variable whose value is data, another one in each batch."""
        values = iter(self.choices.shuffled(range(low, high + 1)))
        return variable(self._slot(lambda: np.asarray(next(values), np.int64)), low, high)

    def buffer(self, *shape: int) -> UOp:
        return self.another(self.input(*shape))

    def buffers(self, count: int, *shape: int) -> list[UOp]:
        return [self.buffer(*shape) for _ in range(count)]

    def another(self, u: UOp) -> UOp:
        """Return a buffer like an input or a buffer, with data of its own."""
        return nodes.buffer(self._slot(self.draws[slot_of(u)]), u.shape, u.dtype)

    def kept(self, value: UOp) -> UOp:
        """Store a value to another buffer."""
        return store(self.buffer(*value.shape), value)

    def program(self, root: UOp) -> Generated:
        used = sorted(slots_of(root))
        return program(root, *({k: self.draws[k]() for k in used} for _ in range(BATCHES)))


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(KINDS):
        args = (dtype, vocabulary)
        for name, steps in (*EFFECTS.items(), ("lent", RESULTS)):
            counts, needs = (1, 3, 12), NEEDS.get(name, MEMORY)
            end = Op.TUPLE if steps is RESULTS else Op.SINK
            yield group("graph", None, dtype, name, counts, _steps, end, steps, *args, needs=needs)
        few = SIBLINGS if dtype is KINDS[0] else 0
        counts = (few, few, SIBLINGS)
        yield group("graph", None, dtype, "stored-siblings", counts, _sibling, *args, needs=MEMORY)


def _steps(
    end: Op, steps: Steps, dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    side = SIDES[(KINDS.index(dtype) + index) % len(SIDES)]
    return steps_on(Memory(choices, dtype, side), end, steps, vocabulary)


def steps_on(memory: Memory, end: Op, steps: Steps, vocabulary: Vocabulary) -> Generated:
    """Make every step that the vocabulary has, each on buffers of its own."""
    made = [u for step in steps for u in step(memory) if vocabulary.speaks(u)]
    own = [u.substitute({b: memory.another(b) for b in _buffers(u)}) for u in made]
    return memory.program(UOp(end, *chain.from_iterable(map(_ends, own))))


def _sibling(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    memory = Memory(choices, dtype, 4)
    heard = [*filter(vocabulary.speaks, _siblings(memory))]
    return memory.program(UOp(Op.SINK, *_ends(heard[index % len(heard)])))


def _ends(made: UOp) -> tuple[UOp, ...]:
    return made.src if made.op in (Op.SINK, Op.TUPLE) else (made,)


# What steps are made of: ops, views, folds, and STOREs in an order.

plus, minus, times, larger = (partial(UOp, op) for op in (Op.ADD, Op.SUB, Op.MUL, Op.MAX))
less, where, indexed = (partial(UOp, op) for op in (Op.CMPLT, Op.WHERE, Op.INDEX))
contiguous, after = (partial(UOp, op) for op in (Op.CONTIGUOUS, Op.AFTER))
_turned = partial(nodes.permute, order=(1, 0))
_upside_down, _mirrored = (partial(nodes.flip, flags=f) for f in ((True, False), (False, True)))
_bytes = partial(nodes.bitcast, dtype=dtypes.uint8)


def _buffers(u: UOp) -> list[UOp]:
    return [b for b in u.toposort() if b.op is Op.BUFFER]


def in_turn(*stores: UOp) -> UOp:
    """Put each STORE after the one before, with all that it reads and writes; return the last."""
    last, *others = stores
    for each in others:
        last = each.substitute({b: after(b, last) for b in _buffers(each)})
    return last


def _at_once(places: Sequence[UOp], *values: UOp) -> UOp:
    """Store values that are all computed before."""
    kept = contiguous(UOp(Op.STACK, *values))
    return UOp(Op.SINK, *(store(place, element(kept, k)) for k, place in enumerate(places)))


def element(u: UOp, *places: int) -> UOp:
    return indexed(u, *map(index_const, places))


def scaled(u: UOp, number: int) -> UOp:
    return times(u, const(number, u.dtype))


def one_more(u: UOp) -> UOp:
    return plus(u, const(1, u.dtype))


def _sum(*terms: UOp) -> UOp:
    return reduce(plus, terms)


def numbered(n: int, *shape: int) -> UOp:
    return reshape(UOp(Op.STACK, *(const(k, dtypes.int32) for k in range(n))), shape)


def part_of(u: UOp, start: int, count: int, axis: int = 0) -> UOp:
    offset = [start * (k == axis) for k in range(len(u.shape))]
    return nodes.shrink(u, offset, (count if k == axis else n for k, n in enumerate(u.shape)))


def _shifted(u: UOp, axis: int, is_forward: bool) -> UOp:
    """Return the neighbours of elements along an axis; zeros enter."""
    sizes = [n + (k == axis) for k, n in enumerate(u.shape)]
    before = [int(is_forward and k == axis) for k in range(len(u.shape))]
    wide = nodes.pad(u, before, sizes, PadFill.ZERO)
    return part_of(wide, int(not is_forward), u.shape[axis], axis)


def _folded(op: Op, u: UOp, axis: int) -> UOp:
    return expand(fold(op, u, (axis,)), u.shape)


def _from_all(m: Memory) -> Iterator[UOp]:
    """Compute a matrix from neighbours, folds, products, rows chosen by data, and a test."""
    own, n = m.buffer(m.side, m.side), m.side
    turned, places = _turned(own), m.numbers(0, n - 1, n)
    around = [_shifted(own, axis, f) for axis, f in product(range(2), (False, True))]
    products = [times(reshape(own, (n, n, 1)), reshape(u, (1, n, n))) for u in (own, turned)]
    is_before = UOp(Op.CMPLE, numbered(n, 1, n, 1), numbered(n, n, 1, 1))
    so_far = where(expand(is_before, (n, n, n)), nodes.copies(own, n), const(0, m.dtype))
    values = (
        *(*(plus(own, u) for u in around), _sum(own, *around)),
        *(minus(own, _folded(Op.MAX, own, axis)) for axis in range(2)),
        _sum(own, *(_folded(Op.ADD, own, axis) for axis in range(2))),
        *(reshape(fold(Op.ADD, u, (1,)), (n, n)) for u in (*products, so_far)),
        *(turned, plus(own, turned), where(less(own, turned), turned, own)),
        *(indexed(own, places), _turned(indexed(turned, places))),
    )
    yield from (store(own, value) for value in values)


def _to_parts(m: Memory) -> Iterator[UOp]:
    """Store folds into a part, windows of a row, the larger of two parts, and moved bytes."""
    own, row, n = m.buffer(m.side, m.side), m.buffer(m.side), m.side
    total = expand(fold(Op.ADD, own, (0, 1)), (1, n))
    for axis in range(2):
        yield store(part_of(own, n - 1, 1, axis), fold(Op.ADD, own, (axis,)))
        yield store(part_of(own, axis, 1), total)
    for start, op in product(range(2), (plus, larger)):
        parts = [part_of(row, k, n - 1) for k in (start, 1 - start)]
        yield store(parts[0], op(*parts))
    halves = part_of(row, 0, n // 2), part_of(row, n - n // 2, n // 2)
    yield _at_once(halves, *(where(less(*halves), *two) for two in (halves, halves[::-1])))
    moved, size = _bytes(row), m.dtype.itemsize
    yield store(moved, nodes.flip_all(moved))
    yield store(_bytes(part_of(row, 1, 2)), _bytes(part_of(row, 2, 2)))
    yield store(*(part_of(moved, k, 2 * size) for k in (size + 1, 1)))


def _to_places(m: Memory) -> Iterator[UOp]:
    """Write rows and elements at places in the data, and where a gate is open alone."""
    own, row, n = m.buffer(m.side, m.side), m.buffer(m.side), m.side
    yield store(indexed(own, m.places(n, n)), own)
    place = indexed(own, m.places(n, n - 1))
    yield store(place, plus(place, m.input(n - 1, n)))
    yield store(indexed(row, m.places(n, 3)), indexed(row, m.numbers(0, n - 1, 3)))
    at, more = m.places(n + 3, n), m.input(n, n)
    yield store(indexed(row, at), m.input(n), less(at, const(n, dtypes.int32)))
    yield from (store(own, more, less(*two)) for two in ((own, more), (nodes.flip_all(own), own)))


def _weights(m: Memory) -> Iterator[UOp]:
    """Move weights by a velocity: the new one, the old one, or both; with decay; for two steps."""
    weight, velocity = m.buffers(2, m.side)
    kept, move = scaled(velocity, 3), store(weight, minus(weight, velocity))
    ways = []
    for slope in (m.input(m.side), m.input(m.side)):
        gain, both = store(velocity, plus(kept, slope)), _sum(slope, kept, scaled(weight, 2))
        by_weight = store(velocity, plus(kept, times(slope, weight)))
        last = store(weight, minus(weight, both))
        ways.append(((gain, move), (move, gain), (by_weight, move), (gain, last)))
    for one, two in zip(*ways, strict=True):
        yield from (in_turn(*one), in_turn(*one, *two))


def _moments(m: Memory) -> Iterator[UOp]:
    """Keep two moments, of which one is a largest value, and count the steps; subtract a sum that
    is kept, before and after it takes in the rows, and sum up twice.
    """
    n, (weight, first, second), count, stores = m.side, m.buffers(3, m.side), m.buffer(1), []
    step = minus(weight, times(first, expand(count, (n,))))
    for slope in (m.input(n), m.input(n)):
        stores += [store(count, one_more(count)), store(first, plus(scaled(first, 3), slope))]
        stores += [store(second, larger(second, times(slope, slope)))]
        stores += [store(weight, larger(step, second))]
    yield in_turn(*stores)
    kept, rows = m.buffer(1, n), m.input(3, n)
    out = m.kept(minus(rows, expand(kept, rows.shape)))
    more = store(kept, plus(kept, fold(Op.ADD, rows, (0,))))
    yield from (in_turn(out, more), in_turn(more, out))
    starts = [nodes.copies(const(start, m.dtype), n) for start in (0, 5)]
    sums = [[start, *(plus(weight, m.input(n)) for _ in range(3))] for start in starts]
    yield in_turn(*(store(weight, value) for value in chain(*sums)))


def _appended(m: Memory) -> Iterator[UOp]:
    """Write rows at places in the program, and fold all rows, or those so far, after each; write
    rows at the number in a buffer, which goes on by one.
    """
    cache, stores = m.buffer(ROWS, COLUMNS), []
    for k in range(1, 5):
        folds = fold(Op.ADD, cache, (0,)), fold(Op.MAX, part_of(cache, 0, k + 1), (0,))
        stores += [store(part_of(cache, k, 1), m.input(1, COLUMNS)), *map(m.kept, folds)]
    yield from (in_turn(*stores[:6]), in_turn(*stores[6:]))
    number = m.another(m.numbers(0, ROWS - 3, 1))
    rows = [store(indexed(cache, number), m.input(1, COLUMNS)) for _ in range(3)]
    yield in_turn(*chain(*((row, store(number, one_more(number))) for row in rows)))


def _placed(m: Memory) -> Iterator[UOp]:
    """Write rows at places in the data, read those and others, and mask rows by their number;
    write a row at a variable, read it and the one before, and write rows up to a variable.
    """
    cache, at, row = m.buffer(ROWS, COLUMNS), m.places(ROWS, 2), m.input(1, COLUMNS)
    there, pages = indexed(cache, at), indexed(cache, m.numbers(0, ROWS - 1, 4))
    yield in_turn(m.kept(there), store(there, m.input(2, COLUMNS)), m.kept(there), m.kept(pages))
    at, numbers = m.numbers(1, ROWS - 2, 1), numbered(ROWS, ROWS, 1)
    here, is_past = (UOp(op, numbers, at) for op in (Op.CMPEQ, Op.CMPLE))
    written = where(expand(here, cache.shape), expand(row, cache.shape), cache)
    past = where(expand(is_past, cache.shape), cache, const(0, m.dtype))
    yield in_turn(store(cache, written), m.kept(fold(Op.ADD, past, (0,))))
    zero, one, columns = map(index_const, (0, 1, COLUMNS))

    def rows(start: UOp, count: UOp) -> UOp:
        start, sizes = UOp(Op.STACK, start, zero), UOp(Op.STACK, count, columns)
        return UOp(Op.SHRINK, cache, start, sizes)

    for low in (1, 2):
        place = m.variable(low, ROWS - low)
        here, before = rows(place, one), rows(minus(place, one), one)
        part = rows(zero, UOp(Op.BIND, m.variable(1, ROWS), index_const(low + 2)))
        read = m.kept(minus(here, before))
        yield in_turn(store(before, row), read, store(part, scaled(part, 3)))


def _ring(m: Memory) -> Iterator[UOp]:
    """Write rows across the end of a ring, read them in order, and drop the oldest rows."""
    ring, out = m.buffers(2, ROWS, COLUMNS)
    for end in (1, 2):
        rows, start = m.input(3, COLUMNS), ROWS - end
        write = (ring, start, rows, 0, end), (ring, 0, rows, end, 3 - end)
        read = (out, 0, ring, start, end), (out, end, ring, 0, start)
        moves = (store(part_of(a, i, n), part_of(b, k, n)) for a, i, b, k, n in (*write, *read))
        yield in_turn(*moves)
        drop = store(part_of(ring, 0, start), part_of(ring, end, start))
        new = [store(part_of(ring, start, end), m.input(end, COLUMNS)) for _ in range(2)]
        yield in_turn(drop, new[0], drop, new[1], m.kept(fold(Op.ADD, ring, (0,))))


def _swapped(m: Memory) -> Iterator[UOp]:
    """Swap buffers and parts of one: by a third, a value, and XOR; store a sum and a difference."""
    pair, row, n = m.buffers(2, m.side, m.side), m.buffers(2, m.side), m.side
    one, two = pair
    for u, v in (pair, (part_of(one, 0, 1), part_of(one, n - 2, 1))):
        other = m.buffer(*u.shape)
        yield in_turn(store(other, u), store(u, v), store(v, other))
    yield from (_at_once(pair, two, one), _at_once(pair, _turned(two), _turned(one)))
    own = m.buffer(3 * n)
    first, second, third = parts = [part_of(own, k * n, n) for k in range(3)]
    yield _at_once(parts, second, third, first)
    yield _at_once(row, plus(*row), minus(*row))
    if m.dtype.is_int:
        mixed = [store(u, UOp(Op.XOR, *row)) for u in row]
        yield in_turn(*mixed, mixed[0])


def _handed_over(m: Memory) -> Iterator[UOp]:
    """Compute two buffers by turns; copy a buffer and the copy, and change one of the three."""
    three = one, two, last = m.buffers(3, m.side)
    turns = [store(u, plus(v, _shifted(v, 0, True))) for u, v in ((two, one), (one, two))]
    yield from (in_turn(*islice(cycle(turns), count)) for count in (2, 3, 4))
    copies = store(two, one), store(last, two)
    flipped = store(two, nodes.flip_all(one)), store(last, nodes.flip_all(two))
    for u, pair in product(three, (copies, flipped)):
        yield in_turn(*pair, store(u, scaled(u, 3)), m.kept(_sum(*three)))


def _over_each_other(m: Memory) -> Iterator[UOp]:
    """Write whole buffers, parts, and where gates are open, one over the other; a copy in between
    and after it, or none. Write halves, every second element, parts that overlap, and values with
    absent elements, which leave what is there.
    """
    own, n, ways = m.buffer(m.side), m.side, []
    for _ in range(2):
        gated, part = (
            store(own, m.input(n), m.gate(n)),
            store(part_of(own, 1, n - 2), m.input(n - 2)),
        )
        ways.append((store(own, m.input(n)), gated, part, store(own, scaled(own, 3))))
    between, end = m.kept(own), m.kept(plus(own, own))
    for (i, first), (k, second) in product(*map(enumerate, ways)):
        reads = [between] * ((i + k) % 2), [end] * (i % 2 or k == 2)
        yield in_turn(first, *reads[0], second, *reads[1])
    for row, axis in ((m.buffer(n), 0), (m.buffer(n, n), 0), (m.buffer(n, n), 1)):
        whole, part = m.input(*row.shape), part_of(m.input(*row.shape), 0, n - 2, axis)
        edged = nodes.pad(part, [int(k == axis) for k in range(len(row.shape))], row.shape)
        yield from (in_turn(store(row, whole), store(row, edged)), store(row, edged))
    own, row, more = m.buffer(2 * n), m.input(n), m.input(n)
    for a, b in ((0, n), (n, 0), (n // 2, 0), (0, n // 2)):
        last = store(part_of(own, b, n), row if a == n else more)
        yield in_turn(store(part_of(own, a, n), row), last)
    pairs = reshape(own, (n, 2))
    lines = [store(part_of(pairs, k, 1, 1), m.input(n, 1)) for k in range(2)]
    yield from (in_turn(*lines), in_turn(*reversed(lines)))


def _of_few(m: Memory) -> Iterator[UOp]:
    """Store what repeats or folds few elements, and single ones; write values and bits by turns."""
    own, n = m.buffer(m.side, m.side), m.side
    yield from (store(own, expand(m.input(*few), (n, n))) for few in ((1, n), (n, 1)))
    yield store(part_of(own, 2, 1, 1), fold(Op.ADD, m.input(n, n), (1,)))
    yield store(element(own, 1, 2), m.input())
    values = [reshape(u, (1,)) for u in (const(7, m.dtype), m.input())]
    yield in_turn(*(store(part_of(element(own, k + 1), k, 1), u) for k, u in enumerate(values)))
    yield store(_turned(nodes.shrink(own, (1, 0), (3, 3))), m.input(3, 3), m.gate(3, 3))
    bits = partial(nodes.bitcast, dtype=DTYPES[f"uint{m.dtype.bits}"])
    (row, out), raw, size = m.buffers(2, n), m.input(n), m.dtype.itemsize
    written = store(_bytes(part_of(row, 1, 2)), _bytes(part_of(raw, 2, 2)))
    yield in_turn(written, store(out, plus(row, raw)))
    seen = UOp(Op.XOR, bits(row), const(1, bits(row).dtype))
    yield in_turn(store(row, one_more(raw)), store(bits(out), seen))
    written = store(*(part_of(_bytes(u), k, 2 * size) for u, k in ((row, size), (raw, 0))))
    yield in_turn(written, store(part_of(row, 2, 2), part_of(raw, 1, 2)))


def _around(m: Memory) -> Iterator[UOp]:
    """Compute the same of a buffer before and after a STORE to a part, or where a gate is open;
    write through one view and read through another, with the order on the view.
    """
    own, new, n = m.buffer(m.side, m.side), m.input(m.side, m.side), m.side
    values = fold(Op.ADD, own, (0, 1)), element(own, 1), scaled(own, 3), _turned(own)
    changes = store(part_of(own, 0, 2), m.input(2, n)), store(own, new, m.gate(n, n))
    for value, change in product((*values, contiguous(nodes.flip_all(own))), changes):
        yield in_turn(m.kept(value), change, m.kept(value))
    views = own, _turned(own), _upside_down(own), _mirrored(own)
    yield from (m.kept(after(u, store(v, new))) for u, v in product(views, views))


def _awaited(m: Memory) -> Iterator[UOp]:
    """Wait for several STOREs at once, each of which counts: by operands, and by a GROUP; store
    several values to buffers of one shape, and read each in another order.
    """
    four = own, *three = m.buffers(4, m.side)
    effects = [store(u, m.input(m.side)) for u in four]
    first = UOp(Op.GROUP, *effects[1:3])
    for awaited in (effects[1:], [UOp(Op.GROUP, *effects[1:])], [effects[3], first]):
        yield m.kept(_sum(*(after(u, *awaited) for u in three)))
    readers = [store(u, plus(own, m.input(m.side))) for u in three]
    yield store(after(own, *readers), m.input(m.side))
    read = [m.kept(scaled(four[k], 2 + k)) for k in m.choices.shuffled(range(4))]
    yield in_turn(*effects, *read)


def _copied(m: Memory) -> Iterator[UOp]:
    """Update a buffer by a copy of it; store the copy elsewhere, at any time and after that."""
    x = m.input(m.side, m.side)
    for op in (Op.LOAD, Op.CONTIGUOUS):
        own, other, late = m.buffers(3, m.side, m.side)
        old = UOp(op, own)
        update = store(own, plus(old, x))
        yield UOp(Op.SINK, update, store(other, old), store(after(late, update), old))


def _computed_before(m: Memory) -> Iterator[UOp]:
    """Store what was computed of a buffer elsewhere too, after an update by it; update a row by
    itself turned around.
    """
    for op in (plus, minus, times):
        (own, other), x = m.buffers(2, m.side), m.input(m.side)
        value = op(own, x)
        for kept, new in ((scaled(value, 2), value), (value, scaled(value, 2))):
            update = store(own, kept)
            yield UOp(Op.SINK, update, store(after(other, update), new))
        row = m.buffer(m.side)
        yield store(row, op(row, nodes.flip_all(row)))


def _filled_later(m: Memory) -> Iterator[UOp]:
    """Fill a part after a STORE to the whole, or the whole before a STORE to a part."""
    for k in range(3):
        own, few = m.buffer(m.side), m.side - 2 - k % 2
        number = expand(reshape(const(k, m.dtype), (1,)), (few,))
        yield store(part_of(after(own, store(own, m.input(m.side))), 1, few), number)
        every = expand(reshape(const(k + 3, m.dtype), (1,)), (m.side,))
        row = m.buffer(m.side)
        yield store(part_of(after(row, store(row, every)), 1, few), m.input(few))


def _views(m: Memory) -> Iterator[UOp]:
    """Return views of one value with memory of its own, the value twice, and folds of it; views of
    turned and cut values that are made contiguous, also of inputs; views of an operand of a sum.
    """
    n, x = m.side, m.input(m.side, m.side)
    kept = contiguous(plus(x, m.input(n, n)))
    yield from (nodes.shrink(kept, (1, 2), (n - 1, n - 2)), _upside_down(kept))
    yield from (kept, _turned(kept), element(kept, n - 1), expand(part_of(kept, 1, 1), (n, n)))
    yield from (reshape(u, (n * n,)) for u in (kept, _turned(kept)))
    yield nodes.copies(part_of(kept, 1, 1, 1), 3)
    yield nodes.pad(part_of(kept, 1, 2), (1, 0), (4, n), PadFill.ZERO)
    yield from (_bytes(kept), fold(Op.ADD, kept, (0,)), scaled(kept, 3), _turned(x), x)
    for op, view in product(
        (plus, minus), (_turned, _upside_down, partial(part_of, start=1, count=2))
    ):
        u, v = m.input(n, n), m.input(n, n)
        yield from (op(u, v), view(u)) if op is plus else (view(v), op(u, v))
    for kept in map(contiguous, (_turned(x), _upside_down(x), part_of(x, 1, n - 1))):
        row = reshape(kept, (kept.shape[0] * n,))
        yield from (row, part_of(row, n - 1, n), _upside_down(kept))
        yield _turned(contiguous(_turned(kept)))


def _handed_on(m: Memory) -> Iterator[UOp]:
    """Return values of a chain, the last one first, each of which reads the two before; values of
    few and of many bytes, in odd numbers, which all live at once.
    """
    values = [m.input(m.side), m.input(m.side)]
    for op in islice(cycle((plus, larger, minus)), 7):
        values.append(contiguous(op(nodes.flip_all(values[-1]), values[-2])))
    yield from (*reversed(values), _sum(values[2], values[5], values[-1]))
    kinds = (dtypes.uint8, m.dtype, dtypes.int16, m.dtype, dtypes.int64) * 2
    casts = [nodes.cast(m.numbers(0, 99, 2 * k + 3), kind) for k, kind in enumerate(kinds)]
    kept = [*map(contiguous, casts)]
    yield from (*map(one_more, kept), *map(nodes.flip_all, kept))


def _before_and_after(m: Memory) -> Iterator[UOp]:
    """Return copies of buffers, views of those, and what the buffers hold after a STORE."""
    own, more = m.buffer(m.side, m.side), m.input(m.side, m.side)
    copies = map(contiguous, (own, _turned(own), nodes.flip_all(own)))
    for kept in (*copies, UOp(Op.LOAD, own)):
        later = nodes.after(own, plus(kept, more))
        yield nodes.outputs(kept, part_of(kept, 1, 2), contiguous(later), minus(later, kept))


def _of_one_input(m: Memory) -> Iterator[UOp]:
    """Combine what is computed of an input or a copy and a view of it, which nothing else reads."""
    for view in (_turned, _upside_down, nodes.flip_all):
        x, y, z = (m.input(m.side, m.side) for _ in range(3))
        yield from (minus(times(x, x), view(x)), plus(view(y), one_more(y)))
        copy = contiguous(plus(z, z))
        yield minus(view(copy), contiguous(times(copy, z)))


def _siblings(m: Memory) -> Iterator[UOp]:
    """Yield the effects of each program, of which all have the same buffers and inputs."""
    (one, two), x, gate = m.buffers(2, 4, 4), m.input(4, 4), m.gate(4, 4)
    for offset in ((0, 0), (0, 1), (1, 0), (2, 1), (2, 2)):
        part = nodes.shrink(one, offset, (2, 2))
        yield store(part, nodes.shrink(x, (0, 0), (2, 2)))
        yield store(one, nodes.pad(part, (1, 1), (4, 4)))
    for view in (_upside_down, _mirrored, nodes.flip_all):
        yield from (store(view(one), x), store(one, view(one)))
    for u, v in ((one, two), (two, one)):
        copy, later = store(u, v), nodes.after(u, v)
        yield from (store(_turned(u), x), copy, store(u, v, gate), store(later, plus(later, x)))
        yield from (store(after(v, copy), x), store(v, nodes.after(u, x)))
        yield from (store(u, plus(*terms)) for terms in ((x, u), (x, v), (u, u)))
    for number in (2, 3, 5):
        row = expand(reshape(const(number, m.dtype), (1, 1)), (4, 4))
        yield from (store(one, row), store(one, row, gate), store(one, scaled(one, number)))
    for axis, op in product(range(2), (Op.ADD, Op.MAX)):
        yield store(one, _folded(op, one, axis))
        yield store(part_of(one, 1, 1, axis), fold(op, x, (axis,)))
    for values in ((x, x), (x, _turned(x)), (nodes.flip_all(x), x)):
        yield UOp(Op.SINK, *map(store, (one, two), values))
    closed, line = UOp(Op.CMPNE, gate, const(True, dtypes.bool)), m.input(4)
    whole, part = store(one, x), store(nodes.shrink(one, (1, 1), (2, 2)), m.input(2, 2))
    yield from (store(one, x, closed), in_turn(whole, part), in_turn(part, whole))
    yield from (store(one, expand(reshape(line, s), (4, 4))) for s in ((1, 4), (4, 1)))
    yield from (store(one, _sum(one, *[x] * count)) for count in (2, 3, 4))


SIBLINGS = len([*_siblings(Memory(CountedChoices(0, ""), KINDS[0], 4))])

EFFECTS: dict[str, Steps] = {
    "updated": (_from_all, _to_parts, _to_places),
    "trained": (_weights, _moments),
    "cached": (_appended, _placed, _ring),
    "exchanged": (_swapped, _handed_over),
    "written-twice": (_over_each_other, _of_few, _filled_later),
    "read-again": (_around, _awaited, _copied, _computed_before),
}
"""The steps of each kind of program."""
RESULTS: Steps = (_views, _handed_on, _before_and_after, _of_one_input)
NEEDS = {
    "updated": (*MEMORY, Op.ADD, Op.PAD, Op.SHRINK),
    "trained": (*MEMORY, Op.ADD, Op.SUB, Op.MUL),
    "cached": (*MEMORY, Op.SHRINK, Op.REDUCE),
    "lent": (Op.CONTIGUOUS, Op.ADD),
}
"""The ops without which no step of a kind is left."""
