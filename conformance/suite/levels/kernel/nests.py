"""Generate level kernel, nests: effects and folds in loops, and LOADs of what others stored.

A compiler that reorders accesses must compare their places, and may not take two PARAMs for two
memories.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Generated
from uop.conformance.suite.levels.kernel import scalar
from uop.conformance.suite.levels.nodes import store
from uop.interpreter.kernel.schedule import bound
from uop.spec.args import AxisType, RangeArg, arg_of
from uop.spec.dtype import DType
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

DISTANCE = 3
"""The largest distance between two accesses of one iteration."""

PLACES = 48
"""The elements that each work item may write."""
READ = 23
"""The elements that a kernel reads."""
ODD = (3, 5, 6, 7, 9)
EXPANDED = (AxisType.UPCAST, AxisType.UNROLL)
MASKS = (
    *product((Op.CMPLT,), (0, 1), (True, False)),
    *((Op.CMPNE, 0, True), (Op.CMPNE, 1, True)),
)
"""How the numbers of an element and of the iteration compare: what is added to the second, and
whether the iteration is the first.
"""


def effects(dtype: DType, choices: Choices, index: int) -> Generated:
    """Put groups of several effects into loops that run never, once and more often.

    In every other program, some loops run in some work items. The first programs have the form of
    kernels that a device runs.
    """
    types = FORMS[0 if index < 2 else choices.below(len(FORMS))]
    nests = Nests(choices, dtype, types, skips=bool(index % 2))
    bounds = choices.shuffled((0, 0, 1, choices.between(2, 4)))
    body = scalar.of_each(nests.item, [nests.nest(n, ()) for n in bounds])
    return scalar.kernel(choices, [body], *nests.memories)


LoopTypes = tuple[AxisType | None, tuple[AxisType, ...]]
"""The axis type of the work items, or None for a SPECIAL, and those of the loops in each."""
FORMS: tuple[LoopTypes, ...] = (
    (None, (AxisType.REDUCE,)),
    (AxisType.LOOP, (AxisType.LOOP,)),
    (AxisType.GLOBAL, (AxisType.REDUCE, *EXPANDED)),
    (AxisType.LOCAL, (AxisType.REDUCE, AxisType.LOOP)),
)


@dataclass(slots=True)
class Nests:
    """Builds nests of loops around groups of effects, each with a place of its own."""

    choices: Choices
    dtype: DType
    types: LoopTypes
    skips: bool
    item: UOp = field(init=False)
    memories: tuple[scalar.Memory, ...] = field(init=False)
    used: int = 0
    loops: int = 1

    def __post_init__(self) -> None:
        items, (kind, _) = self.choices.between(2, 4), self.types
        self.item = scalar.special("gidx0", items) if kind is None else scalar.loop(0, items, kind)
        sizes = (PLACES * items, READ)
        self.memories = tuple(scalar.Memory(slot, n, self.dtype) for slot, n in enumerate(sizes))

    def nest(self, count: int, around: tuple[UOp, ...]) -> UOp:
        """Return a loop around two effects, and around another loop where there is none yet."""
        counter = self._counter(count, self.choices.pick(self.types[1]))
        self.loops += 1
        loops = (*around, counter)
        group = [self.effect(loops) for _ in range(2)]
        if not around and self.choices.chance(50):
            group.insert(self.choices.below(3), self.nest(self.choices.below(4), loops))
        return UOp(Op.END, UOp(Op.GROUP, *group), counter)

    def _counter(self, count: int, kind: AxisType) -> UOp:
        """Return a loop, of no iteration in some of the items."""
        counter = scalar.loop(self.loops, count, kind)
        if not self.skips or kind in EXPANDED or self.choices.chance(50):
            return counter
        some = UOp(Op.CMPLT, self.item, index_const(self.choices.between(1, 2)))
        bounds = self.choices.shuffled((index_const(0), index_const(max(count, 1))))
        return counter.with_src([UOp(Op.WHERE, some, *bounds)])

    def effect(self, loops: tuple[UOp, ...]) -> UOp:
        """Store a number, an element, or one more than there was; some stores have a gate."""
        place = self._place([r for r in loops if arg_of(r, RangeArg).axis_type in EXPANDED])
        target, source = (memory.param for memory in self.memories)
        element = scalar.load(source, scalar.turned((self.item, *loops), READ, self.choices))
        before = scalar.load(UOp(Op.AFTER, target, *loops), place)
        number = const(self.choices.between(1, 9), self.dtype)
        value = self.choices.pick((number, element, UOp(Op.ADD, before, number)))
        gates: tuple[UOp, ...] = ()
        if self.choices.chance(30):
            counter = self.choices.pick((self.item, *loops))
            gates = (UOp(Op.CMPLT, counter, index_const(self.choices.between(1, 2))),)
        return store(scalar.at(target, place), value, *gates)

    def _place(self, at_once: Sequence[UOp]) -> UOp:
        """Return a place that no other effect has, one for each iteration that runs at once."""
        place = index_const(self.used)
        below = 1
        for r in at_once:
            place = UOp(Op.ADD, place, scalar.times(r, below))
            below *= max(bound(r), 1)
        self.used += below
        return UOp(Op.ADD, scalar.times(self.item, PLACES), place)


def folds(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold over two loops what a fold over two others gives, in two loops over the outputs.

    Every other program unrolls one of the four.
    """
    outputs, unrolled = ((AxisType.GLOBAL, AxisType.UNROLL), (AxisType.LOOP, AxisType.REDUCE))[
        index % 2
    ]
    around = [scalar.loop(k, choices.between(2, 3), outputs) for k in range(2)]
    values = []
    for k, op in enumerate(FOLDS):
        kinds = [AxisType.REDUCE] * 4
        kinds[(0, 2, 3)[k]] = unrolled
        loops = [
            scalar.loop(2 + j, choices.between(5, 7) if kind is AxisType.UNROLL else 2, kind)
            for j, kind in enumerate(kinds)
        ]
        outer, inner = loops[:2], loops[2:]
        element = _element(dtype, (*around, *outer, *inner), choices)
        deep = scalar.folded(op, element, *choices.shuffled(inner))
        element = _element(dtype, (*around, *outer), choices)
        other = UOp(choices.pick((Op.ADD, Op.MUL)), deep, element)
        fold = choices.pick((Op.ADD, Op.MAX))
        values.append(scalar.folded(fold, other, *choices.shuffled(outer)))
    return _kernels(dtype, values, around, choices)


def triangles(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold in each iteration as many elements as its number says, which may be none."""
    n, source = choices.between(3, 6), scalar.Memory(1, READ, dtype)
    i, target, stores = scalar.loop(0, n), scalar.Memory(0, 2 * n, dtype), []
    for k, op in enumerate(choices.shuffled(FOLDS)[:2]):
        count = choices.pick((i, scalar.plus(i, k), UOp(Op.SUB, index_const(n), i)))
        j = UOp(Op.RANGE, count, arg=RangeArg(k + 1, AxisType.REDUCE))
        element = source.load(UOp(Op.ADD, i, j))
        stores.append(target.store(scalar.plus(i, n * k), scalar.folded(op, element, j)))
    return scalar.kernel(choices, [scalar.of_each(i, stores)], target, source)


def masked(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold the elements before each one, after it, and all others, by a mask: as scans do."""
    n = choices.between(3, 6)
    i, source, folds = scalar.loop(0, n), scalar.Memory(1, n, dtype), []
    for k, (op, added, is_first) in enumerate(MASKS):
        j = scalar.loop(1 + k, n, AxisType.REDUCE)
        first, second = (i, j) if is_first else (j, i)
        mask = UOp(op, first, scalar.plus(second, added) if added else second)
        value = UOp(Op.WHERE, mask, source.load(j), const(choices.below(2), dtype))
        folds.append(scalar.folded(choices.pick(FOLDS), value, j))
    target = scalar.Memory(0, n * len(MASKS), dtype)
    return scalar.kernel(
        choices, [scalar.of_each(i, target.side_by_side(i, folds))], target, source
    )


def terms(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold elements, products, squares and differences over one loop or two, in up to two loops.

    Each fold has a kernel of its own, as a scheduler makes them. Bounds are no multiples of 4.
    """
    calls = []
    for k, (outer, inner, op, term) in enumerate(TERMS):
        kind = (AxisType.LOOP, AxisType.GLOBAL)[(k + index) % 2]
        around = [scalar.loop(n, choices.between(2, 3), kind) for n in range(outer)]
        loops = [scalar.loop(2 + n, choices.pick(ODD), AxisType.REDUCE) for n in range(inner)]
        sizes = [prod(map(bound, some)) for some in (around, [*around, *loops], loops)]
        target, a, b = (scalar.Memory(n, size, dtype) for n, size in enumerate(sizes))
        value = term(a.load(scalar.flat((*around, *loops))), b.load(scalar.flat(loops)))
        store_fold = target.store(scalar.flat(around), scalar.folded(op, value, *loops))
        body = UOp(Op.SINK, scalar.closed(store_fold, around))
        memories = (scalar.Memory(3 * k + n, size, dtype) for n, size in enumerate(sizes))
        calls.append(UOp(Op.CALL, body, *(m.argument for m in memories)))
    return scalar.with_contents(UOp(Op.SINK, *calls), choices)


TERMS: tuple[tuple[int, int, Op, Callable[[UOp, UOp], UOp]], ...] = (
    (0, 1, Op.ADD, lambda a, b: UOp(Op.MUL, a, b)),
    (1, 1, Op.ADD, lambda a, b: UOp(Op.MUL, a, b)),
    (1, 2, Op.ADD, lambda a, b: a),
    (2, 1, Op.ADD, lambda a, b: UOp(Op.MUL, a, a)),
    (1, 2, Op.MAX, lambda a, b: UOp(Op.SUB, a, b)),
    (1, 1, Op.MUL, lambda a, b: a),
    (0, 2, Op.ADD, lambda a, b: UOp(Op.ADD, a, b)),
    (1, 1, Op.MAX, lambda a, b: a),
)
"""The loops around a fold, those that it folds over, its op, and what it folds of two elements."""


def shared_folds(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let work items share folds, several folds in a workgroup."""
    kinds = (AxisType.GLOBAL, AxisType.LOCAL, AxisType.LOCAL)
    around = [scalar.loop(k, choices.between(2, 3), kind) for k, kind in enumerate(kinds)]
    together = scalar.loop(3, choices.between(2, 4), AxisType.GROUP_REDUCE)
    own = scalar.loop(4, choices.between(2, 5), AxisType.REDUCE)
    values = []
    for op, inner in ((Op.ADD, [together]), (Op.MAX, [together, own]), (Op.MUL, [together, own])):
        term = _element(dtype, (*around, *inner), choices)
        values.append(scalar.folded(op, term, *choices.shuffled(inner)))
    return _kernels(dtype, values, around, choices)


def _element(dtype: DType, counters: Sequence[UOp], choices: Choices) -> UOp:
    return scalar.Memory(1, READ, dtype).load(scalar.turned(counters, READ, choices))


def _kernels(
    dtype: DType, values: Sequence[UOp], around: Sequence[UOp], choices: Choices
) -> Generated:
    """Return a program with a kernel for each value, which stores it in a buffer of its own."""
    count = prod(map(bound, around))
    place = scalar.Memory(0, count, dtype).at(scalar.flat(around))
    bodies = [UOp(Op.SINK, scalar.closed(store(place, value), around)) for value in values]
    source = scalar.Memory(len(values), READ, dtype).argument
    calls = (
        UOp(Op.CALL, body, scalar.Memory(slot, count, dtype).argument, source)
        for slot, body in enumerate(bodies)
    )
    return scalar.with_contents(UOp(Op.SINK, *calls), choices)


def _op(choices: Choices) -> Op:
    return choices.pick((Op.ADD, Op.SUB, Op.MUL))


def carried(dtype: DType, choices: Choices, index: int) -> Generated:
    """Run loops whose iterations read what others write, by one PARAM or by two of one buffer.

    They store a new value, that or what they read, or that under a gate.
    """
    effects, arguments = [], []
    for id, way in enumerate(choices.shuffled(("whole", "whole", "chosen", "chosen", "gated"))):
        n = choices.between(4, 12)
        written, source = (scalar.Memory(3 * id + k, n + DISTANCE, dtype) for k in (0, 1))
        again = scalar.Memory(3 * id + 2, written.count, dtype)
        i = scalar.loop(id, n)
        here, there = choices.shuffled(range(DISTANCE + 1))[:2]
        # Every second loop reads the buffer that it writes through a PARAM of its own.
        read = (again if id % 2 else written).load(scalar.plus(i, there))
        new = UOp(_op(choices), read, source.load(scalar.plus(i, choices.below(DISTANCE))))
        value = UOp(Op.WHERE, _every_second(i), new, read) if way == "chosen" else new
        gate = [_every_second(i)] if way == "gated" else []
        effects.append(UOp(Op.END, written.store(scalar.plus(i, here), value, *gate), i))
        arguments += [written.argument, source.argument, written.argument]
    return scalar.with_contents(
        UOp(Op.SINK, UOp(Op.CALL, UOp(Op.SINK, *effects), *arguments)), choices
    )


def _every_second(i: UOp) -> UOp:
    return UOp(Op.CMPNE, scalar.modulo(i, 2), index_const(0))


def totals(dtype: DType, choices: Choices, index: int) -> Generated:
    """Add up elements in memory that each iteration reads anew, and keep what they were."""
    n, effects, memories = choices.between(3, 9), [], []
    for k in range(4):
        total, steps, source = (
            scalar.Memory(3 * k + m, count, dtype) for m, count in enumerate((2, n, n))
        )
        i, place = scalar.loop(k, n), index_const(choices.below(2))
        held = scalar.load(UOp(Op.AFTER, total.param, i), place)
        new = UOp(_op(choices), held, source.load(i))
        gate = (_every_second(i),) if k == 3 else ()
        stores = (total.store(place, new, *gate), steps.store(i, held))
        effects.append(UOp(Op.END, UOp(Op.GROUP, *stores), i))
        memories += [total, steps, source]
    return scalar.kernel(choices, effects, *memories)


def overwritten(dtype: DType, choices: Choices, index: int) -> Generated:
    """Write elements several times in nested loops, so that the order of iterations shows."""
    rows, columns = choices.between(2, 5), choices.between(2, 5)
    effects, memories = [], []
    for k in range(4):
        i, j = scalar.loop(2 * k, rows), scalar.loop(2 * k + 1, columns)
        places = (
            UOp(Op.ADD, i, j),
            UOp(Op.ADD, scalar.times(j, 2), i),
            scalar.modulo(scalar.flat((i, j)), rows),
        )
        written = scalar.Memory(2 * k, rows + 2 * columns, dtype)
        source = scalar.Memory(2 * k + 1, rows * columns, dtype)
        effect = written.store(choices.pick(places), source.load(scalar.flat((i, j))))
        effects.append(scalar.closed(effect, (i, j)))
        memories += [written, source]
    return scalar.kernel(choices, effects, *memories)


def neighbours(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item read what other items have stored to LOCAL memories, after a barrier.

    The memories have equal sizes and dtypes. One barrier serves all of them, or each has its own.
    What is read goes through a chain of ops, each of which rounds.
    """
    items, count = choices.between(3, 8), 3
    item = scalar.special("lidx0", items)
    target, source = scalar.Memory(0, items * count, dtype), scalar.Memory(1, items * count, dtype)
    memories = [scalar.shared(2 + k, items, dtype) for k in range(count)]
    own = [source.load(scalar.plus(scalar.times(item, count), k)) for k in range(count)]
    stored = [store(scalar.at(m, item), value) for m, value in zip(memories, own, strict=True)]
    barriers = [UOp(Op.BARRIER, one) for one in stored]
    if index % 2:
        barriers = [UOp(Op.BARRIER, UOp(Op.GROUP, *stored))] * count
    values = []
    for k, (memory, barrier) in enumerate(zip(memories, barriers, strict=True)):
        distance = choices.between(1, items - 1)
        mirrored = UOp(Op.SUB, index_const(items - 1), item)
        place = choices.pick((scalar.modulo(scalar.plus(item, distance), items), mirrored))
        value = scalar.load(UOp(Op.AFTER, memory, barrier), place)
        for op in (_op(choices) for _ in range(2 * k)):
            value = UOp(op, value, choices.pick((value, own[k], const(3, dtype))))
        values.append(value)
    return scalar.kernel(choices, target.side_by_side(item, values), target, source)


def led(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let one item, or a few, store to LOCAL memories, and every item read them after a barrier."""
    items = choices.between(3, 8)
    item = scalar.special("lidx0", items)
    leaders = (1, choices.between(1, items - 1), items - 1)
    target, source = scalar.Memory(0, items * len(leaders), dtype), scalar.Memory(1, items, dtype)
    own, values = source.load(item), []
    for k, few in enumerate(leaders):
        memory = scalar.shared(2 + k, few, dtype)
        place = choices.pick((item, UOp(Op.SUB, index_const(items - 1), item)))
        stored = store(scalar.at(memory, place), own, UOp(Op.CMPLT, place, index_const(few)))
        written = UOp(Op.AFTER, memory, UOp(Op.BARRIER, stored))
        value = scalar.load(written, scalar.modulo(scalar.plus(item, choices.below(items)), few))
        values.append(UOp(_op(choices), value, own))
    return scalar.kernel(choices, target.side_by_side(item, values), target, source)
