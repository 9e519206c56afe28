"""Generate level op, patterns: operands are scalars, constants, lack an axis or have one of size 1.

The results have up to six axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.nodes import constant, outputs
from uop.conformance.suite.levels.op.elementwise import DTypes, operand_dtypes, taking_values
from uop.conformance.suite.levels.op.sizes import MOST_AXES, shape_of_rank
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import dtypes
from uop.spec.latitude import Ulp
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp, param

COUNTS = (1, 1, 12)
SMALL = 3
"""The largest divisor and shift count: after a few steps something must be left."""


class Pattern(Enum):
    """How an operand's shape relates to the shape of the result."""

    EQUAL = "equal"
    MISSING = "missing"
    ONE = "one"
    SCALAR = "scalar"
    CONSTANT = "constant"


EQUAL, MISSING, ONE, SCALAR, CONSTANT = Pattern
Patterns = tuple[Pattern, ...]
"""The pattern of each operand."""

ROWS: dict[int, tuple[Patterns, ...]] = {
    1: ((EQUAL,), (SCALAR,)),
    2: (
        *((SCALAR, EQUAL), (MISSING, ONE), (CONSTANT, EQUAL)),
        *((EQUAL, SCALAR), (ONE, MISSING), (EQUAL, CONSTANT)),
    ),
    3: (
        *((SCALAR, EQUAL, ONE), (MISSING, SCALAR, EQUAL), (ONE, MISSING, EQUAL)),
        *((EQUAL, CONSTANT, SCALAR), (CONSTANT, EQUAL, MISSING), (EQUAL, ONE, CONSTANT)),
    ),
}
"""Rows by the number of operands; in them each operand has every pattern."""
CHAINS: dict[int, tuple[tuple[Pattern, tuple[Patterns, ...]], ...]] = {
    2: (
        (SCALAR, ((ONE,), (MISSING,), (EQUAL,))),
        (CONSTANT, ((MISSING,), (SCALAR,), (ONE,), (CONSTANT,))),
    ),
    3: (
        (SCALAR, ((ONE, CONSTANT), (MISSING, EQUAL), (EQUAL, MISSING))),
        (CONSTANT, ((MISSING, SCALAR), (SCALAR, ONE), (CONSTANT, EQUAL))),
    ),
}
"""The same for chains of one op: the first pattern of one operand, and the rows of the others.

In each step that operand is the result of the step before.
"""


def groups() -> Iterator[Group]:
    for declaration in taking_values():
        for k, dtype in enumerate(declaration.dtypes):
            args = (declaration, operand_dtypes(declaration, dtype), k)
            yield group("op", declaration.op, dtype, "patterns", COUNTS, _patterns, *args)


def _patterns(
    declaration: OpDef, dts: DTypes, first: int, choices: Choices, index: int
) -> Generated:
    """Build every pattern of each operand: in few outputs, in an output each, then at random.

    The dtypes of an op together have every rank.
    """
    inputs: dict[int, Array] = {}

    def operands(shape: Shape) -> _Operands:
        return _Operands(declaration.op, dts, shape, choices, inputs)

    if index > 1:
        random = operands(shape_of_rank(choices, first + index))
        rows = [tuple(choices.pick(tuple(Pattern)) for _ in dts) for _ in range(4)]
        return program(outputs(*map(random.applied, rows)), inputs)
    # The patterns differ where there are two axes, both longer than 1.
    rank = first + index if 2 <= first + index <= MOST_AXES else 2
    random = operands(tuple(choices.between(2, 3) for _ in range(rank)))
    if index:
        return program(outputs(*map(random.applied, ROWS[len(dts)])), inputs)
    results = random.together(isinstance(declaration.latitude, Ulp))
    count = len(declaration.dtypes)
    ranks = [k for k in range(first, MOST_AXES + 1, count) if k < 2 or count <= MOST_AXES]
    covered = {len(u.shape) for u in results}
    shapes = (shape_of_rank(choices, k) for k in ranks if k not in covered)
    results += [operands(shape).applied((EQUAL,) * len(dts)) for shape in shapes]
    return program(outputs(*results), inputs)


class _Operands:
    """Makes random operands of one op in patterns of a shape; several share the inputs."""

    def __init__(
        self, op: Op, dts: DTypes, shape: Shape, choices: Choices, inputs: dict[int, Array]
    ) -> None:
        self.op, self.dts, self.shape, self.choices = op, dts, shape, choices
        self.inputs = inputs
        # The second operand of a quotient or a shift must fit, so no chain goes through it.
        self.through = 0 if DECLARATIONS[op].is_partial else len(dts) - 1

    def applied(self, row: Patterns) -> UOp:
        """Apply the op to operands in these patterns."""
        return UOp(self.op, *(self._operand(k, pattern) for k, pattern in enumerate(row)))

    def together(self, is_wide: bool) -> list[UOp]:
        """Return every pattern of each operand in few values, which still depend on all operands.

        An op with a budget is not applied to its own results, whose accepted sets would be wide.
        """
        rows, arity = ROWS[len(self.dts)], len(self.dts)
        result = UOp(self.op, *(param(k, (), d) for k, d in enumerate(self.dts))).dtype
        if is_wide or arity not in CHAINS:
            return [self.applied(row) for row in rows]
        if result is not self.dts[self.through]:
            return [self._joined([self.applied(row) for row in rows])]
        chains = [self._chained(*chain) for chain in CHAINS[arity]]
        if DECLARATIONS[self.op].is_partial:
            return chains
        return [UOp(self.op, *self._others((EQUAL,) * (arity - 2)), *chains)]

    def _joined(self, results: Sequence[UOp]) -> UOp:
        """Apply the op to its results, if those are bools, two at a time."""
        if results[0].dtype is not dtypes.bool or len(results) == 1:
            return results[0]
        half = len(results) // 2
        return UOp(self.op, self._joined(results[:half]), self._joined(results[half:]))

    def _chained(self, start: Pattern, rows: Sequence[Patterns]) -> UOp:
        """Apply the op to its own results, with other operands in the patterns of each row."""
        value = self._operand(self.through, start)
        for row in rows:
            operands = self._others(row)
            operands.insert(self.through, value)
            value = UOp(self.op, *operands)
        return value

    def _others(self, row: Patterns) -> list[UOp]:
        """Return the operands that no chain goes through, in the patterns of a row."""
        places = [k for k in range(len(self.dts)) if k != self.through]
        return [self._operand(k, pattern) for k, pattern in zip(places, row, strict=False)]

    def _operand(self, position: int, pattern: Pattern) -> UOp:
        dtype, shape = self.dts[position], self._shape_of(pattern)
        is_guarded = DECLARATIONS[self.op].is_partial and position == 1
        draw = values.draw_within(1, SMALL) if is_guarded else values.draw_ordinary
        data = values.sample(draw, dtype, shape, self.choices)
        if pattern is CONSTANT:
            return constant(data, dtype)
        slot = len(self.inputs)
        self.inputs[slot] = data
        return param(slot, shape, dtype)

    def _shape_of(self, pattern: Pattern) -> Shape:
        """Return a shape; its axis of size 1 is not the first, which another operand may lack."""
        shape = self.shape
        if pattern is MISSING:
            return shape[1:]
        if pattern is ONE and len(shape) > 1:
            axis = self.choices.between(1, len(shape) - 1)
            return (*shape[:axis], 1, *shape[axis + 1 :])
        return () if pattern in (SCALAR, CONSTANT) else shape
