"""Build what kernels share: memories, places in them, and random scalar expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from math import prod

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.group import Generated, program, with_data
from uop.conformance.suite.values import draw_mixed, draw_ordinary
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.kernel.schedule import bound
from uop.spec import args
from uop.spec.dtype import DType, dtypes
from uop.spec.graph import slots_of, toposort
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable
from uop.spec.uop import UOp, const, index_const, variable


class Listing:
    """A LINEAR under construction; values that a block computes do not exist after it."""

    def __init__(self) -> None:
        self._order: list[UOp] = []
        self._values: list[set[UOp]] = [set()]
        self._effects: set[UOp] = set()
        self._last: UOp | None = None

    @property
    def body(self) -> UOp:
        return UOp(Op.LINEAR, *self._order)

    def do(self, effect: UOp) -> UOp:
        """List a statement, after its operands that neither this block nor an outer one lists."""
        for u in toposort([effect], lambda u: () if self._is_listed(u) else u.src):
            if not self._is_listed(u):
                self._order.append(u)
                (self._effects if u.dtype is dtypes.void else self._values[-1]).add(u)
        if effect.dtype is dtypes.void:
            self._last = effect
        return effect

    def now(self, place: UOp) -> UOp:
        """Return a new node for a place: a read of it differs from earlier reads."""
        return place if self._last is None else UOp(Op.AFTER, place, self._last)

    def barrier(self) -> None:
        self.do(UOp(Op.BARRIER, *([] if self._last is None else [self._last])))

    @contextmanager
    def where(self, gate: UOp) -> Iterator[None]:
        """Open a block for the work items where the gate is true; each IF is a node of its own."""
        start = self.do(UOp(Op.IF, gate, tag=str(len(self._order))))
        with self._block():
            yield
        self._close(UOp(Op.ENDIF, start))

    @contextmanager
    def each(self, counter: UOp) -> Iterator[None]:
        """Open the body of a loop, which must hold a statement."""
        self.do(counter)
        with self._block():
            yield
        assert self._last is not None
        self._close(UOp(Op.END, self._last, counter))

    @contextmanager
    def _block(self) -> Iterator[None]:
        self._values.append(set())
        yield
        self._values.pop()

    def _close(self, end: UOp) -> None:
        self._order.append(end)
        self._effects.add(end)
        self._last = end

    def _is_listed(self, u: UOp) -> bool:
        return u in self._effects or any(u in values for values in self._values)


KERNEL_OPS = (
    *(Op.SINK, Op.CALL, Op.STORE, Op.LOAD, Op.INDEX),
    *(Op.PARAM, Op.BUFFER, Op.CONST, Op.ADD, Op.MUL, Op.MOD),
)
"""What every kernel here is made of."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer in GLOBAL memory, with its slot in the program and in the body."""

    slot: int
    count: int
    dtype: DType

    @property
    def param(self) -> UOp:
        """Return the PARAM inside a kernel."""
        arg = args.ParamArg(self.slot, self.dtype, None, args.AddrSpace.GLOBAL)
        return UOp(Op.PARAM, nodes.dims((self.count,)), arg=arg)

    def at(self, i: UOp) -> UOp:
        return at(self.param, i)

    def load(self, i: UOp) -> UOp:
        return load(self.param, i)

    def store(self, i: UOp, value: UOp, *gate: UOp) -> UOp:
        return nodes.store(self.at(i), value, *gate)

    def side_by_side(self, i: UOp, values: Sequence[UOp]) -> list[UOp]:
        """Store all values of each iteration of a loop, or of each item."""
        first = times(i, len(values))
        return [self.store(plus(first, k), value) for k, value in enumerate(values)]

    @property
    def argument(self) -> UOp:
        """Return the BUFFER that is an argument of a CALL."""
        return nodes.buffer(self.slot, (self.count,), self.dtype)


@dataclass(frozen=True, slots=True)
class Row(Memory):
    """A memory that is the middle row of a matrix of three: an argument that is a view."""

    @property
    def argument(self) -> UOp:
        matrix = nodes.buffer(self.slot, (3, self.count), self.dtype)
        return nodes.reshape(nodes.shrink(matrix, (1, 0), (1, self.count)), (self.count,))


@dataclass(frozen=True, slots=True)
class Number:
    """An index that is an argument of a kernel, with its slot in the program or in the body."""

    slot: int
    low: int
    high: int

    @property
    def param(self) -> UOp:
        """Return the PARAM, which inside a kernel and as its argument is the same."""
        return variable(self.slot, self.low, self.high)

    argument = param


def register(slot: int, count: int, dtype: DType) -> UOp:
    return UOp(
        Op.BUFFER, nodes.dims((count,)), arg=args.BufferArg(slot, dtype, None, args.AddrSpace.REG)
    )


def shared(slot: int, count: int, dtype: DType) -> UOp:
    """Return LOCAL memory, which the items of a group have together."""
    return UOp(
        Op.BUFFER, nodes.dims((count,)), arg=args.BufferArg(slot, dtype, None, args.AddrSpace.LOCAL)
    )


def loop(id: int, count: int, kind: args.AxisType = args.AxisType.LOOP) -> UOp:
    return UOp(Op.RANGE, index_const(count), arg=args.RangeArg(id, kind))


def special(name: str, count: int) -> UOp:
    return UOp(Op.SPECIAL, index_const(count), arg=args.SpecialArg(name))


def at(memory: UOp, i: UOp) -> UOp:
    return UOp(Op.INDEX, memory, i)


def load(memory: UOp, i: UOp) -> UOp:
    return UOp(Op.LOAD, at(memory, i))


def plus(i: UOp, step: int) -> UOp:
    return UOp(Op.ADD, i, index_const(step))


def times(i: UOp, factor: int) -> UOp:
    return UOp(Op.MUL, i, index_const(factor))


def modulo(i: UOp, count: int) -> UOp:
    return UOp(Op.MOD, i, index_const(count))


def less(a: UOp, b: UOp) -> UOp:
    return UOp(Op.CMPLT, a, b)


def total(first: UOp, *others: UOp) -> UOp:
    """Add up values from the first to the last."""
    for other in others:
        first = UOp(Op.ADD, first, other)
    return first


def flat(counters: Iterable[UOp]) -> UOp:
    """Return the number that has the counters as digits, the last one the lowest."""
    place = index_const(0)
    for counter in counters:
        place = UOp(Op.ADD, times(place, bound(counter)), counter)
    return place


def turned(counters: Iterable[UOp], count: int, choices: Choices) -> UOp:
    """Return an index inside so many elements that depends on each of these counters."""
    total = index_const(choices.below(count))
    for counter in counters:
        total = UOp(Op.ADD, total, times(counter, choices.between(1, 7)))
    return modulo(total, count)


def folded(op: Op, value: UOp, *loops: UOp) -> UOp:
    """Fold a value over loops."""
    return UOp(Op.REDUCE, value, *loops, arg=args.ReduceArg(op))


def closed(effect: UOp, loops: Sequence[UOp]) -> UOp:
    """Put an effect inside loops, the last of which is the innermost."""
    for r in reversed(loops):
        effect = UOp(Op.END, effect, r)
    return effect


def of_each(i: UOp, effects: Iterable[UOp]) -> UOp:
    """Return the effects of each iteration of a loop, or of each item."""
    return closed(UOp(Op.GROUP, *effects), (i,) if i.op is Op.RANGE else ())


def launch(body: UOp, *memories: Memory) -> UOp:
    """Return a program of one kernel."""
    return UOp(Op.SINK, UOp(Op.CALL, body, *(m.argument for m in memories)))


def kernel(choices: Choices, effects: Iterable[UOp], *memories: Memory) -> Generated:
    """Return a program of one kernel with these effects, in no order, and with contents."""
    return with_contents(launch(UOp(Op.SINK, *effects), *memories), choices)


def with_contents(root: UOp, choices: Choices) -> Generated:
    """Return a program with contents of every buffer: ordinary ones, then any bits."""
    return numbered(with_data(root, choices, draw_ordinary, draw_mixed))


def numbered(made: Generated) -> Generated:
    """Return a program whose variables have both ends of their ranges, and what is between, in
    three batches.
    """
    sizes = {slot: u for slot, u in slots_of(made.root).items() if is_variable(u)}
    if not sizes:
        return made
    batches = (
        dict(batch.inputs) | {slot: nodes.number_of(u, turn + slot) for slot, u in sizes.items()}
        for turn, batch in zip(range(3), cycle(made.batches), strict=False)
    )
    return program(made.root, *batches)


@dataclass(slots=True)
class Scalars:
    """Builds random expressions of one dtype over elements of two memories, and stores them.

    The size of memory 0, which is stored to, is known after a store.
    """

    choices: Choices
    dtype: DType
    vocabulary: Vocabulary
    memories: list[Memory] = field(init=False)

    def __post_init__(self) -> None:
        sizes = (0, *(self.choices.between(5, 40) for _ in range(2)))
        self.memories = [Memory(slot, n, self.dtype) for slot, n in enumerate(sizes)]

    @property
    def ops(self) -> tuple[Op, ...]:
        """Ops that have one result for all operands of the dtype."""
        exact = () if self.dtype.is_float else (Op.MAX, Op.XOR, Op.AND, Op.OR)
        ops = (Op.ADD, Op.MUL, Op.SUB, *exact)
        return self.vocabulary.of(ops, self.dtype) or self.vocabulary.of(ops)

    def op(self) -> Op:
        return self.choices.pick(self.ops)

    def place(self, variables: Iterable[UOp], count: int) -> UOp:
        """Return an index that depends on some variables, inside `count` elements."""
        total = index_const(self.choices.below(count))
        for v in variables:
            total = UOp(Op.ADD, total, times(v, self.choices.below(5)))
        return modulo(total, count)

    def small(self, low: int, high: int) -> UOp:
        """Return a constant between two numbers."""
        return const(self.choices.between(low, high), self.dtype)

    def element(self, variables: Sequence[UOp]) -> UOp:
        """Read an element of a memory, or a small number where a gate keeps the index inside."""
        choices, source = self.choices, self.memories[self.choices.between(1, 2)]
        if choices.chance(60) or not self.vocabulary.has(Op.CMPLT):
            return source.load(self.place(variables, source.count))
        beyond = self.place(variables, 2 * source.count)
        gate = UOp(Op.CMPLT, beyond, index_const(source.count))
        return UOp(Op.LOAD, source.at(beyond), self.small(0, 9), gate)

    def value(self, variables: Sequence[UOp], depth: int) -> UOp:
        """Return an expression over elements: an op, a choice of two, or via another dtype."""
        choices, has = self.choices, self.vocabulary.has
        kind = choices.below(8) if depth else 0
        if kind < 2:
            return self.element(variables)
        a, b = (self.value(variables, depth - 1) for _ in range(2))
        if kind < 5:
            return UOp(self.op(), a, b)
        if kind == 5 and has(Op.WHERE, Op.CMPLT):
            return UOp(Op.WHERE, UOp(Op.CMPLT, a, b), self.value(variables, depth - 1), b)
        others = self.vocabulary.of_dtypes((dtypes.int32, dtypes.uint8, dtypes.int64))
        if kind == 6 and not self.dtype.is_float and others and has(Op.CAST):
            return UOp(Op.ADD, nodes.cast(nodes.cast(a, choices.pick(others)), self.dtype), b)
        if kind == 6 and has(Op.WHERE, Op.CMPNE):
            return UOp(Op.WHERE, UOp(Op.CMPNE, a, b), a, b)
        return UOp(self.op(), a, self.small(1, 9))

    def stored(self, value: UOp, variables: Sequence[UOp], gated: bool = True) -> UOp:
        """Store every combination of the variables at a place of its own, maybe under a gate."""
        shift = self.choices.below(3)
        self.memories[0] = Memory(0, prod(bound(v) for v in variables) + shift, self.dtype)
        target = self.memories[0].at(plus(flat(variables), shift))
        gates: tuple[UOp, ...] = ()
        if gated and self.choices.chance(40) and self.vocabulary.has(Op.CMPLT):
            limit = self.small(0, 9)
            gates = (UOp(Op.CMPLT, self.element(variables), limit),)
        return nodes.store(target, value, *gates)

    def program(self, body: UOp) -> Generated:
        """Return a program of one kernel on these memories."""
        return self.on_data(launch(body, *self.memories))

    def on_data(self, root: UOp) -> Generated:
        return with_contents(root, self.choices)
