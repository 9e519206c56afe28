"""Generate level property: intervals behind ops that return elements as they are.

The interval of the result is that of the operand. If it is lost, or taken from another operand, a
comparison at a bound is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from uop.conformance.suite.choices import Choices, between
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.intervals import compared
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel.scalar import loop
from uop.conformance.suite.levels.op.memory import MARKERS
from uop.conformance.suite.levels.op.movement import VIEWS
from uop.conformance.suite.values import draw_bits, draw_within, sample
from uop.interpreter.numeric.storage import Array
from uop.spec.args import LanesArg, ParamArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const, param

DTYPES_COPIED = (dtypes.int32, dtypes.uint8)
COUNTS = (0, 1, 8)
LENGTH = 12
OTHER, KEPT = 1, 2
"""The slots of what else is read, and of what is stored to."""

Copy = Callable[[Choices, UOp], UOp]


def groups() -> Iterator[Group]:
    for dtype in DTYPES_COPIED:
        for op, copy in ops_that_copy().items():
            yield group("property", op, dtype, "handed-on", COUNTS, _copied, copy, dtype)
    for op, ranged in ((Op.PARAM, _variable), (Op.BIND, _bound)):
        yield group("property", op, dtypes.index, "range", COUNTS, ranged)


def ops_that_copy() -> dict[Op, Copy]:
    """Return, by op, how it copies a vector; the comparison may have to be inside."""
    return {
        **VIEWS,
        **{op: partial(_alone, op) for op in (*MARKERS, Op.NOOP, Op.PRECAST, Op.LOAD)},
        Op.INDEX: lambda choices, t: UOp(Op.INDEX, t, param(OTHER, (4,), dtypes.int32)),
        Op.REPLICATED: lambda choices, t: nodes.replicated(nodes.copies(t, between(choices, 1, 4))),
        Op.AFTER: lambda choices, t: UOp(
            Op.AFTER, t, nodes.store(nodes.buffer(KEPT, t.shape, t.dtype), t)
        ),
        Op.STAGE: _staged,
        Op.UNROLL: _lanes,
        Op.CONTRACT: _lanes,
        Op.GETTUPLE: _unpacked,
    }


def _copied(copy: Copy, dtype: DType, choices: Choices, index: int) -> Generated:
    """Put a remainder, which has a narrow interval, through the op and compare it at a bound."""
    narrow = UOp(Op.MOD, param(0, (LENGTH,), dtype), const(between(choices, 2, 100), dtype))
    root = compared(choices, copy(choices, narrow))
    data = sample(draw_bits, dtype, LENGTH, choices)
    return program(root, [data, sample(draw_within(0, LENGTH - 1), dtypes.int32, 4, choices)])


def _alone(op: Op, choices: Choices, t: UOp) -> UOp:
    return UOp(op, t)


def _staged(choices: Choices, t: UOp) -> UOp:
    each = loop(0, LENGTH)
    return UOp(Op.STAGE, UOp(Op.INDEX, t, each), each)


def _lanes(choices: Choices, t: UOp) -> UOp:
    lanes = LanesArg((0,), (LENGTH,))
    return UOp(Op.CONTRACT, compared(choices, UOp(Op.UNROLL, t, arg=lanes)), arg=lanes)


def _unpacked(choices: Choices, t: UOp) -> UOp:
    """Return the second of three values, of which the others have other intervals."""
    first, last = (UOp(Op.ADD, t, const(k, t.dtype)) for k in (100, 50))
    return nodes.member(nodes.outputs(first, t, last), 1)


def _range(choices: Choices) -> UOp:
    """Return a variable with a range."""
    low = between(choices, -20, 20)
    arg = ParamArg(0, dtypes.index, min=low, max=low + between(choices, 1, 30))
    return UOp(Op.PARAM, nodes.dims(()), arg=arg)


def _variable(choices: Choices, index: int) -> Generated:
    """Build a variable whose value is data: at one of the ends, or between them."""
    variable = _range(choices)
    return program(compared(choices, variable), [_within(choices, variable)])


def _bound(choices: Choices, index: int) -> Generated:
    """Build a variable whose value stands in the program."""
    variable = _range(choices)
    value = index_const(int(_within(choices, variable)))
    return program(compared(choices, UOp(Op.BIND, variable, value)))


def _within(choices: Choices, variable: UOp) -> Array:
    assert variable.min_max is not None
    low, high = (int(end) for end in (variable.min_max.min, variable.min_max.max))
    return sample(draw_within(low, high), dtypes.index, (), choices)
