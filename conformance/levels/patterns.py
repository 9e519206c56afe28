"""Level op, patterns: each operand is a scalar, lacks an axis, has one of size 1, is a constant.

The results have from no axis to six.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import partial
from math import prod

from uop.conformance import values
from uop.conformance.choices import Choices, data_key, pick
from uop.conformance.levels.elementwise import (
    DTypes,
    constant,
    guarded,
    operand_dtypes,
)
from uop.conformance.levels.group import Group, Program, op_group, program
from uop.conformance.levels.sizes import MOST_AXES, shape_of_rank
from uop.conformance.levels.steps import GUARDED
from uop.interpreter.values import Array
from uop.spec.latitude import Ulp
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp, param

COUNTS = (1, 3, 12)


class Pattern(Enum):
    """How an operand stands to a shape."""

    EQUAL = "equal"
    MISSING = "missing"
    ONE = "one"
    SCALAR = "scalar"
    CONSTANT = "constant"


EQUAL, MISSING, ONE, SCALAR, CONSTANT = Pattern
Row = tuple[Pattern, ...]
"""The pattern of each operand."""

SINGLE: dict[int, tuple[Row, ...]] = {
    1: ((SCALAR,),),
    2: ((SCALAR, MISSING), (MISSING, CONSTANT), (ONE, SCALAR), (CONSTANT, ONE)),
    3: (
        (SCALAR, MISSING, ONE),
        (MISSING, CONSTANT, SCALAR),
        (ONE, SCALAR, CONSTANT),
        (CONSTANT, ONE, MISSING),
    ),
}
"""By the number of operands rows in which each is in every pattern; EQUAL comes by itself."""
CHAINS: dict[int, tuple[tuple[Pattern, tuple[Row, ...]], ...]] = {
    2: (
        (SCALAR, ((ONE,), (MISSING,), (EQUAL,))),
        (CONSTANT, ((MISSING,), (SCALAR,), (ONE,), (CONSTANT,))),
    ),
    3: (
        (SCALAR, ((ONE, CONSTANT), (MISSING, EQUAL), (EQUAL, MISSING))),
        (CONSTANT, ((MISSING, SCALAR), (SCALAR, ONE), (CONSTANT, EQUAL))),
    ),
}
"""The same in two chains of one op: how the last operand starts, and the others of each step.

Through the last operand goes what the step before gave.
"""


def groups() -> Iterator[Group]:
    for declaration in DECLARATIONS.values():
        if declaration.dtypes and declaration.arg is None:
            for k, dtype in enumerate(declaration.dtypes):
                build = partial(_patterns, declaration, operand_dtypes(declaration, dtype), k)
                yield op_group(declaration.op, dtype, "patterns", COUNTS, build)


def _patterns(declaration: OpDef, dts: DTypes, first: int, choices: Choices, index: int) -> Program:
    """Every pattern of each operand: in chains of the op where its results are operands again.

    The dtypes of an op together have every rank, and so has one dtype where it is alone.
    """
    inputs: dict[int, Array] = {}

    def operands(rank: int) -> _Operands:
        return _Operands(declaration.op, dts, shape_of_rank(choices, rank), choices, inputs)

    if index:
        drawn = operands(first + index)
        rows = [tuple(pick(choices, tuple(Pattern)) for _ in dts) for _ in range(4)]
        return program(UOp(Op.TUPLE, *map(drawn.applied, rows)), inputs)
    few, outputs = -(-(MOST_AXES + 1) // len(declaration.dtypes)), list[UOp]()
    if _is_chained(declaration, dts):
        outputs.append(operands(few * first).chained())
    else:
        for k, row in enumerate(SINGLE[len(dts)]):
            outputs.append(operands(few * first + k).applied(row))
    alone = len(dts) == 1
    for k in range(0 if alone else len(outputs), few):
        outputs.append(operands(few * first + k).applied((EQUAL,) * len(dts)))
    return program(UOp(Op.TUPLE, *outputs), inputs)


def _is_chained(declaration: OpDef, dts: DTypes) -> bool:
    """Whether a result is an operand again, and still tells what went in after a few steps."""
    is_wild = isinstance(declaration.latitude, Ulp) or declaration.op in GUARDED
    result = UOp(declaration.op, *(param(k, (), d) for k, d in enumerate(dts))).dtype
    return len(dts) in CHAINS and not is_wild and result is dts[-1]


class _Operands:
    """Draws the operands of one op in patterns of a shape; the inputs are shared by several."""

    def __init__(
        self,
        op: Op,
        dts: DTypes,
        shape: Shape,
        choices: Choices,
        inputs: dict[int, Array],
    ) -> None:
        self.op, self.dts, self.shape, self.choices = op, dts, shape, choices
        self.inputs = inputs

    def applied(self, row: Row) -> UOp:
        """The op on operands in these patterns."""
        return UOp(self.op, *self._drawn(row))

    def chained(self) -> UOp:
        """The op on what two chains of it give, and on an operand of the shape."""
        other, value = (self._chain(*chain) for chain in CHAINS[len(self.dts)])
        return UOp(self.op, *self._drawn((EQUAL,) * (len(self.dts) - 2)), other, value)

    def _chain(self, start: Pattern, rows: Sequence[Row]) -> UOp:
        """The op on its own results, with other operands in the patterns of each row."""
        value = self._operand(len(self.dts) - 1, start)
        for row in rows:
            value = UOp(self.op, *self._drawn(row), value)
        return value

    def _drawn(self, row: Row) -> list[UOp]:
        """The first operands, in the patterns of a row."""
        return [self._operand(k, pattern) for k, pattern in enumerate(row)]

    def _operand(self, position: int, pattern: Pattern) -> UOp:
        dtype, shape = self.dts[position], self._shape_of(pattern)
        data = values.draw_ordinary(dtype, prod(shape), data_key(self.choices))
        # Divisors and counts must be fit, which depends on what they stand beside.
        columns = [data] * len(self.dts)
        data = guarded(self.op, self.dts, columns)[position] if position else data
        if pattern is CONSTANT:
            return constant(data[0], dtype)
        slot = len(self.inputs)
        self.inputs[slot] = data.reshape(shape)
        return param(slot, shape, dtype)

    def _shape_of(self, pattern: Pattern) -> Shape:
        shape = self.shape
        if pattern is MISSING:
            return shape[1:]
        if pattern is ONE and shape:
            axis = self.choices.below(len(shape))
            return (*shape[:axis], 1, *shape[axis + 1 :])
        return () if pattern in (SCALAR, CONSTANT) else shape
