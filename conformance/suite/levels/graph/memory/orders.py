"""Generate level graph, orders: buffers that are written over after others have read them.

A value is complete before its STORE writes, also where it reads the same buffer through a view.
A backend that moves a write, or lets two temporaries share memory too early, is wrong here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.pairs import drawn
from uop.conformance.suite.levels.graph.steps import MEMORY
from uop.conformance.suite.levels.group import Generated, Group, group, program, with_data
from uop.conformance.suite.levels.op.movement import random_shrink
from uop.conformance.suite.values import draw_bits, draw_ordinary
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import PadFill
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const, param

KINDS = (dtypes.int32, dtypes.uint8, dtypes.float32)
SIDES = (4, 6, 17)
"""The sides of the matrices: a vector, a part of one more, and one element more."""

View = Callable[[Choices, UOp], UOp]
Build = Callable[["_Steps"], Generated]


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(KINDS):
        if _exact(vocabulary, dtype):
            for name, (first, others, default, full), build in GROUPS:
                counts = (first if dtype is KINDS[0] else others, default, full)
                needs = (Op.CONTIGUOUS,) if build is _temporaries else MEMORY
                args = (build, dtype, vocabulary)
                yield group("graph", None, dtype, name, counts, _made, *args, needs=needs)


def _made(
    build: Build, dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    # Dtypes begin with other sides.
    side = SIDES[(KINDS.index(dtype) + index) % len(SIDES)]
    return build(_Steps(choices, dtype, vocabulary, side, index))


def _exact(vocabulary: Vocabulary, dtype: DType) -> tuple[Op, ...]:
    """Return the ops with one result on ordinary values of every dtype here."""
    return vocabulary.of((Op.MAX, Op.ADD, Op.MUL), dtype)


def _shifted(choices: Choices, u: UOp) -> UOp:
    """Shift by a row or a column; zeros enter."""
    axis, side = choices.below(2), u.shape[0]
    step, none = (int(axis == 0), int(axis == 1)), (0, 0)
    before, after = (step, none) if choices.chance(50) else (none, step)
    sizes = (side + step[0], side + step[1])
    return nodes.shrink(nodes.pad(u, before, sizes, PadFill.ZERO), after, u.shape)


def _indexed(choices: Choices, u: UOp) -> UOp:
    """Read one column as rows, by an INDEX."""
    row = UOp(Op.INDEX, nodes.permute(u, (1, 0)), index_const(choices.below(u.shape[1])))
    return nodes.expand(nodes.reshape(row, (1, u.shape[0])), u.shape)


FLIPS = ((True, False), (False, True), (True, True))
BY_NAME: dict[str, View] = {
    "transposed": lambda choices, u: nodes.permute(u, (1, 0)),
    "flipped": lambda choices, u: nodes.flip(u, choices.pick(FLIPS)),
    "shifted": _shifted,
    "one row everywhere": lambda choices, u: nodes.expand(
        nodes.shrink(u, (choices.below(u.shape[0]), 0), (1, u.shape[1])), u.shape
    ),
    "indexed": _indexed,
    "reversed": lambda choices, u: nodes.reshape(
        nodes.flip_all(nodes.reshape(u, (prod(u.shape),))), u.shape
    ),
    "by a quarter": lambda choices, u: nodes.permute(nodes.flip(u, (True, False)), (1, 0)),
    "column sums": lambda choices, u: nodes.expand(nodes.fold(Op.ADD, u, (0,)), u.shape),
    "row maxima": lambda choices, u: nodes.expand(nodes.fold(Op.MAX, u, (1,)), u.shape),
}
VIEWS = tuple(BY_NAME.values())
"""What a value reads, in the shape of the whole."""
TARGETS: tuple[View, ...] = (
    *(BY_NAME[name] for name in ("transposed", "flipped", "reversed", "by a quarter")),
    random_shrink,
)
"""What a STORE writes to; the last one is a part."""


@dataclass(slots=True)
class _Steps:
    """Writes buffers one after the other, each after all that must come before."""

    choices: Choices
    dtype: DType
    vocabulary: Vocabulary
    side: int
    """Of the matrices."""
    index: int
    now: list[UOp] = field(default_factory=list)
    """Each buffer, after its last write."""
    readers: list[list[UOp]] = field(default_factory=list)
    """The STOREs that have read it since."""
    last: list[UOp] = field(default_factory=list)
    """The last STORE to it."""

    def start(self, count: int) -> None:
        self.now = [self.buffer(slot) for slot in range(count)]
        self.readers = [[] for _ in self.now]
        self.last = list(self.now)

    def buffer(self, slot: int, *shape: int) -> UOp:
        return nodes.buffer(slot, shape or (self.side, self.side), self.dtype)

    def input(self, slot: int, *shape: int) -> UOp:
        return param(slot, shape or (self.side, self.side), self.dtype)

    def op(self) -> Op:
        return self.choices.pick(_exact(self.vocabulary, self.dtype))

    def moved(self, u: UOp, views: tuple[View, ...] = VIEWS) -> UOp:
        """Apply a view that the vocabulary has."""
        for view in self.choices.shuffled(views):
            made = view(self.choices, u)
            if self.vocabulary.speaks(made, {u}):
                return made
        return u

    def write(self, target: int, sources: list[int]) -> None:
        """Store to a buffer, through a view or whole, what an op makes of views of sources."""
        op, place = self.op(), self._ordered(target)
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
        return self.of_effects(done for done in self.last if done.op is Op.STORE)

    def of_effects(self, effects: Iterable[UOp]) -> Generated:
        return self.on_data(UOp(Op.SINK, *effects))

    def on_data(self, root: UOp) -> Generated:
        return program(root, *drawn(draw_ordinary)(root, self.choices))


def _in_place(s: _Steps) -> Generated:
    """Update a buffer through each view, alone and combined with the buffer itself."""
    op, effects = s.op(), []
    for slot, view in enumerate((*VIEWS, *VIEWS)):
        own = s.buffer(slot)
        value = s.moved(own, (view,))
        if slot >= len(VIEWS):
            value = UOp(op, s.moved(value), own)
        effects.append(nodes.store(own, value))
    return s.of_effects(effects)


def _alone(s: _Steps) -> Generated:
    """Update one buffer through one view, in the second round combined with the buffer, in the
    third through two views; any bits are moved.
    """
    turn, which = divmod(s.index, len(VIEWS))
    side = SIDES[which % len(SIDES)]
    own = s.buffer(0, side, side)
    value = s.moved(own, (VIEWS[which],))
    if turn == 1:
        value = UOp(s.op(), value, own)
    elif turn == 2:
        value = s.moved(value, (VIEWS[(which + 1) % len(VIEWS)],))
    draw = draw_ordinary if turn == 1 else draw_bits
    return with_data(UOp(Op.SINK, nodes.store(own, value)), s.choices, draw)


def _overlapping(s: _Steps) -> Generated:
    """Copy a part of each buffer over another part, forwards and backwards, along each axis of a
    matrix, and in a row.
    """
    side, by, effects = 5 + 12 * (s.index % 2), 1 + s.index % 3, []
    steps = ((by, 0), (0, by), (1,), (side // 2,))
    for slot, (step, is_forward) in enumerate(product(steps, (True, False))):
        own, none = s.buffer(slot, *[side] * len(step)), (0,) * len(step)
        sizes = [side - n for n in step]
        places = (step, none) if is_forward else (none, step)
        effects.append(nodes.store(*(nodes.shrink(own, place, sizes) for place in places)))
    return with_data(UOp(Op.SINK, *effects), s.choices, draw_bits)


def _changed_after(s: _Steps) -> Generated:
    """Copy a buffer whole, then change it, then copy it once more."""
    op = s.op()
    source, first, second = map(s.buffer, range(3))
    is_copied = s.index % 2 and s.vocabulary.has(Op.CONTIGUOUS, on=s.dtype)
    copy = nodes.store(first, UOp(Op.CONTIGUOUS, source) if is_copied else source)
    own = UOp(Op.AFTER, source, copy)
    change = nodes.store(own, UOp(op, own, s.input(3)))
    return s.of_effects((copy, nodes.store(second, UOp(Op.AFTER, own, change))))


def _partly_over(s: _Steps) -> Generated:
    """Write a buffer whole, then over a part of it: where a gate is open, or through a view."""
    own, whole, more = s.buffer(0), s.input(1), s.input(2)
    done = nodes.after(own, whole)
    if s.index % 2:
        part = random_shrink(s.choices, done)
        last = nodes.store(part, nodes.shrink(more, (0, 0), part.shape))
    else:
        last = nodes.store(done, more, param(3, own.shape, dtypes.bool))
    return s.of_effects([last])


def _relayed(s: _Steps) -> Generated:
    """Hand contents on along a ring: each buffer is written over after the next has read it."""
    count = s.choices.between(3, 5)
    s.start(count + 1)
    s.write(count, [0])
    for k in range(count - 1):
        s.write(k, [k + 1, *([k] if s.choices.chance(30) else [])])
    s.write(count - 1, [count])
    return s.program()


def _mixed(s: _Steps) -> Generated:
    """Write buffers in any order, each over what others have read."""
    count = s.choices.between(3, 4)
    s.start(count)
    for _ in range(s.choices.between(6, 10)):
        sources = [s.choices.below(count) for _ in range(s.choices.between(1, 2))]
        s.write(s.choices.below(count), sources)
    return s.program()


def _temporaries(s: _Steps) -> Generated:
    """Compute values with memory of their own, of which some are read much later than others.

    The inputs are outputs too.
    """
    values = inputs = [s.input(slot) for slot in range(2)]
    for _ in range(s.choices.between(5, 8)):
        op, early = s.op(), s.choices.pick(values)
        made = UOp(op, s.moved(values[-1]), s.moved(early))
        values = [*values, UOp(Op.CONTIGUOUS, made)]
    late = UOp(s.op(), values[2], values[-1])
    return s.on_data(nodes.outputs(inputs[1], late, values[-2], inputs[0], values[3]))


def _read_around(s: _Steps) -> Generated:
    """Combine what a buffer held before a STORE, perhaps a gated one, with what it then holds."""
    own, more = s.buffer(0, s.side), s.input(1, s.side)
    first, second = s.op(), s.op()
    before = UOp(first, own, more)
    gate = [param(2, own.shape, dtypes.bool)] if s.index % 2 else []
    done = UOp(Op.AFTER, own, nodes.store(own, before, *gate))
    return s.on_data(nodes.outputs(UOp(second, before, done), UOp(first, done, more)))


def _whole_again(s: _Steps) -> Generated:
    """Write a matrix, then a row, through each view, and compute with what the whole then holds."""
    effects = []
    for k, view in enumerate((*TARGETS, None)):
        shape = (s.side, s.side) if view else (s.side,)
        own, copy = (s.buffer(2 * k + n, *shape) for n in range(2))
        place = view(s.choices, own) if view else nodes.flip_all(own)
        more = param(2 * len(TARGETS) + 2 + k, place.shape, s.dtype)
        done = UOp(Op.AFTER, own, nodes.store(place, more))
        effects.append(nodes.store(copy, UOp(s.op(), done, done)))
    return s.of_effects(effects)


def _crossing(s: _Steps) -> Generated:
    """Write columns and rows of matrices, and a block, one over a part of the other."""
    side, effects = s.side + 2, []
    column, row, block = ((0, 1), (side, 1)), ((2, 0), (1, side)), ((1, 0), (2, 3))
    parts = (column, row), (row, column), (block, column), (column, block)
    for k, (first, second) in enumerate(parts):
        own = s.buffer(3 * k, side, side)
        done = UOp(
            Op.AFTER, own, nodes.store(nodes.shrink(own, *first), s.input(3 * k + 1, *first[1]))
        )
        effects.append(nodes.store(nodes.shrink(done, *second), s.input(3 * k + 2, *second[1])))
    return s.of_effects(effects)


def _values_shared(s: _Steps) -> Generated:
    """Compute a value of a buffer that is written, and use it for another buffer too.

    The STORE to the buffer comes first or last. The value reads the buffer as it is, or a view. The
    other buffer gets the value, or is updated by it.
    """
    op, other, effects = s.op(), s.op(), list[UOp]()
    for k, (is_view, is_updated) in enumerate(product((False, True), repeat=2)):
        own, copy = (s.buffer(1 + 2 * k + n) for n in range(2))
        value = UOp(op, s.moved(own) if is_view else own, s.input(0))
        new = UOp(other, copy, value) if is_updated else value
        kept = value if is_updated else UOp(other, value, value)
        stores = nodes.store(own, kept), nodes.store(copy, new)
        effects += stores if (k + s.index) % 2 else reversed(stores)
    return s.of_effects(effects)


COUNT = len(VIEWS)
GROUPS = (
    ("in-place", (1, 1, 6, 12), _in_place),
    ("changed-after", (1, 1, 6, 12), _changed_after),
    ("partly-over", (2, 2, 6, 12), _partly_over),
    ("read-around", (2, 2, 6, 12), _read_around),
    ("whole-again", (1, 1, 6, 12), _whole_again),
    ("values-shared", (1, 1, 6, 12), _values_shared),
    ("crossing", (1, 1, 6, 12), _crossing),
    ("relayed", (1, 1, 6, 40), _relayed),
    ("overwritten", (1, 1, 6, 40), _mixed),
    ("temporaries", (1, 1, 6, 40), _temporaries),
    ("in-place-alone", (COUNT, 0, COUNT, 3 * COUNT), _alone),
    ("overlaps", (2, 1, 6, 12), _overlapping),
)
"""Each with its counts: in a smoke run of the first dtype and of others, then of more effort."""
