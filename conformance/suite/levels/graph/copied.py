"""Level property: what is known of the elements that an op hands on as they are.

The interval of the result is that of the operand: one that is lost, or is that of another operand,
decides wrong at a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, between, data_key
from uop.conformance.suite.levels.graph.intervals import compared
from uop.conformance.suite.levels.group import Group, Program, program
from uop.conformance.suite.levels.op import movement
from uop.conformance.suite.levels.op.memory import buffer
from uop.conformance.suite.levels.op.scalar import loop
from uop.interpreter.numeric.storage import Array
from uop.spec.args import GetTupleArg, LanesArg, ParamArg, ReplicatedArg
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, dims, index_const, param

DTYPES_HANDED_ON = (DTYPES["int32"], DTYPES["uint8"])
COUNTS = (0, 1, 8)
LENGTH = 12
OTHER, KEPT = 1, 2
"""Slots of what else is read, and of what is stored to."""

Take = Callable[[Choices, UOp], UOp]


def groups() -> Iterator[Group]:
    for dtype in DTYPES_HANDED_ON:
        for op, take in takes().items():
            build = partial(_handed_on, take, dtype)
            yield Group("property", op.name, dtype.name, "handed-on", COUNTS, build)
    for op, ranged in ((Op.PARAM, _variable), (Op.BIND, _bound)):
        yield Group("property", op.name, dtypes.index.name, "range", COUNTS, ranged)


def takes() -> dict[Op, Take]:
    """By op what it makes of a vector: decided at a bound, where that must be inside, there."""
    markers = [op for op, d in DECLARATIONS.items() if d.section == "marker"]
    return {
        **movement.VIEWS,
        **{op: partial(_alone, op) for op in (*markers, Op.NOOP, Op.PRECAST, Op.LOAD)},
        Op.INDEX: _picked,
        Op.REPLICATED: _replicated,
        Op.AFTER: _after,
        Op.STAGE: _staged,
        Op.UNROLL: _lanes,
        Op.CONTRACT: _lanes,
        Op.GETTUPLE: _unpacked,
    }


def _handed_on(take: Take, dtype: DType, choices: Choices, index: int) -> Program:
    """A rest of a division, which has a narrow interval, through the op, decided at a bound."""
    narrow = UOp(Op.MOD, param(0, (LENGTH,), dtype), const(between(choices, 2, 100), dtype))
    root = compared(choices, take(choices, narrow))
    data = {0: values.draw_bits(dtype, LENGTH, data_key(choices))}
    if OTHER in slots_of(root):
        data[OTHER] = values.draw_within(dtypes.int32, 4, data_key(choices), 0, LENGTH - 1)
    return program(root, data)


def _alone(op: Op, choices: Choices, t: UOp) -> UOp:
    return UOp(op, t)


def _picked(choices: Choices, t: UOp) -> UOp:
    return UOp(Op.INDEX, t, param(OTHER, (4,), dtypes.int32))


def _replicated(choices: Choices, t: UOp) -> UOp:
    row = UOp(Op.RESHAPE, t, dims((1, LENGTH)))
    copies = UOp(Op.EXPAND, row, dims((between(choices, 1, 4), LENGTH)))
    return UOp(Op.REPLICATED, copies, arg=ReplicatedArg((0,)))


def _after(choices: Choices, t: UOp) -> UOp:
    return UOp(Op.AFTER, t, UOp(Op.STORE, buffer(KEPT, t.shape, t.dtype), t))


def _staged(choices: Choices, t: UOp) -> UOp:
    each = loop(0, LENGTH)
    return UOp(Op.STAGE, UOp(Op.INDEX, t, each), each)


def _lanes(choices: Choices, t: UOp) -> UOp:
    lanes = LanesArg((0,), (LENGTH,))
    return UOp(Op.CONTRACT, compared(choices, UOp(Op.UNROLL, t, arg=lanes)), arg=lanes)


def _unpacked(choices: Choices, t: UOp) -> UOp:
    """The second of three, of which the others have other intervals."""
    first, last = (UOp(Op.ADD, t, const(k, t.dtype)) for k in (100, 50))
    return UOp(Op.GETTUPLE, UOp(Op.TUPLE, first, t, last), arg=GetTupleArg(1))


def _range(choices: Choices) -> UOp:
    """A variable with a range."""
    low = between(choices, -20, 20)
    arg = ParamArg(0, dtypes.index, min=low, max=low + between(choices, 1, 30))
    return UOp(Op.PARAM, dims(()), arg=arg)


def _variable(choices: Choices, index: int) -> Program:
    """Its value is data: at one of the ends, or between them."""
    variable = _range(choices)
    return program(compared(choices, variable), [_within(choices, variable)])


def _bound(choices: Choices, index: int) -> Program:
    """Its value stands in the program."""
    variable = _range(choices)
    value = index_const(int(_within(choices, variable)))
    return program(compared(choices, UOp(Op.BIND, variable, value)))


def _within(choices: Choices, variable: UOp) -> Array:
    assert variable.min_max is not None
    low, high = (int(end) for end in (variable.min_max.min, variable.min_max.max))
    return values.draw_within(dtypes.index, 1, data_key(choices), low, high).reshape(())
