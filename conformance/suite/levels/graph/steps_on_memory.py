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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.values import draw_ordinary, draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import PadFill
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, index_const, param, variable

KINDS = (dtypes.int32, dtypes.uint8, dtypes.float32, dtypes.int64)
SIDES = (5, 6, 17, 4)
"""The sides of the matrices: with a middle and without, and one more than a vector."""
BATCHES = 2
"""What a run left in memory is not what the next one finds."""
ROWS, COLUMNS = 6, 3
"""The shape of a cache."""
MEMORY = (Op.SINK, Op.STORE, Op.AFTER, Op.BUFFER)

Step = Callable[["Memory"], Iterator[UOp]]


@dataclass(slots=True)
class Memory:
    """The buffers and inputs of one program, whose slots are in the order of their making."""

    choices: Choices
    dtype: DType
    side: int
    data: list[dict[int, Array]] = field(default_factory=lambda: [{} for _ in range(BATCHES)])

    def _slot(self, shape: Shape, dtype: DType) -> int:
        slot = len(self.data[0])
        for batch in self.data:
            batch[slot] = sample(draw_ordinary, dtype, shape, self.choices)
        return slot

    def buffer(self, *shape: int) -> UOp:
        return nodes.buffer(self._slot(shape, self.dtype), shape, self.dtype)

    def input(self, *shape: int) -> UOp:
        return param(self._slot(shape, self.dtype), shape, self.dtype)

    def gate(self, *shape: int) -> UOp:
        return param(self._slot(shape, dtypes.bool), shape, dtypes.bool)

    def matrix(self) -> UOp:
        return self.buffer(self.side, self.side)

    def row(self) -> UOp:
        return self.buffer(self.side)

    def const(self, value: int) -> UOp:
        return const(value, self.dtype)

    def numbers(self, low: int, high: int, count: int) -> UOp:
        """Return an input of int32 numbers, of which some are equal."""
        slot = len(self.data[0])
        for batch in self.data:
            batch[slot] = sample(draw_within(low, high), dtypes.int32, count, self.choices)
        return param(slot, (count,), dtypes.int32)

    def counter(self, high: int) -> UOp:
        """Return a buffer of one int32 number from 0 on."""
        slot = len(self.data[0])
        self.numbers(0, high, 1)
        return nodes.buffer(slot, (1,), dtypes.int32)

    def variable(self, low: int, high: int) -> UOp:
        """Return a variable whose value is data, another one in each batch."""
        slot = len(self.data[0])
        values = self.choices.shuffled(range(low, high + 1))
        for batch, value in zip(self.data, values, strict=False):
            batch[slot] = np.asarray(value, np.int64)
        return variable(slot, low, high)

    def places(self, below: int, count: int) -> UOp:
        """Return an input of different numbers below one."""
        u = self.numbers(0, 0, count)
        for batch in self.data:
            order = self.choices.shuffled(range(below))[:count]
            batch[len(batch) - 1] = np.array(order, np.int32)
        return u


@dataclass(slots=True)
class Line:
    """STOREs, each after the one before."""

    last: UOp | None = None

    def now(self, u: UOp) -> UOp:
        return u if self.last is None else UOp(Op.AFTER, u, self.last)

    def write(self, place: UOp, value: UOp, *gate: UOp) -> None:
        """Store to a place that `now` gave, or to a view of it."""
        self.last = nodes.store(place, value, *gate)

    def end(self) -> UOp:
        assert self.last is not None
        return self.last


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(KINDS):
        args = (dtype, vocabulary)
        for name, steps in EFFECTS.items():
            counts, needs = (1, 3, 12), (*MEMORY, *NEEDS.get(name, ()))
            yield group("graph", None, dtype, name, counts, _sunk, steps, *args, needs=needs)
        needs = (Op.CONTIGUOUS, Op.ADD)
        yield group("graph", None, dtype, "lent", (1, 3, 12), _returned, *args, needs=needs)
        few = SIBLINGS if dtype is KINDS[0] else 0
        counts = (few, few, SIBLINGS)
        yield group("graph", None, dtype, "stored-siblings", counts, _sibling, *args, needs=MEMORY)


def _sunk(
    steps: tuple[Step, ...], dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    memory = _memory(dtype, choices, index)
    effects = [effect for step in steps for effect in step(memory)]
    return program(UOp(Op.SINK, *filter(vocabulary.speaks, effects)), *memory.data)


def _returned(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    memory = _memory(dtype, choices, index)
    results = [result for step in RESULTS for result in step(memory)]
    return program(nodes.outputs(*filter(vocabulary.speaks, results)), *memory.data)


def _sibling(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    memory = Memory(choices, dtype, 4)
    heard = [each for each in _siblings(memory) if all(map(vocabulary.speaks, each))]
    return program(UOp(Op.SINK, *heard[index % len(heard)]), *memory.data)


def _memory(dtype: DType, choices: Choices, index: int) -> Memory:
    return Memory(choices, dtype, SIDES[(KINDS.index(dtype) + index) % len(SIDES)])


# Views, folds and products of a matrix or a row.


def _part(u: UOp, start: int, count: int, axis: int = 0) -> UOp:
    offset = [start * (k == axis) for k in range(len(u.shape))]
    return nodes.shrink(u, offset, (count if k == axis else n for k, n in enumerate(u.shape)))


def _shifted(u: UOp, axis: int, is_forward: bool, by: int = 1) -> UOp:
    """Return the neighbours of elements along an axis; zeros enter."""
    sizes = [n + by * (k == axis) for k, n in enumerate(u.shape)]
    before = [by * is_forward * (k == axis) for k in range(len(u.shape))]
    wide = nodes.pad(u, before, sizes, PadFill.ZERO)
    return _part(wide, 0 if is_forward else by, u.shape[axis], axis)


def _turned(u: UOp) -> UOp:
    return nodes.permute(u, (1, 0))


def _folded(op: Op, u: UOp, axis: int) -> UOp:
    return nodes.expand(nodes.fold(op, u, (axis,)), u.shape)


def _product(a: UOp, b: UOp) -> UOp:
    n = a.shape[0]
    factors = nodes.reshape(a, (n, n, 1)), nodes.reshape(b, (1, n, n))
    return nodes.reshape(nodes.fold(Op.ADD, UOp(Op.MUL, *factors), (1,)), (n, n))


def _numbered(n: int) -> UOp:
    return UOp(Op.STACK, *(const(k, dtypes.int32) for k in range(n)))


def _added(*terms: UOp) -> UOp:
    first, *others = terms
    for other in others:
        first = UOp(Op.ADD, first, other)
    return first


def _bytes(u: UOp) -> UOp:
    return nodes.bitcast(u, dtypes.uint8)


# updated


def _from_neighbours(m: Memory) -> Iterator[UOp]:
    """Add neighbours along each axis, all four, and by windows of a row."""
    for axis, is_forward in product(range(2), (False, True)):
        own = m.matrix()
        yield nodes.store(own, UOp(Op.ADD, own, _shifted(own, axis, is_forward)))
    own = m.matrix()
    around = [_shifted(own, axis, f) for axis, f in product(range(2), (False, True))]
    yield nodes.store(own, _added(*around))
    for is_forward in (True, False):
        for op in (Op.ADD, Op.MAX):
            own = m.row()
            parts = [_part(own, k, m.side - 1) for k in (int(is_forward), int(not is_forward))]
            yield nodes.store(parts[0], UOp(op, *parts))


def _from_folds(m: Memory) -> Iterator[UOp]:
    """Subtract the largest of a row, add sums along both axes, and store folds into a part."""
    for axis in range(2):
        own = m.matrix()
        yield nodes.store(own, UOp(Op.SUB, own, _folded(Op.MAX, own, axis)))
        own = m.matrix()
        yield nodes.store(_part(own, m.side - 1, 1, axis), nodes.fold(Op.ADD, own, (axis,)))
        own = m.matrix()
        total = nodes.expand(nodes.fold(Op.ADD, own, (0, 1)), (1, m.side))
        yield nodes.store(_part(own, axis, 1), total)
    own = m.matrix()
    yield nodes.store(own, _added(own, *(_folded(Op.ADD, own, axis) for axis in range(2))))


def _from_products(m: Memory) -> Iterator[UOp]:
    """Multiply a matrix with itself and its transpose, and sum up its rows so far."""
    for turn in (False, True):
        own = m.matrix()
        yield nodes.store(own, _product(own, _turned(own) if turn else own))
        own = m.matrix()
        yield nodes.store(own, UOp(Op.ADD, own, _turned(own)) if turn else _turned(own))
    own, i = m.matrix(), _numbered(m.side)
    n = m.side
    is_before = UOp(Op.CMPLE, nodes.reshape(i, (1, n, 1)), nodes.reshape(i, (n, 1, 1)))
    rows = nodes.expand(nodes.reshape(own, (1, n, n)), (n, n, n))
    masked = UOp(Op.WHERE, nodes.expand(is_before, (n, n, n)), rows, m.const(0))
    yield nodes.store(own, nodes.reshape(nodes.fold(Op.ADD, masked, (1,)), (n, n)))


def _from_places(m: Memory) -> Iterator[UOp]:
    """Read rows and columns by data, write them by data, both, and where a gate is open alone."""
    n = m.side
    own = m.matrix()
    yield nodes.store(own, UOp(Op.INDEX, own, m.numbers(0, n - 1, n)))
    own = m.matrix()
    yield nodes.store(own, _turned(UOp(Op.INDEX, _turned(own), m.numbers(0, n - 1, n))))
    own = m.matrix()
    yield nodes.store(UOp(Op.INDEX, own, m.places(n, n)), own)
    own = m.matrix()
    place = UOp(Op.INDEX, own, m.places(n, n - 1))
    yield nodes.store(place, UOp(Op.ADD, place, m.input(n - 1, n)))
    own = m.row()
    place = UOp(Op.INDEX, own, m.places(n, 3))
    yield nodes.store(place, UOp(Op.INDEX, own, m.numbers(0, n - 1, 3)))
    own, at = m.row(), m.places(n + 3, n)
    fits = UOp(Op.CMPLT, at, const(n, dtypes.int32))
    yield nodes.store(UOp(Op.INDEX, own, at), m.input(n), fits)


def _from_tests(m: Memory) -> Iterator[UOp]:
    """Choose by a test of the buffer itself: by a gate, by WHERE, and the larger of two parts."""
    own, more = m.matrix(), m.input(m.side, m.side)
    yield nodes.store(own, more, UOp(Op.CMPLT, own, more))
    own, more = m.matrix(), m.input(m.side, m.side)
    yield nodes.store(own, more, UOp(Op.CMPLT, nodes.flip_all(own), own))
    own = m.matrix()
    turned = _turned(own)
    yield nodes.store(own, UOp(Op.WHERE, UOp(Op.CMPLT, own, turned), turned, own))
    own, half = m.row(), m.side // 2
    parts = _part(own, 0, half), _part(own, m.side - half, half)
    is_less = UOp(Op.CMPLT, *parts)
    ends = [UOp(Op.WHERE, is_less, *parts), UOp(Op.WHERE, is_less, *reversed(parts))]
    found = UOp(Op.CONTIGUOUS, UOp(Op.STACK, *ends))
    yield from (
        nodes.store(place, UOp(Op.INDEX, found, index_const(k))) for k, place in enumerate(parts)
    )


def _from_bytes(m: Memory) -> Iterator[UOp]:
    """Move the bytes of a buffer, and those of a part of it."""
    own = m.row()
    yield nodes.store(_bytes(own), nodes.flip_all(_bytes(own)))
    own = m.row()
    yield nodes.store(_bytes(_part(own, 1, 2)), _bytes(_part(own, 2, 2)))
    own, size = m.row(), m.dtype.itemsize
    yield nodes.store(*(_part(_bytes(own), k, 2 * size) for k in (size + 1, 1)))


# trained


def _weights(m: Memory) -> Iterator[UOp]:
    """Move weights by a velocity: the new one, the old one, or both; with decay; for two steps."""
    keep, rate = m.const(3), m.const(2)
    for kind, count in product(range(4), (1, 2)):
        line, weight, velocity = Line(), m.row(), m.row()
        for _ in range(count):
            slope = m.input(m.side)
            old = UOp(Op.MUL, keep, line.now(velocity))
            if kind == 1:
                line.write(line.now(weight), UOp(Op.SUB, line.now(weight), line.now(velocity)))
                old = UOp(Op.MUL, keep, line.now(velocity))
            if kind == 2:
                slope = UOp(Op.MUL, slope, line.now(weight))
            line.write(line.now(velocity), UOp(Op.ADD, old, slope))
            step = line.now(velocity)
            if kind == 3:
                step = _added(slope, UOp(Op.MUL, keep, step), UOp(Op.MUL, rate, line.now(weight)))
            if kind != 1:
                line.write(line.now(weight), UOp(Op.SUB, line.now(weight), step))
        yield line.end()


def _moments(m: Memory) -> Iterator[UOp]:
    """Keep two moments, of which one is a largest value, and count the steps."""
    line, weight, first, second, count = Line(), m.row(), m.row(), m.row(), m.buffer(1)
    for _ in range(2):
        slope = m.input(m.side)
        line.write(line.now(count), UOp(Op.ADD, line.now(count), m.const(1)))
        line.write(line.now(first), UOp(Op.ADD, UOp(Op.MUL, m.const(3), line.now(first)), slope))
        line.write(line.now(second), UOp(Op.MAX, line.now(second), UOp(Op.MUL, slope, slope)))
        scaled = UOp(Op.MUL, line.now(first), nodes.expand(line.now(count), (m.side,)))
        moved = UOp(Op.SUB, line.now(weight), scaled)
        line.write(line.now(weight), UOp(Op.MAX, moved, line.now(second)))
    yield line.end()


def _means(m: Memory) -> Iterator[UOp]:
    """Subtract a sum that is kept, before and after it takes in the rows, and sum up twice."""
    for is_old in (True, False):
        line, kept, rows = Line(), m.buffer(1, m.side), m.input(3, m.side)
        out = m.buffer(3, m.side)
        for turn in (is_old, not is_old):
            if turn:
                wide = nodes.expand(line.now(kept), rows.shape)
                line.write(line.now(out), UOp(Op.SUB, rows, wide))
            else:
                new = UOp(Op.ADD, line.now(kept), nodes.fold(Op.ADD, rows, (0,)))
                line.write(line.now(kept), new)
        yield line.end()
    line, kept = Line(), m.row()
    for start in (m.const(0), m.const(5)):
        line.write(line.now(kept), nodes.expand(nodes.reshape(start, (1,)), (m.side,)))
        for _ in range(3):
            line.write(line.now(kept), UOp(Op.ADD, line.now(kept), m.input(m.side)))
    yield line.end()


# cached


def _appended(m: Memory) -> Iterator[UOp]:
    """Write rows at places in the program, and fold all rows, or those so far, after each."""
    for first in (1, 3):
        line, cache = Line(), m.buffer(ROWS, COLUMNS)
        for k in range(first, first + 2):
            line.write(_part(line.now(cache), k, 1), m.input(1, COLUMNS))
            out, rows = m.buffer(1, COLUMNS), line.now(cache)
            line.write(line.now(out), nodes.fold(Op.ADD, rows, (0,)))
            out = m.buffer(1, COLUMNS)
            so_far = nodes.fold(Op.MAX, _part(line.now(cache), 0, k + 1), (0,))
            line.write(line.now(out), so_far)
        yield line.end()


def _placed(m: Memory) -> Iterator[UOp]:
    """Write rows at places in the data, read those and others, and mask rows by their number."""
    line, cache, at = Line(), m.buffer(ROWS, COLUMNS), m.places(ROWS, 2)
    before, after, pages = (m.buffer(n, COLUMNS) for n in (2, 2, 4))
    line.write(line.now(before), UOp(Op.INDEX, line.now(cache), at))
    line.write(UOp(Op.INDEX, line.now(cache), at), m.input(2, COLUMNS))
    line.write(line.now(after), UOp(Op.INDEX, line.now(cache), at))
    line.write(line.now(pages), UOp(Op.INDEX, line.now(cache), m.numbers(0, ROWS - 1, 4)))
    yield line.end()
    line, cache, at = Line(), m.buffer(ROWS, COLUMNS), m.numbers(1, ROWS - 2, 1)
    row, out = m.input(1, COLUMNS), m.buffer(1, COLUMNS)
    here = UOp(Op.CMPEQ, nodes.reshape(_numbered(ROWS), (ROWS, 1)), at)
    rows = nodes.expand(row, cache.shape)
    line.write(cache, UOp(Op.WHERE, nodes.expand(here, cache.shape), rows, cache))
    is_past = UOp(Op.CMPLE, nodes.reshape(_numbered(ROWS), (ROWS, 1)), at)
    masked = UOp(Op.WHERE, nodes.expand(is_past, cache.shape), line.now(cache), m.const(0))
    line.write(line.now(out), nodes.fold(Op.ADD, masked, (0,)))
    yield line.end()


def _counted(m: Memory) -> Iterator[UOp]:
    """Write rows at the number in a buffer, which goes on by one."""
    line, cache, number = Line(), m.buffer(ROWS, COLUMNS), m.counter(ROWS - 3)
    for _ in range(3):
        line.write(UOp(Op.INDEX, line.now(cache), line.now(number)), m.input(1, COLUMNS))
        line.write(line.now(number), UOp(Op.ADD, line.now(number), const(1, dtypes.int32)))
    yield line.end()


def _at_a_variable(m: Memory) -> Iterator[UOp]:
    """Write a row at a variable, read it and the one before, and write rows up to a variable."""
    zero, columns, one = index_const(0), index_const(COLUMNS), index_const(1)
    sizes = UOp(Op.STACK, one, columns)
    for low in (1, 2):
        line, cache, out = Line(), m.buffer(ROWS, COLUMNS), m.buffer(1, COLUMNS)
        at = m.variable(low, ROWS - low)
        here, before = UOp(Op.STACK, at, zero), UOp(Op.STACK, UOp(Op.SUB, at, one), zero)
        line.write(UOp(Op.SHRINK, line.now(cache), before, sizes), m.input(1, COLUMNS))
        pair = [UOp(Op.SHRINK, line.now(cache), place, sizes) for place in (here, before)]
        line.write(out, UOp(Op.SUB, *pair))
        count = UOp(Op.BIND, m.variable(1, ROWS), index_const(low + 2))
        part = UOp(Op.SHRINK, line.now(cache), nodes.dims((1, 0)), UOp(Op.STACK, count, columns))
        line.write(part, UOp(Op.MUL, part, m.const(3)))
        yield line.end()


def _ring(m: Memory) -> Iterator[UOp]:
    """Write rows across the end of a ring, read them in order, and drop the oldest rows."""
    for start in (ROWS - 1, ROWS - 2):
        line, ring, rows = Line(), m.buffer(ROWS, COLUMNS), m.input(3, COLUMNS)
        at_end = ROWS - start
        line.write(_part(line.now(ring), start, at_end), _part(rows, 0, at_end))
        line.write(_part(line.now(ring), 0, 3 - at_end), _part(rows, at_end, 3 - at_end))
        out, now = m.buffer(ROWS, COLUMNS), line.now(ring)
        line.write(_part(line.now(out), 0, at_end), _part(now, start, at_end))
        line.write(_part(line.now(out), at_end, start), _part(line.now(ring), 0, start))
        yield line.end()
    for count in (1, 2):
        line, window, out = Line(), m.buffer(ROWS, COLUMNS), m.buffer(1, COLUMNS)
        left = ROWS - count
        for _ in range(2):
            whole = line.now(window)
            line.write(_part(whole, 0, left), _part(whole, count, left))
            line.write(_part(line.now(window), left, count), m.input(count, COLUMNS))
        line.write(line.now(out), nodes.fold(Op.ADD, line.now(window), (0,)))
        yield line.end()


# exchanged


def _swapped(m: Memory) -> Iterator[UOp]:
    """Swap buffers and parts of one: through a third, through a value, and by XOR."""
    line, one, two, other = Line(), m.matrix(), m.matrix(), m.matrix()
    line.write(other, one)
    line.write(line.now(one), line.now(two))
    line.write(line.now(two), line.now(other))
    yield line.end()
    for is_turned in (False, True):
        pair = m.matrix(), m.matrix()
        views = [_turned(u) if is_turned else u for u in pair]
        both = UOp(Op.CONTIGUOUS, UOp(Op.STACK, *views))
        yield from (
            nodes.store(u, UOp(Op.INDEX, both, index_const(1 - k))) for k, u in enumerate(pair)
        )
    own, third = m.buffer(3 * m.side), m.side
    parts = [_part(own, k * third, third) for k in range(3)]
    three = UOp(Op.CONTIGUOUS, UOp(Op.STACK, *parts))
    yield from (
        nodes.store(u, UOp(Op.INDEX, three, index_const((k + 1) % 3))) for k, u in enumerate(parts)
    )
    line, own, kept = Line(), m.matrix(), m.buffer(1, m.side)
    first, last = 0, m.side - 2
    line.write(kept, _part(own, first, 1))
    line.write(_part(line.now(own), first, 1), _part(line.now(own), last, 1))
    line.write(_part(line.now(own), last, 1), line.now(kept))
    yield line.end()
    if m.dtype.is_int:
        line, pair = Line(), (m.row(), m.row())
        for target, source in ((0, 1), (1, 0), (0, 1)):
            value = UOp(Op.XOR, line.now(pair[target]), line.now(pair[source]))
            line.write(line.now(pair[target]), value)
        yield line.end()


def _combined(m: Memory) -> Iterator[UOp]:
    """Store the sum of two buffers to one of them, and the difference to the other."""
    one, two = m.row(), m.row()
    both = UOp(Op.CONTIGUOUS, UOp(Op.STACK, UOp(Op.ADD, one, two), UOp(Op.SUB, one, two)))
    yield from (
        nodes.store(u, UOp(Op.INDEX, both, index_const(k))) for k, u in enumerate((one, two))
    )


def _to_and_fro(m: Memory) -> Iterator[UOp]:
    """Compute one buffer from another by turns, for an even and an odd number of steps."""
    for count in (2, 3, 4):
        line, pair = Line(), (m.row(), m.row())
        for k in range(count):
            source, target = (line.now(pair[(k + n) % 2]) for n in range(2))
            line.write(target, UOp(Op.ADD, source, _shifted(source, 0, True)))
        yield line.end()


def _copied_on(m: Memory) -> Iterator[UOp]:
    """Copy a buffer, and the copy, and change the first, the second or the third after it."""
    for changed, view in product(range(3), (lambda u: u, nodes.flip_all)):
        line, three = Line(), [m.row() for _ in range(3)]
        for k in range(2):
            line.write(line.now(three[k + 1]), view(line.now(three[k])))
        whole = line.now(three[changed])
        line.write(whole, UOp(Op.MUL, whole, m.const(3)))
        out = m.row()
        line.write(line.now(out), _added(*(line.now(u) for u in three)))
        yield line.end()


# written-twice


def _over_each_other(m: Memory) -> Iterator[UOp]:
    """Write whole buffers, parts, and where gates are open, one over the other; a copy in between
    and after it, or none.
    """

    def whole(line: Line, own: UOp) -> None:
        line.write(line.now(own), m.input(m.side))

    def gated(line: Line, own: UOp) -> None:
        line.write(line.now(own), m.input(m.side), m.gate(m.side))

    def part(line: Line, own: UOp) -> None:
        line.write(_part(line.now(own), 1, m.side - 2), m.input(m.side - 2))

    def scaled(line: Line, own: UOp) -> None:
        line.write(line.now(own), UOp(Op.MUL, line.now(own), m.const(3)))

    kinds = whole, gated, part, scaled
    for (k, first), (n, second) in product(enumerate(kinds), enumerate(kinds)):
        line, own, between, end = Line(), m.row(), m.row(), m.row()
        first(line, own)
        if (k + n) % 2:
            line.write(line.now(between), line.now(own))
        second(line, own)
        if k % 2 or n == 2:
            line.write(line.now(end), UOp(Op.ADD, line.now(own), line.now(own)))
        yield line.end()


def _side_by_side(m: Memory) -> Iterator[UOp]:
    """Write halves, every second element, and parts that overlap; some get the same value."""
    half, row = m.side, m.input(m.side)
    for starts in ((0, half), (half, 0), (half // 2, 0), (0, half // 2)):
        line, own = Line(), m.buffer(2 * half)
        for start in starts:
            value = row if starts[0] == half else m.input(half)
            line.write(_part(line.now(own), start, half), value)
        yield line.end()
    for order in ((0, 1), (1, 0)):
        line, own = Line(), m.buffer(2 * half)
        for k in order:
            pairs = nodes.reshape(line.now(own), (half, 2))
            line.write(_part(pairs, k, 1, 1), m.input(half, 1))
        yield line.end()


def _of_few(m: Memory) -> Iterator[UOp]:
    """Store what repeats or folds few elements, and single elements."""
    own, n = m.matrix(), m.side
    yield nodes.store(own, nodes.expand(m.input(1, n), (n, n)))
    own = m.matrix()
    yield nodes.store(own, nodes.expand(m.input(n, 1), (n, n)))
    own = m.matrix()
    yield nodes.store(_part(own, 2, 1, 1), nodes.fold(Op.ADD, m.input(n, n), (1,)))
    own = m.matrix()
    yield nodes.store(UOp(Op.INDEX, own, index_const(1), index_const(2)), m.input())
    own = m.matrix()
    line = Line()
    for k, value in enumerate((m.const(7), m.input())):
        place = UOp(Op.INDEX, line.now(own), index_const(k + 1))
        line.write(_part(place, k, 1), nodes.reshape(value, (1,)))
    yield line.end()
    own = m.matrix()
    place = _turned(nodes.shrink(own, (1, 0), (3, 3)))
    yield nodes.store(place, m.input(3, 3), m.gate(3, 3))


def _as_bits(m: Memory) -> Iterator[UOp]:
    """Write a buffer as values and as bits, by turns."""
    bits, size = DTYPES[f"uint{m.dtype.bits}"], m.dtype.itemsize
    line, own, out, raw = Line(), m.row(), m.row(), m.input(m.side)
    line.write(_bytes(_part(line.now(own), 1, 2)), _bytes(_part(raw, 2, 2)))
    line.write(line.now(out), UOp(Op.ADD, line.now(own), raw))
    yield line.end()
    line, own, out = Line(), m.row(), m.row()
    line.write(line.now(own), UOp(Op.ADD, m.input(m.side), m.const(1)))
    seen = nodes.bitcast(line.now(own), bits)
    line.write(nodes.bitcast(line.now(out), bits), UOp(Op.XOR, seen, const(1, bits)))
    yield line.end()
    line, own = Line(), m.row()
    line.write(_part(_bytes(line.now(own)), size, 2 * size), _part(_bytes(raw), 0, 2 * size))
    line.write(_part(line.now(own), 2, 2), _part(raw, 1, 2))
    yield line.end()


# read-again


def _around(m: Memory) -> Iterator[UOp]:
    """Compute the same of a buffer before and after a STORE to all, a part, or where a gate is
    open.
    """

    def total(u: UOp) -> UOp:
        return nodes.fold(Op.ADD, u, (0, 1))

    def first(u: UOp) -> UOp:
        return UOp(Op.INDEX, u, index_const(1))

    def scaled(u: UOp) -> UOp:
        return UOp(Op.MUL, u, m.const(3))

    def copied(u: UOp) -> UOp:
        return UOp(Op.CONTIGUOUS, nodes.flip_all(u))

    n = m.side
    for k, value in enumerate((total, first, scaled, copied, _turned)):
        for way in range(2):
            line, own = Line(), m.matrix()
            shape = value(own).shape
            before, after = m.buffer(*shape), m.buffer(*shape)
            line.write(before, value(own))
            if (k + way) % 2:
                line.write(_part(line.now(own), 0, 2), m.input(2, n))
            else:
                line.write(line.now(own), m.input(n, n), m.gate(n, n))
            line.write(line.now(after), value(line.now(own)))
            yield line.end()


def _through_views(m: Memory) -> Iterator[UOp]:
    """Write through one view and read through another; the order stands on views, too."""
    n = m.side
    views: tuple[Callable[[UOp], UOp], ...] = (
        lambda u: u,
        _turned,
        lambda u: nodes.flip(u, (True, False)),
        lambda u: nodes.flip(u, (False, True)),
    )
    for there, back in product(views, views):
        own, out = m.matrix(), m.matrix()
        effect = nodes.store(there(own), m.input(n, n))
        yield nodes.store(out, UOp(Op.AFTER, back(own), effect))


def _awaited(m: Memory) -> Iterator[UOp]:
    """Wait for several STOREs at once, each of which counts: by operands, and by a GROUP."""
    n = m.side
    for kind in range(3):
        three = [m.row() for _ in range(3)]
        effects = [nodes.store(u, m.input(n)) for u in three]
        if kind == 1:
            effects = [UOp(Op.GROUP, *effects)]
        elif kind == 2:
            effects = [effects[2], UOp(Op.GROUP, *effects[:2])]
        later = [UOp(Op.AFTER, u, *effects) for u in three]
        yield nodes.store(m.row(), _added(*later))
    own, outs = m.row(), [m.row() for _ in range(3)]
    readers = [nodes.store(out, UOp(Op.ADD, own, m.input(n))) for out in outs]
    yield nodes.store(UOp(Op.AFTER, own, *readers), m.input(n))


def _mixed_up(m: Memory) -> Iterator[UOp]:
    """Store several values to buffers of one shape, and read each in another order."""
    line, four = Line(), [m.row() for _ in range(4)]
    for u in four:
        line.write(line.now(u), m.input(m.side))
    for k in m.choices.shuffled(range(4)):
        out = m.row()
        line.write(line.now(out), UOp(Op.MUL, line.now(four[k]), m.const(2 + k)))
    yield line.end()


# lent


def _views_of_one(m: Memory) -> Iterator[UOp]:
    """Return views of one value with memory of its own, the value twice, and folds of it."""
    n, x = m.side, m.input(m.side, m.side)
    kept = UOp(Op.CONTIGUOUS, UOp(Op.ADD, x, m.input(n, n)))
    yield nodes.shrink(kept, (1, 2), (n - 1, n - 2))
    yield nodes.flip(kept, (True, False))
    yield kept
    yield _turned(kept)
    yield UOp(Op.INDEX, kept, index_const(n - 1))
    yield nodes.reshape(kept, (n * n,))
    yield nodes.reshape(_turned(kept), (n * n,))
    yield nodes.expand(_part(kept, 1, 1), (n, n))
    yield nodes.copies(_part(kept, 1, 1, 1), 3)
    yield nodes.pad(_part(kept, 1, 2), (1, 0), (4, n), PadFill.ZERO)
    yield _bytes(kept)
    yield nodes.fold(Op.ADD, kept, (0,))
    yield UOp(Op.MUL, kept, m.const(3))
    yield _turned(x)
    yield x


def _views_of_views(m: Memory) -> Iterator[UOp]:
    """Return views of turned and cut values that are made contiguous, also of inputs."""
    n, x = m.side, m.input(m.side, m.side)
    for value in (_turned(x), nodes.flip(x, (True, False)), _part(x, 1, n - 1)):
        kept = UOp(Op.CONTIGUOUS, value)
        yield nodes.reshape(kept, (kept.shape[0] * n,))
        yield nodes.flip(kept, (True, False))
        yield _turned(UOp(Op.CONTIGUOUS, _turned(kept)))
        yield _part(nodes.reshape(kept, (kept.shape[0] * n,)), n - 1, n)


def _handed_on(m: Memory) -> Iterator[UOp]:
    """Return values of a chain, the last one first, each of which reads the two before."""
    chain = [m.input(m.side), m.input(m.side)]
    for k in range(7):
        op = (Op.ADD, Op.MAX, Op.SUB)[k % 3]
        chain.append(UOp(Op.CONTIGUOUS, UOp(op, nodes.flip_all(chain[-1]), chain[-2])))
    yield from reversed(chain)
    yield _added(chain[2], chain[5], chain[-1])


def _of_sizes(m: Memory) -> Iterator[UOp]:
    """Return values of few and of many bytes, in odd numbers, which all live at once."""
    kept = []
    for k, kind in enumerate((dtypes.uint8, m.dtype, dtypes.int16, m.dtype, dtypes.int64) * 2):
        x = m.numbers(0, 99, 2 * k + 3)
        kept.append(UOp(Op.CONTIGUOUS, nodes.cast(x, kind)))
    yield from (UOp(Op.ADD, u, const(1, u.dtype)) for u in kept)
    yield from (nodes.flip_all(u) for u in kept)


def _before_and_after(m: Memory) -> Iterator[UOp]:
    """Return copies of buffers, views of those, and what the buffers hold after a STORE."""
    n = m.side
    for view in (lambda u: u, _turned, nodes.flip_all):
        own = m.matrix()
        kept = UOp(Op.CONTIGUOUS, view(own))
        later = UOp(Op.AFTER, own, nodes.store(own, UOp(Op.ADD, kept, m.input(n, n))))
        yield kept
        yield _part(kept, 1, 2)
        yield UOp(Op.CONTIGUOUS, later)
        yield UOp(Op.SUB, later, kept)


# stored-siblings


def _siblings(m: Memory) -> Iterator[tuple[UOp, ...]]:
    """Yield the effects of each program, of which all have the same buffers and inputs."""
    one, two = m.matrix(), m.matrix()
    x, gate = m.input(4, 4), m.gate(4, 4)
    small = nodes.shrink(x, (0, 0), (2, 2))
    for offset in ((0, 0), (0, 1), (1, 0), (2, 1), (2, 2)):
        yield (nodes.store(nodes.shrink(one, offset, (2, 2)), small),)
        yield (nodes.store(one, nodes.pad(nodes.shrink(one, offset, (2, 2)), (1, 1), (4, 4))),)
    for flags in ((True, False), (False, True), (True, True)):
        yield (nodes.store(nodes.flip(one, flags), x),)
        yield (nodes.store(one, nodes.flip(one, flags)),)
    yield from ((nodes.store(_turned(u), x),) for u in (one, two))
    for target, source in ((one, two), (two, one)):
        copy = nodes.store(target, source)
        later = UOp(Op.AFTER, target, copy)
        yield (copy,)
        yield (nodes.store(target, source, gate),)
        yield (nodes.store(later, UOp(Op.ADD, later, x)),)
        yield (nodes.store(UOp(Op.AFTER, source, copy), x),)
        yield (nodes.store(target, UOp(Op.ADD, x, target)),)
        yield (nodes.store(target, UOp(Op.ADD, x, source)),)
        yield (nodes.store(source, UOp(Op.AFTER, target, nodes.store(target, x))),)
        yield (nodes.store(target, UOp(Op.ADD, target, target)),)
    for number in (2, 3, 5):
        row = nodes.expand(nodes.reshape(m.const(number), (1, 1)), (4, 4))
        yield (nodes.store(one, row),)
        yield (nodes.store(one, row, gate),)
        yield (nodes.store(one, UOp(Op.MUL, one, m.const(number))),)
    for axis, op in product(range(2), (Op.ADD, Op.MAX)):
        yield (nodes.store(one, _folded(op, one, axis)),)
        yield (nodes.store(_part(one, 1, 1, axis), nodes.fold(op, x, (axis,))),)
    yield (nodes.store(one, x), nodes.store(two, x))
    yield (nodes.store(one, x), nodes.store(two, _turned(x)))
    yield (nodes.store(two, x), nodes.store(one, nodes.flip_all(x)))


SIBLINGS = len([*_siblings(Memory(CountedChoices(0, ""), KINDS[0], 4))])

EFFECTS: dict[str, tuple[Step, ...]] = {
    "updated": (
        *(_from_neighbours, _from_folds, _from_products),
        *(_from_places, _from_tests, _from_bytes),
    ),
    "trained": (_weights, _moments, _means),
    "cached": (_appended, _placed, _counted, _at_a_variable, _ring),
    "exchanged": (_swapped, _combined, _to_and_fro, _copied_on),
    "written-twice": (_over_each_other, _side_by_side, _of_few, _as_bits),
    "read-again": (_around, _through_views, _awaited, _mixed_up),
}
"""The steps of each kind of program."""
NEEDS = {
    "updated": (Op.ADD, Op.PAD, Op.SHRINK),
    "trained": (Op.ADD, Op.SUB, Op.MUL),
    "cached": (Op.SHRINK, Op.REDUCE),
}
"""The ops without which no step of a kind is left."""
RESULTS: tuple[Step, ...] = (
    *(_views_of_one, _views_of_views, _handed_on, _of_sizes, _before_and_after),
)
