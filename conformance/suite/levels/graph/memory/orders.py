"""Generate level graph, orders: buffers that are written over after others have read them.

A value is complete before its STORE writes, also where it reads the same buffer through a view.
A backend that moves a write, or lets two temporaries share memory too early, is wrong here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.steps import MEMORY
from uop.conformance.suite.levels.group import Generated, Group, group, program, with_data
from uop.conformance.suite.levels.op.movement import random_shrink
from uop.conformance.suite.values import draw_bits, draw_ordinary, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import PadFill
from uop.spec.dtype import DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const, param

KINDS = (dtypes.int32, dtypes.uint8, dtypes.float32)
SIDES = (4, 6, 17)
"""The sides of the matrices: a vector, a part of one more, and one element more."""

View = Callable[[Choices, UOp], UOp]


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(KINDS):
        if _exact(vocabulary, dtype):
            args = (dtype, vocabulary)
            for name, counts, build in GROUPS:
                needs = (Op.CONTIGUOUS,) if build is _temporaries else MEMORY
                yield group("graph", None, dtype, name, counts, build, *args, needs=needs)
            count = len(VIEWS)
            counts = (count if dtype is KINDS[0] else 0, count, 3 * count)
            yield group("graph", None, dtype, "in-place-alone", counts, _alone, *args, needs=MEMORY)
            counts = (2 if dtype is KINDS[0] else 1, 6, 12)
            yield group("graph", None, dtype, "overlaps", counts, _overlapping, *args, needs=MEMORY)


def _side(dtype: DType, index: int) -> int:
    """Return the side of a matrix: dtypes begin with others."""
    return SIDES[(KINDS.index(dtype) + index) % len(SIDES)]


def _exact(vocabulary: Vocabulary, dtype: DType) -> tuple[Op, ...]:
    """Return the ops with one result on ordinary values of every dtype here."""
    return vocabulary.of((Op.MAX, Op.ADD, Op.MUL), dtype)


def _transposed(choices: Choices, u: UOp) -> UOp:
    return nodes.permute(u, (1, 0))


def _flipped(choices: Choices, u: UOp) -> UOp:
    return nodes.flip(u, choices.pick(((True, False), (False, True), (True, True))))


def _shifted(choices: Choices, u: UOp) -> UOp:
    """Shift by a row or a column; zeros enter."""
    axis, side = choices.below(2), u.shape[0]
    step, none = (int(axis == 0), int(axis == 1)), (0, 0)
    before, after = (step, none) if choices.chance(50) else (none, step)
    sizes = (side + step[0], side + step[1])
    return nodes.shrink(nodes.pad(u, before, sizes, PadFill.ZERO), after, u.shape)


def _row(choices: Choices, u: UOp) -> UOp:
    """Read one row everywhere."""
    offset = (choices.below(u.shape[0]), 0)
    return nodes.expand(nodes.shrink(u, offset, (1, u.shape[1])), u.shape)


def _indexed(choices: Choices, u: UOp) -> UOp:
    """Read one column as rows, by an INDEX."""
    row = UOp(Op.INDEX, nodes.permute(u, (1, 0)), index_const(choices.below(u.shape[1])))
    return nodes.expand(nodes.reshape(row, (1, u.shape[0])), u.shape)


def _reversed(choices: Choices, u: UOp) -> UOp:
    return nodes.reshape(nodes.flip_all(nodes.reshape(u, (u.shape[0] * u.shape[1],))), u.shape)


def _turned(choices: Choices, u: UOp) -> UOp:
    """Turn by a quarter: two views at once."""
    return nodes.permute(nodes.flip(u, (True, False)), (1, 0))


def _column_sums(choices: Choices, u: UOp) -> UOp:
    return nodes.expand(nodes.fold(Op.ADD, u, (0,)), u.shape)


def _row_maxima(choices: Choices, u: UOp) -> UOp:
    return nodes.expand(nodes.fold(Op.MAX, u, (1,)), u.shape)


VIEWS: tuple[View, ...] = (
    *(_transposed, _flipped, _shifted, _row, _indexed, _reversed, _turned),
    *(_column_sums, _row_maxima),
)
"""What a value reads, in the shape of the whole."""
TARGETS: tuple[View, ...] = (*(_transposed, _flipped, _reversed, _turned, random_shrink),)
"""What a STORE writes to; the last one is a part."""


@dataclass(slots=True)
class _Steps:
    """Writes buffers one after the other, each after all that must come before."""

    choices: Choices
    dtype: DType
    vocabulary: Vocabulary
    side: int
    now: list[UOp] = field(default_factory=list)
    """Each buffer, after its last write."""
    readers: list[list[UOp]] = field(default_factory=list)
    """The STOREs that have read it since."""
    last: list[UOp] = field(default_factory=list)
    """The last STORE to it."""

    def start(self, count: int) -> None:
        shape = (self.side, self.side)
        self.now = [nodes.buffer(slot, shape, self.dtype) for slot in range(count)]
        self.readers = [[] for _ in self.now]
        self.last = list(self.now)

    def moved(self, u: UOp, views: tuple[View, ...] = VIEWS) -> UOp:
        """Apply a view that the vocabulary has."""
        for view in self.choices.shuffled(views):
            made = view(self.choices, u)
            if self.vocabulary.speaks(made, {u}):
                return made
        return u

    def write(self, target: int, sources: list[int]) -> None:
        """Store to a buffer, through a view or whole, what an op makes of views of sources."""
        op = self.choices.pick(_exact(self.vocabulary, self.dtype))
        place = self._ordered(target)
        if self.choices.chance(40):
            place = self.moved(place, TARGETS)
        value = self._read(sources[0], place.shape)
        for source in sources[1:]:
            value = UOp(op, value, self._read(source, place.shape))
        done = nodes.store(place, value)
        for source in sources:
            if source != target:
                self.readers[source].append(done)
        self.now[target] = UOp(Op.AFTER, self.now[target], done)
        self.readers[target], self.last[target] = [], done

    def _read(self, source: int, shape: tuple[int, ...]) -> UOp:
        """Read a view of a buffer as it is now, as large as what is written."""
        whole = self.moved(self.now[source])
        return whole if shape == whole.shape else nodes.shrink(whole, (0, 0), shape)

    def _ordered(self, target: int) -> UOp:
        """Return a buffer after all that still read it: by one AFTER, several, or a GROUP."""
        place, readers = self.now[target], self.readers[target]
        if not readers:
            return place
        way = self.choices.below(3)
        if way == 0 and self.vocabulary.has(Op.GROUP):
            return UOp(Op.AFTER, place, UOp(Op.GROUP, *readers))
        if way == 1:
            return UOp(Op.AFTER, place, *readers)
        for reader in readers:
            place = UOp(Op.AFTER, place, reader)
        return place

    def program(self) -> Generated:
        written = (done for done in self.last if done.op is Op.STORE)
        return _on_data(UOp(Op.SINK, *written), self.choices)


def _on_data(root: UOp, choices: Choices) -> Generated:
    data = {k: sample(draw_ordinary, u.dtype, u.shape, choices) for k, u in slots_of(root).items()}
    return program(root, data)


def _in_place(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Update a buffer through each view, alone and combined with the buffer itself."""
    steps = _Steps(choices, dtype, vocabulary, _side(dtype, index))
    op = choices.pick(_exact(vocabulary, dtype))
    shape = (steps.side, steps.side)
    effects = []
    for slot, view in enumerate((*VIEWS, *VIEWS)):
        own = nodes.buffer(slot, shape, dtype)
        value = steps.moved(own, (view,))
        if slot >= len(VIEWS):
            value = UOp(op, steps.moved(value), own)
        effects.append(nodes.store(own, value))
    return _on_data(UOp(Op.SINK, *effects), choices)


def _alone(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Update one buffer through one view, in the second round combined with the buffer, in the
    third through two views; any bits are moved.
    """
    turn, which = divmod(index, len(VIEWS))
    steps = _Steps(choices, dtype, vocabulary, SIDES[which % len(SIDES)])
    own = nodes.buffer(0, (steps.side, steps.side), dtype)
    value = steps.moved(own, (VIEWS[which],))
    if turn == 1:
        value = UOp(choices.pick(_exact(vocabulary, dtype)), value, own)
    elif turn == 2:
        value = steps.moved(value, (VIEWS[(which + 1) % len(VIEWS)],))
    draw = draw_ordinary if turn == 1 else draw_bits
    return with_data(UOp(Op.SINK, nodes.store(own, value)), choices, draw)


def _overlapping(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Copy a part of each buffer over another part, forwards and backwards, along each axis of a
    matrix, and in a row.
    """
    side, by, effects = 5 + 12 * (index % 2), 1 + index % 3, []
    steps = ((by, 0), (0, by), (1,), (side // 2,))
    for slot, (step, is_forward) in enumerate(product(steps, (True, False))):
        own, none = nodes.buffer(slot, (side,) * len(step), dtype), (0,) * len(step)
        sizes = [side - n for n in step]
        places = (step, none) if is_forward else (none, step)
        effects.append(nodes.store(*(nodes.shrink(own, place, sizes) for place in places)))
    return with_data(UOp(Op.SINK, *effects), choices, draw_bits)


def _changed_after(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Copy a buffer whole, then change it, then copy it once more."""
    op, side = choices.pick(_exact(vocabulary, dtype)), _side(dtype, index)
    source, first, second = (nodes.buffer(slot, (side, side), dtype) for slot in range(3))
    is_copied = index % 2 and vocabulary.has(Op.CONTIGUOUS, on=dtype)
    copy = nodes.store(first, UOp(Op.CONTIGUOUS, source) if is_copied else source)
    own = UOp(Op.AFTER, source, copy)
    change = nodes.store(own, UOp(op, own, param(3, source.shape, dtype)))
    last = nodes.store(second, UOp(Op.AFTER, own, change))
    return _on_data(UOp(Op.SINK, copy, last), choices)


def _partly_over(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Write a buffer whole, then over a part of it: where a gate is open, or through a view."""
    side = _side(dtype, index)
    shape = (side, side)
    own, whole, more = nodes.buffer(0, shape, dtype), param(1, shape, dtype), param(2, shape, dtype)
    done = UOp(Op.AFTER, own, nodes.store(own, whole))
    if index % 2:
        part = random_shrink(choices, done)
        last = nodes.store(part, nodes.shrink(more, (0, 0), part.shape))
    else:
        last = nodes.store(done, more, param(3, shape, dtypes.bool))
    return _on_data(UOp(Op.SINK, last), choices)


def _relayed(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Hand contents on along a ring: each buffer is written over after the next has read it."""
    steps = _Steps(choices, dtype, vocabulary, _side(dtype, index))
    count = choices.between(3, 5)
    steps.start(count + 1)
    steps.write(count, [0])
    for k in range(count - 1):
        steps.write(k, [k + 1, *([k] if choices.chance(30) else [])])
    steps.write(count - 1, [count])
    return steps.program()


def _mixed(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Write buffers in any order, each over what others have read."""
    steps = _Steps(choices, dtype, vocabulary, _side(dtype, index))
    count = choices.between(3, 4)
    steps.start(count)
    for _ in range(choices.between(6, 10)):
        sources = [choices.below(count) for _ in range(choices.between(1, 2))]
        steps.write(choices.below(count), sources)
    return steps.program()


def _temporaries(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Compute values with memory of their own, of which some are read much later than others.

    The inputs are outputs too.
    """
    steps = _Steps(choices, dtype, vocabulary, _side(dtype, index))
    shape = (steps.side, steps.side)
    inputs = [param(slot, shape, dtype) for slot in range(2)]
    values = list(inputs)
    for _ in range(choices.between(5, 8)):
        op = choices.pick(_exact(vocabulary, dtype))
        early = values[choices.below(len(values))]
        made = UOp(op, steps.moved(values[-1]), steps.moved(early))
        values.append(UOp(Op.CONTIGUOUS, made))
    late = UOp(choices.pick(_exact(vocabulary, dtype)), values[2], values[-1])
    return _on_data(nodes.outputs(inputs[1], late, values[-2], inputs[0], values[3]), choices)


def _read_around(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Combine what a buffer held before a STORE, perhaps a gated one, with what it then holds."""
    shape = (_side(dtype, index),)
    own, more = nodes.buffer(0, shape, dtype), param(1, shape, dtype)
    first, second = (choices.pick(_exact(vocabulary, dtype)) for _ in range(2))
    before = UOp(first, own, more)
    gate = [param(2, shape, dtypes.bool)] if index % 2 else []
    done = UOp(Op.AFTER, own, nodes.store(own, before, *gate))
    return _on_data(nodes.outputs(UOp(second, before, done), UOp(first, done, more)), choices)


def _whole_again(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Write a matrix, then a row, through each view, and compute with what the whole then holds."""
    side, effects = _side(dtype, index), []
    for k, view in enumerate((*TARGETS, _flipped_row)):
        shape = (side,) if view is _flipped_row else (side, side)
        own, copy = (nodes.buffer(2 * k + n, shape, dtype) for n in range(2))
        place = view(choices, own)
        more = param(2 * len(TARGETS) + 2 + k, place.shape, dtype)
        done = UOp(Op.AFTER, own, nodes.store(place, more))
        effects.append(nodes.store(copy, UOp(choices.pick(_exact(vocabulary, dtype)), done, done)))
    return _on_data(UOp(Op.SINK, *effects), choices)


def _crossing(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Write columns and rows of matrices, and a block, one over a part of the other."""
    side, effects = _side(dtype, index) + 2, []
    column, row, block = ((0, 1), (side, 1)), ((2, 0), (1, side)), ((1, 0), (2, 3))
    parts = (column, row), (row, column), (block, column), (column, block)
    for k, (first, second) in enumerate(parts):
        own = nodes.buffer(3 * k, (side, side), dtype)
        place = nodes.shrink(own, *first)
        done = UOp(Op.AFTER, own, nodes.store(place, param(3 * k + 1, place.shape, dtype)))
        place = nodes.shrink(done, *second)
        effects.append(nodes.store(place, param(3 * k + 2, place.shape, dtype)))
    return _on_data(UOp(Op.SINK, *effects), choices)


def _flipped_row(choices: Choices, u: UOp) -> UOp:
    return nodes.flip(u, (True,))


def _values_shared(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Compute a value of a buffer that is written, and use it for another buffer too.

    The STORE to the buffer comes first or last. The value reads the buffer as it is, or a view. The
    other buffer gets the value, or is updated by it.
    """
    side, effects = _side(dtype, index), list[UOp]()
    steps = _Steps(choices, dtype, vocabulary, side)
    op, other = (choices.pick(_exact(vocabulary, dtype)) for _ in range(2))
    more = param(0, (side, side), dtype)
    for k, (is_view, is_updated) in enumerate(product((False, True), repeat=2)):
        own, copy = (nodes.buffer(1 + 2 * k + n, (side, side), dtype) for n in range(2))
        value = UOp(op, steps.moved(own) if is_view else own, more)
        new = UOp(other, copy, value) if is_updated else value
        kept = value if is_updated else UOp(other, value, value)
        stores = nodes.store(own, kept), nodes.store(copy, new)
        effects += stores if (k + index) % 2 else reversed(stores)
    return _on_data(UOp(Op.SINK, *effects), choices)


GROUPS = (
    ("in-place", (1, 6, 12), _in_place),
    ("changed-after", (1, 6, 12), _changed_after),
    ("partly-over", (2, 6, 12), _partly_over),
    ("read-around", (2, 6, 12), _read_around),
    ("whole-again", (1, 6, 12), _whole_again),
    ("values-shared", (1, 6, 12), _values_shared),
    ("crossing", (1, 6, 12), _crossing),
    ("relayed", (1, 6, 40), _relayed),
    ("overwritten", (1, 6, 40), _mixed),
    ("temporaries", (1, 6, 40), _temporaries),
)
