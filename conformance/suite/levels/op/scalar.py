"""What kernels are written with: memories, places in them, and random scalar expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.case import Batch
from uop.conformance.suite.choices import Choices, between, chance, data_key, pick
from uop.conformance.suite.levels.group import Program
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.kernel.schedule import bound
from uop.spec.args import AddrSpace, AxisType, BufferArg, DTypeArg, ParamArg, RangeArg, SpecialArg
from uop.spec.dtype import DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

OF_FLOATS = (Op.ADD, Op.MUL, Op.SUB)
"""Ops on floats that give one value whatever their operands are."""
KERNEL_OPS = (
    *(Op.SINK, Op.CALL, Op.STORE, Op.LOAD, Op.INDEX),
    *(Op.PARAM, Op.BUFFER, Op.CONST, Op.ADD, Op.MUL, Op.MOD),
)
"""What every kernel here is made of."""
OF_INTS = (Op.ADD, Op.MUL, Op.SUB, Op.MAX, Op.XOR, Op.AND, Op.OR)


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer in GLOBAL memory: slot number of the program and of the body."""

    slot: int
    count: int
    dtype: DType

    @property
    def param(self) -> UOp:
        """It inside a kernel."""
        return UOp(
            Op.PARAM,
            dims((self.count,)),
            arg=ParamArg(self.slot, self.dtype, None, AddrSpace.GLOBAL),
        )


def argument(memory: Memory) -> UOp:
    """It as an argument of a CALL."""
    return UOp(Op.BUFFER, dims((memory.count,)), arg=BufferArg(memory.slot, memory.dtype))


def register(slot: int, count: int, dtype: DType) -> UOp:
    return UOp(Op.BUFFER, dims((count,)), arg=BufferArg(slot, dtype, None, AddrSpace.REG))


def loop(id: int, count: int, kind: AxisType = AxisType.LOOP) -> UOp:
    return UOp(Op.RANGE, index_const(count), arg=RangeArg(id, kind))


def special(axis: int, count: int) -> UOp:
    return UOp(Op.SPECIAL, index_const(count), arg=SpecialArg(f"gidx{axis}"))


def at(memory: UOp, i: UOp) -> UOp:
    return UOp(Op.INDEX, memory, i)


def load(memory: UOp, i: UOp) -> UOp:
    return UOp(Op.LOAD, at(memory, i))


@dataclass(slots=True)
class Scalars:
    """Random expressions of one dtype over elements of two memories, and where they are stored.

    Slot 0 is stored to; it is known once something has been.
    """

    choices: Choices
    dtype: DType
    vocabulary: Vocabulary
    memories: list[Memory] = field(default_factory=list)

    def __post_init__(self) -> None:
        sizes = [between(self.choices, 5, 40) for _ in range(2)]
        self.memories = [Memory(slot, n, self.dtype) for slot, n in enumerate([0, *sizes]) if slot]
        self.memories.insert(0, Memory(0, 0, self.dtype))

    @property
    def ops(self) -> tuple[Op, ...]:
        return self.vocabulary.of(OF_FLOATS if self.dtype.is_float else OF_INTS)

    @property
    def stored_to(self) -> Memory:
        return self.memories[0]

    def place(self, variables: Sequence[UOp], count: int) -> UOp:
        """An index that depends on some variables, inside `count` elements."""
        choices = self.choices
        total = index_const(choices.below(count))
        for v in variables:
            term = UOp(Op.MUL, v, index_const(choices.below(5)))
            total = UOp(Op.ADD, total, term)
        return UOp(Op.MOD, total, index_const(count))

    def element(self, variables: Sequence[UOp]) -> UOp:
        """An element of a memory, or a small number where a gate keeps the index inside."""
        choices, source = self.choices, self.memories[between(self.choices, 1, 2)]
        if chance(choices, 60) or not self.vocabulary.has(Op.CMPLT):
            return load(source.param, self.place(variables, source.count))
        beyond = self.place(variables, 2 * source.count)
        gate = UOp(Op.CMPLT, beyond, index_const(source.count))
        alt = const(between(choices, 0, 9), self.dtype)
        return UOp(Op.LOAD, at(source.param, beyond), alt, gate)

    def value(self, variables: Sequence[UOp], depth: int) -> UOp:
        """An expression over elements: an op, a choice between two, or through another dtype."""
        choices, has = self.choices, self.vocabulary.has
        kind = choices.below(8) if depth else 0
        if kind < 2:
            return self.element(variables)
        a, b = (self.value(variables, depth - 1) for _ in range(2))
        if kind < 5:
            return UOp(pick(choices, self.ops), a, b)
        if kind == 5 and has(Op.WHERE, Op.CMPLT):
            return UOp(Op.WHERE, UOp(Op.CMPLT, a, b), self.value(variables, depth - 1), b)
        others = self.vocabulary.of_dtypes((dtypes.int32, dtypes.uint8, dtypes.int64))
        if kind == 6 and not self.dtype.is_float and others and has(Op.CAST):
            cast_ = UOp(Op.CAST, a, arg=DTypeArg(pick(choices, others)))
            return UOp(Op.ADD, UOp(Op.CAST, cast_, arg=DTypeArg(self.dtype)), b)
        if kind == 6 and has(Op.WHERE, Op.CMPNE):
            return UOp(Op.WHERE, UOp(Op.CMPNE, a, b), a, b)
        return UOp(pick(choices, self.ops), a, const(between(choices, 1, 9), self.dtype))

    def stored(self, value: UOp, variables: Sequence[UOp], gated: bool = True) -> UOp:
        """Every combination of the variables stored at a place of its own, maybe under a gate."""
        choices = self.choices
        shift = choices.below(3)
        place = index_const(0)
        for v in variables:
            place = UOp(Op.ADD, UOp(Op.MUL, place, index_const(bound(v))), v)
        count = prod(bound(v) for v in variables) + shift
        self.memories[0] = Memory(0, count, self.dtype)
        place = UOp(Op.ADD, place, index_const(shift))
        gates: tuple[UOp, ...] = ()
        if gated and chance(choices, 40) and self.vocabulary.has(Op.CMPLT):
            other = const(between(choices, 0, 9), self.dtype)
            gates = (UOp(Op.CMPLT, self.element(variables), other),)
        return UOp(Op.STORE, at(self.stored_to.param, place), value, *gates)

    def arguments(self) -> list[UOp]:
        return [argument(memory) for memory in self.memories]

    def program(self, body: UOp) -> Program:
        """One kernel on these memories."""
        root = UOp(Op.SINK, UOp(Op.CALL, body, *self.arguments()))
        return Program(root, self.batches(root))

    def batches(self, root: UOp) -> tuple[Batch, ...]:
        """Contents of every buffer, ordinary ones and any."""
        draws = (values.draw_ordinary, values.draw_mixed)
        buffers = dict(sorted(slots_of(root).items()))
        return tuple(
            Batch(
                {
                    s: draw(u.dtype, prod(u.shape), data_key(self.choices))
                    for s, u in buffers.items()
                }
            )
            for draw in draws
        )
