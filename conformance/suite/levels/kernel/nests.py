"""Generate level kernel, nests: groups of effects in loops, folds inside folds, shared folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Generated
from uop.conformance.suite.levels.kernel.scalar import (
    Memory,
    at,
    closed,
    flat,
    launch,
    load,
    loop,
    special,
    times,
    turned,
    with_contents,
)
from uop.conformance.suite.levels.nodes import store
from uop.interpreter.kernel.schedule import bound
from uop.spec.args import AxisType, RangeArg, ReduceArg, arg_of
from uop.spec.dtype import DType
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

PLACES = 48
"""The elements that each work item may write."""
READ = 23
"""The elements that a kernel reads."""
EXPANDED = (AxisType.UPCAST, AxisType.UNROLL)


def effects(dtype: DType, choices: Choices, index: int) -> Generated:
    """Put groups of several effects into loops that run never, once and more often.

    In every other program, some loops run in some work items. The first programs have the form of
    kernels that a device runs.
    """
    types = FORMS[0 if index < 2 else choices.below(len(FORMS))]
    nests = Nests(choices, dtype, types, skips=bool(index % 2))
    bounds = choices.shuffled((0, 0, 1, choices.between(2, 4)))
    body = UOp(Op.GROUP, *(nests.nest(n, ()) for n in bounds))
    closers = () if nests.item.op is Op.SPECIAL else (nests.item,)
    root = launch(UOp(Op.SINK, closed(body, closers)), *nests.memories)
    return with_contents(root, choices)


@dataclass(frozen=True, slots=True)
class LoopTypes:
    """The axis type of the work items, or None for a SPECIAL, and those of the loops in each."""

    items: AxisType | None
    loops: tuple[AxisType, ...]


FORMS = (
    LoopTypes(None, (AxisType.REDUCE,)),
    LoopTypes(AxisType.LOOP, (AxisType.LOOP,)),
    LoopTypes(AxisType.GLOBAL, (AxisType.REDUCE, *EXPANDED)),
    LoopTypes(AxisType.LOCAL, (AxisType.REDUCE, AxisType.LOOP)),
)


@dataclass(slots=True)
class Nests:
    """Builds nests of loops around groups of effects, each with a place of its own."""

    choices: Choices
    dtype: DType
    types: LoopTypes
    skips: bool
    item: UOp = field(init=False)
    memories: tuple[Memory, ...] = field(init=False)
    used: int = 0
    loops: int = 1

    def __post_init__(self) -> None:
        items, kind = self.choices.between(2, 4), self.types.items
        self.item = special("gidx0", items) if kind is None else loop(0, items, kind)
        sizes = (PLACES * items, READ)
        self.memories = tuple(Memory(slot, n, self.dtype) for slot, n in enumerate(sizes))

    def nest(self, count: int, around: tuple[UOp, ...]) -> UOp:
        """Return a loop around two effects, and around another loop where there is none yet."""
        counter = self._counter(count, self.choices.pick(self.types.loops))
        self.loops += 1
        loops = (*around, counter)
        group = [self.effect(loops) for _ in range(2)]
        if not around and self.choices.chance(50):
            group.insert(self.choices.below(3), self.nest(self.choices.below(4), loops))
        return UOp(Op.END, UOp(Op.GROUP, *group), counter)

    def _counter(self, count: int, kind: AxisType) -> UOp:
        """Return a loop, of no iteration in some of the items."""
        counter = loop(self.loops, count, kind)
        if not self.skips or kind in EXPANDED or self.choices.chance(50):
            return counter
        some = UOp(Op.CMPLT, self.item, index_const(self.choices.between(1, 2)))
        bounds = self.choices.shuffled((index_const(0), index_const(max(count, 1))))
        return counter.with_src([UOp(Op.WHERE, some, *bounds)])

    def effect(self, loops: tuple[UOp, ...]) -> UOp:
        """Store a number, an element, or one more than there was; some stores have a gate."""
        place = self._place([r for r in loops if arg_of(r, RangeArg).axis_type in EXPANDED])
        target, source = (memory.param for memory in self.memories)
        element = load(source, turned((self.item, *loops), READ, self.choices))
        before = load(UOp(Op.AFTER, target, *loops), place)
        number = const(self.choices.between(1, 9), self.dtype)
        value = self.choices.pick((number, element, UOp(Op.ADD, before, number)))
        gates: tuple[UOp, ...] = ()
        if self.choices.chance(30):
            counter = self.choices.pick((self.item, *loops))
            gates = (UOp(Op.CMPLT, counter, index_const(self.choices.between(1, 2))),)
        return store(at(target, place), value, *gates)

    def _place(self, at_once: Sequence[UOp]) -> UOp:
        """Return a place that no other effect has, one for each iteration that runs at once."""
        place = index_const(self.used)
        below = 1
        for r in at_once:
            place = UOp(Op.ADD, place, times(r, below))
            below *= max(bound(r), 1)
        self.used += below
        return UOp(Op.ADD, times(self.item, PLACES), place)


def folds(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold over two loops what a fold over two others gives, in two loops over the outputs.

    Every other program unrolls one of the four.
    """
    outputs, unrolled = ((AxisType.GLOBAL, AxisType.UNROLL), (AxisType.LOOP, AxisType.REDUCE))[
        index % 2
    ]
    around = [loop(k, choices.between(2, 3), outputs) for k in range(2)]
    values = []
    for k, op in enumerate(FOLDS):
        kinds = [AxisType.REDUCE] * 4
        kinds[(0, 2, 3)[k]] = unrolled
        loops = [
            loop(2 + j, choices.between(5, 7) if kind is AxisType.UNROLL else 2, kind)
            for j, kind in enumerate(kinds)
        ]
        outer, inner = loops[:2], loops[2:]
        deep = _fold(op, _element(dtype, (*around, *outer, *inner), choices), inner, choices)
        element = _element(dtype, (*around, *outer), choices)
        other = UOp(choices.pick((Op.ADD, Op.MUL)), deep, element)
        values.append(_fold(choices.pick((Op.ADD, Op.MAX)), other, outer, choices))
    return _kernels(dtype, values, around, choices)


def triangles(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold in each iteration as many elements as its number says, which may be none."""
    n, source = choices.between(3, 6), Memory(1, READ, dtype)
    i, target, stores = loop(0, n), Memory(0, 2 * n, dtype), []
    for k, op in enumerate(choices.shuffled(FOLDS)[:2]):
        count = choices.pick((i, UOp(Op.ADD, i, index_const(k)), UOp(Op.SUB, index_const(n), i)))
        j = UOp(Op.RANGE, count, arg=RangeArg(k + 1, AxisType.REDUCE))
        element = load(source.param, UOp(Op.ADD, i, j))
        folded = UOp(Op.REDUCE, element, j, arg=ReduceArg(op, ()))
        stores.append(store(at(target.param, UOp(Op.ADD, i, index_const(n * k))), folded))
    body = UOp(Op.SINK, closed(UOp(Op.GROUP, *stores), (i,)))
    return with_contents(launch(body, target, source), choices)


def shared_folds(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let work items share folds, several folds in a workgroup."""
    kinds = (AxisType.GLOBAL, AxisType.LOCAL, AxisType.LOCAL)
    around = [loop(k, choices.between(2, 3), kind) for k, kind in enumerate(kinds)]
    shared = loop(3, choices.between(2, 4), AxisType.GROUP_REDUCE)
    own = loop(4, choices.between(2, 5), AxisType.REDUCE)
    values = []
    for op, inner in ((Op.ADD, [shared]), (Op.MAX, [shared, own]), (Op.MUL, [shared, own])):
        term = _element(dtype, (*around, *inner), choices)
        values.append(_fold(op, term, inner, choices))
    return _kernels(dtype, values, around, choices)


def _fold(op: Op, value: UOp, loops: Sequence[UOp], choices: Choices) -> UOp:
    return UOp(Op.REDUCE, value, *choices.shuffled(loops), arg=ReduceArg(op))


def _element(dtype: DType, counters: Sequence[UOp], choices: Choices) -> UOp:
    """Read an element of the second memory of a kernel."""
    return load(Memory(1, READ, dtype).param, turned(counters, READ, choices))


def _kernels(
    dtype: DType, values: Sequence[UOp], around: Sequence[UOp], choices: Choices
) -> Generated:
    """Return a program with a kernel for each value, which stores it in a buffer of its own."""
    count = prod(map(bound, around))
    place = at(Memory(0, count, dtype).param, flat(around))
    bodies = [UOp(Op.SINK, closed(store(place, value), around)) for value in values]
    source = Memory(len(values), READ, dtype).argument
    calls = (
        UOp(Op.CALL, body, Memory(slot, count, dtype).argument, source)
        for slot, body in enumerate(bodies)
    )
    return with_contents(UOp(Op.SINK, *calls), choices)
