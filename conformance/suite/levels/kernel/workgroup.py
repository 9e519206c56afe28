"""Generate level kernel, workgroups: LOCAL memory and barriers, branches, atomics, vectors.

Between two barriers each element of shared memory is written by one work item, or only added to, so
that the order of the items does not show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import gcd

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Generated
from uop.conformance.suite.levels.kernel.listing import Listing
from uop.conformance.suite.levels.kernel.scalar import (
    Memory,
    Scalars,
    at,
    launch,
    load,
    loop,
    modulo,
    plus,
    register,
    shared,
    special,
    times,
)
from uop.conformance.suite.levels.nodes import dims, store
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.dtype import DType
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

PHASES = 5
COUNTERS = 3
"""The slot of the buffer that is only added to."""


def workgroup(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build groups of a few items: phases with a barrier between them, then a store for each."""
    writer = Writer(choices, dtype, vocabulary)
    for _ in range(choices.between(2, PHASES)):
        choices.weighted(TABLE)(writer)
        writer.listing.barrier()
    return writer.program()


@dataclass(slots=True)
class Writer:
    """A kernel under construction: its counters, and LOCAL memory for each item."""

    choices: Choices
    dtype: DType
    vocabulary: Vocabulary
    listing: Listing = field(default_factory=Listing)
    scalars: Scalars = field(init=False)
    counters: list[UOp] = field(init=False)
    words: int = field(init=False)
    loops: int = 0

    def __post_init__(self) -> None:
        self.scalars = Scalars(self.choices, self.dtype, self.vocabulary)
        items, groups = self.choices.between(2, 8), self.choices.between(1, 4)
        self.counters = [special("gidx0", groups), special("lidx0", items)]
        self.words = items * self.choices.between(1, 2)
        for k in range(2):
            self.store(self.own, index_const(k), self.value(1))
        for k in range(self.words // items):
            self.store(self.shared, plus(self.item, k * items), self.value(1))
        self.listing.barrier()

    @property
    def item(self) -> UOp:
        return self.counters[1]

    @property
    def shared(self) -> UOp:
        return shared(7, self.words, self.dtype)

    @property
    def own(self) -> UOp:
        return register(8, 2, self.dtype)

    @property
    def counted(self) -> Memory:
        return Memory(COUNTERS, 12, self.dtype)

    def store(self, memory: UOp, i: UOp, value: UOp) -> None:
        self.listing.do(store(at(memory, i), value))

    def load_now(self, memory: UOp, i: UOp) -> UOp:
        """Load an element after the statements so far."""
        return load(self.listing.now(memory), i)

    def value(self, depth: int) -> UOp:
        return self.scalars.value(self.counters, depth)

    def gate(self) -> UOp:
        """Return a gate by the number of the item or the group, or by data."""
        if self.choices.chance(50):
            counter = self.choices.pick(self.counters)
            return UOp(Op.CMPLT, counter, index_const(self.choices.between(1, 4)))
        limit = self.scalars.small(1, 60)
        return UOp(Op.CMPLT, self.scalars.element(self.counters), limit)

    def fold(self) -> None:
        """Fold a register and an element that any item of the group may have written."""
        other = self.load_now(self.shared, self.scalars.place(self.counters[1:], self.words))
        k = index_const(self.choices.below(2))
        step = UOp(self.scalars.op(), self.load_now(self.own, k), other)
        self.store(self.own, k, UOp(Op.ADD, step, self.value(1)))

    def scatter(self) -> None:
        """Let each item write an element of its own, some of them only where a gate is true."""
        step = self.choices.pick([k for k in range(1, self.words) if gcd(k, self.words) == 1])
        turned = plus(times(self.item, step), self.choices.below(self.words))
        mine = self.load_now(self.own, index_const(self.choices.below(2)))
        place = at(self.shared, modulo(turned, self.words))
        effect = store(place, UOp(Op.ADD, mine, self.value(1)))
        if self.choices.chance(40):
            with self.listing.where(self.gate()):
                self.listing.do(effect)
        else:
            self.listing.do(effect)

    def branch(self) -> None:
        """Branch: some items run statements, and some of those run more of them."""
        with self.listing.where(self.gate()):
            self.fold()
            if self.choices.chance(50):
                with self.listing.where(self.gate()):
                    self.fold()

    def rounds(self) -> None:
        """Build a loop in which all items write, wait, read and wait."""
        counter = loop(self.loops, self.choices.between(1, 3))
        self.loops += 1
        with self.listing.each(counter):
            self.counters.append(counter)
            self.scatter()
            self.listing.barrier()
            self.fold()
            self.listing.barrier()
            self.counters.remove(counter)

    def add(self) -> None:
        """Let every item add to an element, of LOCAL memory or of a buffer of all groups."""
        if self.dtype.is_float:
            self.fold()  # A sum of floats in no order has more than one result.
            return
        target, count = self.choices.pick((
            (self.shared, self.words), (self.counted.param, self.counted.count),
        ))  # fmt: skip
        place = at(target, self.scalars.place(self.counters, count))
        self.listing.do(UOp(Op.ATOMICADD, place, self.value(1)))

    def vectors(self) -> None:
        """Move two elements at a time, in the other order, and select one of them."""
        source = self.scalars.memories[1]
        first = self.scalars.place(self.counters, source.count - 1)
        pair = UOp(Op.STACK, first, plus(first, 1))
        other = UOp(Op.STACK, self.value(1), self.value(1))
        both = UOp(self.scalars.op(), load(source.param, pair), other)
        self.store(self.own, dims((0, 1)), UOp(Op.INDEX, both, dims((1, 0))))

    def program(self) -> Generated:
        values = (self.load_now(self.own, index_const(k)) for k in range(2))
        value = UOp(self.scalars.op(), *values)
        self.listing.do(self.scalars.stored(value, self.counters))
        root = launch(self.listing.body, *self.scalars.memories, self.counted)
        return self.scalars.on_data(root)


TABLE: tuple[tuple[Callable[[Writer], None], int], ...] = (
    (Writer.fold, 3),
    (Writer.scatter, 4),
    (Writer.branch, 2),
    (Writer.rounds, 2),
    (Writer.add, 3),
    (Writer.vectors, 2),
)
