"""Generate level kernel: graphs lowered to each form of kernels, random kernels, and features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import gcd

from uop.compiler.pipeline import lower
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.random_graph import Flavour, flavours_in, stored_graph
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel import features
from uop.conformance.suite.levels.kernel.scalar import (
    KERNEL_OPS,
    Listing,
    Memory,
    Scalars,
    at,
    closed,
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
from uop.conformance.suite.levels.kernel.textbook import textbooks, written
from uop.conformance.suite.levels.nodes import dims, store
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import AxisType, ReduceArg
from uop.spec.dtype import INTS, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

LOWERED: dict[str, tuple[str, ...]] = {
    "integers": ("int32", "uint64"),
    "narrow": ("int8", "uint16"),
    "floats": ("float32", "float64"),
    "small-floats": ("float16", "bfloat16"),
    "pads": ("int64", "float32"),
}
"""The dtypes that lowered graphs start with, by the flavour in which they grow."""

STAGES = {
    "rangeify": (Op.SINK, Op.CALL, Op.RANGE, Op.END),
    "select": (Op.SINK, Op.CALL, Op.SPECIAL),
    "linearize": (Op.SINK, Op.CALL, Op.LINEAR, Op.SPECIAL),
}
"""The stages whose results are three forms of kernels: loops, work items, instruction lists.

Each one comes with what marks its form.
"""

EXACT_DTYPES = (*INTS, dtypes.float32, dtypes.float64)
"""The dtypes on which a device has exact or correctly rounded arithmetic of its own."""

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
    """A kernel under construction: its counters, and LOCAL memory for each item.

    Between two barriers each element of shared memory is written by one work item, or only added
    to, so that the order of the items does not show.
    """

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
        both = UOp(self.scalars.op(), source.load(pair), other)
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


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for name, flavour in flavours_in(vocabulary, LOWERED):
        for home in flavour.homes:
            for stage, needs in STAGES.items():
                args = (home, flavour, stage)
                kind, counts = f"{name}-{stage}", (0, 1, 10)
                yield group("kernel", None, home, kind, counts, _lowered, *args, needs=needs)
    of_op = features.of_op
    for dtype in EXACT_DTYPES:
        both = (dtype, vocabulary)
        for name, kernel, more in KERNELS:
            needs = (*KERNEL_OPS, *more)
            yield group("kernel", None, dtype, name, (1, 3, 20), kernel, *both, needs=needs)
        yield of_op(Op.BARRIER, dtype, "workgroup", (1, 3, 20), workgroup, *both)
    for name in textbooks():
        for dtype in (dtypes.int32, dtypes.float32, dtypes.uint8, dtypes.int64):
            yield of_op(Op.CALL, dtype, name, (1, 4, 20), written, name, dtype)
    yield from features.dense_groups()
    for dtype in (dtypes.int32, dtypes.float32, dtypes.uint8):
        yield of_op(Op.PROGRAM, dtype, "rendered", (1, 1, 10), _rendered, dtype, vocabulary)
    yield from features.groups()


def _lowered(home: DType, flavour: Flavour, stage: str, choices: Choices, index: int) -> Generated:
    """Lower a random graph to a stage of the compiler: several kernels, in an order."""
    source = stored_graph(home, flavour, choices)
    return program(lower(source.root, stage), *source.batches, source=source)


def _loops(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build loops over outputs, closed by END, around folds by REDUCE; some stores are gated."""
    scalars = Scalars(choices, dtype, vocabulary)
    outer = [loop(k, choices.between(1, 6)) for k in range(choices.between(1, 3))]
    value = scalars.value(outer, 3)
    if not dtype.is_float:
        inner = _loops_of_fold(choices, 9, 5)
        op = choices.pick(vocabulary.of((Op.ADD, Op.MUL, Op.MAX)))
        term = scalars.value([*outer, *inner], 3)
        value = UOp(Op.ADD, UOp(Op.REDUCE, term, *inner, arg=ReduceArg(op)), value)
    effect = scalars.stored(value, choices.shuffled(outer))
    return scalars.program(UOp(Op.SINK, closed(effect, outer)))


def _loops_of_fold(choices: Choices, first: int, most: int) -> list[UOp]:
    ids = range(first, first + choices.between(1, 2))
    return [loop(k, choices.between(1, most), AxisType.REDUCE) for k in ids]


def _registers(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build work items that fold into registers of their own; each step uses the one before."""
    scalars = Scalars(choices, dtype, vocabulary)
    return scalars.program(_folding(scalars))


def _linear(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build the same as instructions in an order."""
    kernel = _registers(dtype, vocabulary, choices, index)
    return program(lower(kernel.root, "linearize"), *kernel.batches)


def _rendered(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build the same with its source, which a backend may use or render again."""
    kernel = _registers(dtype, vocabulary, choices, index)
    return program(lower(kernel.root, "render"), *kernel.batches)


def _folding(scalars: Scalars) -> UOp:
    """Build accumulators side by side in one register buffer; the loops write them in turn."""
    choices = scalars.choices
    items = [special(f"gidx{k}", choices.between(1, 6)) for k in range(choices.between(1, 2))]
    loops = _loops_of_fold(choices, 0, 4)
    width = choices.between(1, 3)
    acc = register(0, width, scalars.dtype)
    places = [index_const(k) for k in range(width)]
    starts = [store(at(acc, k), scalars.value(items, 1)) for k in places]
    inside = UOp(Op.AFTER, acc, *starts, *loops)
    one, other = (scalars.place([*items, *loops], width) for _ in range(2))
    operand = UOp(Op.ADD, load(inside, other), scalars.value([*items, *loops], 2))
    step = UOp(scalars.op(), load(inside, one), operand)
    done = UOp(Op.AFTER, acc, closed(store(at(inside, one), step), loops))
    total = load(done, places[0])
    for k in places[1:]:
        total = UOp(scalars.op(), total, load(done, k))
    return UOp(Op.SINK, scalars.stored(total, items))


def _chain(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build two kernels: the second reads, in another order, what the first has written."""
    scalars = Scalars(choices, dtype, vocabulary)
    g = special("gidx0", choices.between(2, 40))
    first = UOp(Op.SINK, scalars.stored(scalars.value([g], 2), [g], gated=False))
    written = scalars.memories[0]
    call = UOp(Op.CALL, first, *(m.argument for m in scalars.memories))
    source = Memory(1, written.count, dtype).param
    element = load(source, scalars.place([g], written.count))
    value = UOp(scalars.op(), element, scalars.small(1, 9))
    second = UOp(Op.SINK, written.store(g, value))
    copy = Memory(len(scalars.memories), written.count, dtype)
    after = UOp(Op.AFTER, written.argument, call)
    return scalars.on_data(UOp(Op.SINK, UOp(Op.CALL, second, copy.argument, after)))


def _twice(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Run one kernel of two outputs twice, the second time on what the first time has written.

    One output is updated in place, and the second run may take the outputs in the other order.
    """
    scalars = Scalars(choices, dtype, vocabulary)
    n = choices.between(2, 40)
    summed, copied, source = memories = [Memory(slot, n, dtype) for slot in range(3)]
    scalars.memories[1:] = [source, source]
    g = special("gidx0", n)
    value = UOp(Op.ADD, summed.load(g), scalars.element([g]))
    turned = modulo(plus(g, choices.below(n)), n)
    body = UOp(
        Op.SINK,
        summed.store(g, value),
        copied.store(g, source.load(turned)),
    )
    first = UOp(Op.CALL, body, *(m.argument for m in memories))
    places = [UOp(Op.AFTER, m.argument, first) for m in choices.shuffled([summed, copied])]
    return scalars.on_data(UOp(Op.SINK, UOp(Op.CALL, body, *places, source.argument)))


KERNELS = (
    ("loops", _loops, (Op.RANGE, Op.END, Op.REDUCE)),
    ("registers", _registers, (Op.SPECIAL, Op.RANGE, Op.END, Op.AFTER)),
    ("linear", _linear, (Op.LINEAR, Op.SPECIAL, Op.RANGE, Op.END, Op.AFTER)),
    ("chain", _chain, (Op.SPECIAL, Op.AFTER)),
    ("twice", _twice, (Op.SPECIAL, Op.AFTER)),
)
"""The name and the generator of each kind of kernel, and the ops that it adds to `KERNEL_OPS`."""
