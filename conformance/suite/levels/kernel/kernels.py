"""Generate level kernel: graphs lowered to each form of kernels, random kernels, and features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import gcd

from uop.compiler.pipeline import lower
from uop.conformance.suite.case import Source
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph import random_graph
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel import features, scalar
from uop.conformance.suite.levels.kernel.scalar import KERNEL_OPS
from uop.conformance.suite.levels.kernel.textbook import textbooks, written
from uop.conformance.suite.levels.nodes import after, buffer, dims, store
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import AxisType
from uop.spec.dtype import INTS, DType, dtypes
from uop.spec.graph import base_of, calls, leaves, outside_bodies, over, rebuild, slot_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const, param

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
    listing: scalar.Listing = field(default_factory=scalar.Listing)
    scalars: scalar.Scalars = field(init=False)
    counters: list[UOp] = field(init=False)
    item: UOp = field(init=False)
    words: int = field(init=False)
    shared: UOp = field(init=False)
    own: UOp = field(init=False)
    counted: scalar.Memory = field(init=False)
    loops: int = 0

    def __post_init__(self) -> None:
        self.scalars = scalar.Scalars(self.choices, self.dtype, self.vocabulary)
        items, groups = self.choices.between(2, 8), self.choices.between(1, 4)
        self.counters = [scalar.special("gidx0", groups), scalar.special("lidx0", items)]
        self.words, self.item = items * self.choices.between(1, 2), self.counters[1]
        self.shared = scalar.shared(7, self.words, self.dtype)
        self.own = scalar.register(8, 2, self.dtype)
        self.counted = scalar.Memory(COUNTERS, 12, self.dtype)
        for k in range(2):
            self.store(self.own, index_const(k), self.value(1))
        for k in range(self.words // items):
            self.store(self.shared, scalar.plus(self.item, k * items), self.value(1))
        self.listing.barrier()

    def store(self, memory: UOp, i: UOp, value: UOp) -> None:
        self.listing.do(store(scalar.at(memory, i), value))

    def load_now(self, memory: UOp, i: UOp) -> UOp:
        """Load an element after the statements so far."""
        return scalar.load(self.listing.now(memory), i)

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
        turned = scalar.plus(scalar.times(self.item, step), self.choices.below(self.words))
        mine = self.load_now(self.own, index_const(self.choices.below(2)))
        place = scalar.at(self.shared, scalar.modulo(turned, self.words))
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
        counter = scalar.loop(self.loops, self.choices.between(1, 3))
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
        place = scalar.at(target, self.scalars.place(self.counters, count))
        self.listing.do(UOp(Op.ATOMICADD, place, self.value(1)))

    def vectors(self) -> None:
        """Move two elements at a time, in the other order, and select one of them."""
        source = self.scalars.memories[1]
        first = self.scalars.place(self.counters, source.count - 1)
        pair = UOp(Op.STACK, first, scalar.plus(first, 1))
        other = UOp(Op.STACK, self.value(1), self.value(1))
        both = UOp(self.scalars.op(), source.load(pair), other)
        self.store(self.own, dims((0, 1)), UOp(Op.INDEX, both, dims((1, 0))))

    def program(self) -> Generated:
        values = (self.load_now(self.own, index_const(k)) for k in range(2))
        value = UOp(self.scalars.op(), *values)
        self.listing.do(self.scalars.stored(value, self.counters))
        root = scalar.launch(self.listing.body, *self.scalars.memories, self.counted)
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
    for name, flavour in random_graph.flavours_in(vocabulary, LOWERED):
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
    for op, name, dense, few in features.DENSE:
        for dtype in few:
            yield of_op(op, dtype, name, (1, 4, 20), dense, dtype)
    for dtype in (dtypes.int32, dtypes.float32, dtypes.uint8):
        args_ = ("render", dtype, vocabulary)
        yield of_op(Op.PROGRAM, dtype, "rendered", (1, 1, 10), _compiled, *args_)
    yield from features.groups()


def _lowered(
    home: DType, flavour: random_graph.Flavour, stage: str, choices: Choices, index: int
) -> Generated:
    """Lower a random graph to a stage of the compiler: several kernels, in an order."""
    source = random_graph.stored_graph(home, flavour, choices)
    return program(lower(source.root, stage), *source.batches, source=source)


def called(home: DType, flavour: random_graph.Flavour, choices: Choices, index: int) -> Generated:
    """Build a random graph with elementwise ops that CALLs of kernels compute.

    A kernel reads what the graph computes; half of them write over their first operand.
    """
    growth = random_graph.grown(home, flavour, choices)
    graph = UOp(Op.SINK, *(random_graph.stored(growth, choices, u) for u in growth.outputs()))
    data = random_graph.batches(growth, graph)

    def by_kernels(u: UOp, operands: list[UOp]) -> UOp:
        rebuilt = over(u, operands)
        if u.declaration.is_elementwise and choices.chance(40):
            known = [growth.value(v) for v in (u, *u.src) if v in growth.known]
            # An absent element leaves a buffer as it was, and nothing was written there before.
            if len(known) > len(u.src) and all(v.invalid is None for v in known):
                target = growth.blank(u.dtype, u.shape)
                rebuilt = _by_kernel(rebuilt, target, in_place=choices.chance(50))
        return rebuilt

    root = rebuild(graph, by_kernels, outside_bodies)
    return program(root, *data, source=Source(graph, data))


def _by_kernel(u: UOp, target: UOp, in_place: bool) -> UOp:
    """Return a buffer after a kernel that computes an elementwise op into it."""
    slots = range(1, 1 + len(u.src))
    inputs = [param(k, s.shape, s.dtype) for k, s in zip(slots, u.src, strict=True)]
    lowered = lower(
        UOp(Op.SINK, store(buffer(0, u.shape, u.dtype), u.with_src(inputs))), "rangeify"
    )
    (kernel,) = calls(lowered)
    order = [slot_of(base_of(a)) for a in kernel.src[1:]]
    body, sources = kernel.src[0], {0: target, **dict(zip(slots, u.src, strict=True))}
    first = next((p for p in leaves(body) if slot_of(p) and order[slot_of(p)] == 1), None)
    if in_place and first is not None and (u.src[0].dtype, u.src[0].shape) == (u.dtype, u.shape):
        written = next(p for p in leaves(body) if slot_of(p) == 0)
        body = body.substitute({first: written})
        sources[0] = after(target, u.src[0])
    return UOp(Op.AFTER, target, UOp(Op.CALL, body, *(sources[slot] for slot in order)))


def _loops(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build loops over outputs, closed by END, around folds by REDUCE; some stores are gated."""
    scalars = scalar.Scalars(choices, dtype, vocabulary)
    outer = [scalar.loop(k, choices.between(1, 6)) for k in range(choices.between(1, 3))]
    value = scalars.value(outer, 3)
    if not dtype.is_float:
        inner = _loops_of_fold(choices, 9, 5)
        op = choices.pick(vocabulary.of((Op.ADD, Op.MUL, Op.MAX)))
        term = scalars.value([*outer, *inner], 3)
        value = UOp(Op.ADD, scalar.folded(op, term, *inner), value)
    effect = scalars.stored(value, choices.shuffled(outer))
    return scalars.program(UOp(Op.SINK, scalar.closed(effect, outer)))


def _loops_of_fold(choices: Choices, first: int, most: int) -> list[UOp]:
    ids = range(first, first + choices.between(1, 2))
    return [scalar.loop(k, choices.between(1, most), AxisType.REDUCE) for k in ids]


def _registers(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build work items that fold into registers of their own; each step uses the one before."""
    scalars = scalar.Scalars(choices, dtype, vocabulary)
    items = [
        scalar.special(f"gidx{k}", choices.between(1, 6)) for k in range(choices.between(1, 2))
    ]
    loops = _loops_of_fold(choices, 0, 4)
    width = choices.between(1, 3)
    # Accumulators stand side by side in one register buffer; the loops write them in turn.
    acc = scalar.register(0, width, dtype)
    places = [index_const(k) for k in range(width)]
    starts = [store(scalar.at(acc, k), scalars.value(items, 1)) for k in places]
    inside = UOp(Op.AFTER, acc, *starts, *loops)
    one, other = (scalars.place([*items, *loops], width) for _ in range(2))
    operand = UOp(Op.ADD, scalar.load(inside, other), scalars.value([*items, *loops], 2))
    step = UOp(scalars.op(), scalar.load(inside, one), operand)
    done = UOp(Op.AFTER, acc, scalar.closed(store(scalar.at(inside, one), step), loops))
    total = scalar.load(done, places[0])
    for k in places[1:]:
        total = UOp(scalars.op(), total, scalar.load(done, k))
    return scalars.program(UOp(Op.SINK, scalars.stored(total, items)))


def _compiled(
    stage: str, dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    """Build the same as instructions in an order; with its source, which a backend may use or
    render again.
    """
    kernel = _registers(dtype, vocabulary, choices, index)
    return program(lower(kernel.root, stage), *kernel.batches)


def _chain(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build two kernels: the second reads, in another order, what the first has written."""
    scalars = scalar.Scalars(choices, dtype, vocabulary)
    g = scalar.special("gidx0", choices.between(2, 40))
    first = UOp(Op.SINK, scalars.stored(scalars.value([g], 2), [g], gated=False))
    written = scalars.memories[0]
    call = UOp(Op.CALL, first, *(m.argument for m in scalars.memories))
    source = scalar.Memory(1, written.count, dtype).param
    element = scalar.load(source, scalars.place([g], written.count))
    value = UOp(scalars.op(), element, scalars.small(1, 9))
    second = UOp(Op.SINK, written.store(g, value))
    copy = scalar.Memory(len(scalars.memories), written.count, dtype)
    after = UOp(Op.AFTER, written.argument, call)
    return scalars.on_data(UOp(Op.SINK, UOp(Op.CALL, second, copy.argument, after)))


def _twice(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Run one kernel of two outputs twice, the second time on what the first time has written.

    One output is updated in place, and the second run may take the outputs in the other order.
    """
    scalars = scalar.Scalars(choices, dtype, vocabulary)
    n = choices.between(2, 40)
    summed, copied, source = memories = [scalar.Memory(slot, n, dtype) for slot in range(3)]
    scalars.memories[1:] = [source, source]
    g = scalar.special("gidx0", n)
    value = UOp(Op.ADD, summed.load(g), scalars.element([g]))
    turned = scalar.modulo(scalar.plus(g, choices.below(n)), n)
    body = UOp(Op.SINK, summed.store(g, value), copied.store(g, source.load(turned)))
    first = UOp(Op.CALL, body, *(m.argument for m in memories))
    places = [UOp(Op.AFTER, m.argument, first) for m in choices.shuffled([summed, copied])]
    return scalars.on_data(UOp(Op.SINK, UOp(Op.CALL, body, *places, source.argument)))


linear = partial(_compiled, "linearize")
KERNELS = (
    ("loops", _loops, (Op.RANGE, Op.END, Op.REDUCE)),
    ("registers", _registers, (Op.SPECIAL, Op.RANGE, Op.END, Op.AFTER)),
    ("linear", linear, (Op.LINEAR, Op.SPECIAL, Op.RANGE, Op.END, Op.AFTER)),
    ("chain", _chain, (Op.SPECIAL, Op.AFTER)),
    ("twice", _twice, (Op.SPECIAL, Op.AFTER)),
)
"""The name and the generator of each kind of kernel, and the ops that it adds to `KERNEL_OPS`."""
