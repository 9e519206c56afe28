"""Generate level graph: arithmetic that a compiler does itself, or in another dtype.

- of-constants: each op on constants alone. A compiler that computes them in doubles, or in numbers
  without end, is wrong.
- mixed-products: sums of products of two narrow dtypes in a wider one, at the ends of both. An
  instruction that adds products in pairs saturates there.
- aliased, three: ops whose operands are one node, on long vectors; chains of three.
- constants-alone: programs that differ in a constant.
- narrow-indices: reads by indices of 8 bits, from more elements than they count. A compiler that
  computes the place in the dtype of the index is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from uop.conformance.suite import values
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.pairs import LENGTH, Kinds, Plan, just_given
from uop.conformance.suite.levels.group import OF_ALL, Group
from uop.conformance.suite.levels.op.elementwise import guarded
from uop.conformance.suite.levels.op.movement import NARROW
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.dtype import DTYPES, VALUES, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, param

IN_SMOKE = OF_ALL | {"uint8"}
ROW = 8
"""The terms of a sum, and the elements that a constant is repeated to."""
LONG = 1201
"""More than a thousand elements, and no multiple of a vector."""
CHAINS = 12
DRAWS = (values.draw_bits, values.draw_special, values.draw_ordinary)
"""Those of the second operand, which is small in one of three."""
WITH_BITS = tuple(d for d in VALUES if d not in (dtypes.bool, dtypes.index))


KINDS = Kinds()


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    return KINDS.groups(vocabulary, IN_SMOKE)


# Numbers of 64 bits are those that a double does not hold.
@KINDS.add("of-constants", lambda dtype, _: (1 + 2 * (dtype.bits == 64), 3, 12), VALUES, just_given)
def _of_constants(p: Plan) -> Iterator[UOp]:
    """Apply each op to constants that have a meaning, and convert a repeated one to each dtype."""
    dtype, own = p.dtype, p.vocabulary.on(p.dtype)
    for op in (*own.unary, *own.unary_wide, *own.binary, *own.comparisons):
        draws = [values.draw_bits, p.choices.pick(DRAWS)][: len(DECLARATIONS[op].src)]
        columns = [values.sample(draw, dtype, 1, p.choices) for draw in draws]
        columns = guarded(op, (dtype,) * len(columns), columns)
        yield UOp(op, *(nodes.constant(c[0], dtype) for c in columns))
    one = nodes.constant(values.sample(values.draw_bits, dtype, 1, p.choices)[0], dtype)
    repeated = nodes.expand(nodes.reshape(one, (1,)), (ROW,))
    yield from (
        nodes.cast(repeated, d) for d in p.vocabulary.of_dtypes(VALUES) if d is not dtypes.index
    )
    if dtype is not dtypes.bool:
        yield from (nodes.bitcast(repeated, d) for d in p.vocabulary.of_dtypes(WITH_BITS))


@KINDS.add("narrow-indices", (1, 2, 6), tuple(DTYPES[name] for name in IN_SMOKE), just_given)
def _narrow_indices(p: Plan) -> Iterator[UOp]:
    """Read rows and elements of a table by indices whose place in memory exceeds their dtype."""
    shape = p.choices.between(9, 20), p.choices.between(30, 60)
    narrow, table = (dtypes.uint8, dtypes.int8)[p.index % 2], param(0, shape, p.dtype)
    row, column = (param(slot, (ROW,), narrow) for slot in (1, 2))
    yield UOp(Op.INDEX, table, row)
    yield UOp(Op.INDEX, table, row, column)
    p.given[0] = values.sample(values.draw_bits, p.dtype, shape, p.choices)
    for slot, n in enumerate(shape, 1):
        p.given[slot] = values.sample(values.draw_within(0, n - 1), narrow, ROW, p.choices)


@KINDS.add("mixed-products", (2, 2, 6), NARROW, just_given)
def _mixed_products(p: Plan) -> Iterator[UOp]:
    """Multiply rows, and a matrix by another one, most of whose elements are an end."""
    kinds = [p.dtype, *(d for d in p.vocabulary.of_dtypes(NARROW) if d is not p.dtype)]
    for wide in p.vocabulary.of_dtypes((dtypes.int32, dtypes.int64)):
        x, *others = (nodes.cast(param(slot, (ROW, ROW), d), wide) for slot, d in enumerate(kinds))
        for y in others:
            yield nodes.fold(Op.ADD, UOp(Op.MUL, x, y), (1,))
            rows, columns = nodes.reshape(x, (ROW, ROW, 1)), nodes.reshape(y, (1, ROW, ROW))
            yield nodes.fold(Op.ADD, UOp(Op.MUL, rows, columns), (1,))
    for slot, d in enumerate(kinds):
        ends = (int(d.max), int(d.max), int(d.min), p.choices.between(1, 100))
        drawn = (d.encode(p.choices.pick(ends)) for _ in range(ROW * ROW))
        p.given[slot] = values.array(d, drawn).reshape(ROW, ROW)


ALONE = Kinds()
"""Ops whose operands are one node, on long vectors, chains of three, and programs that differ in a
constant: a backend may treat these in another way.
"""
aliased = ALONE.groups


@ALONE.add("aliased", (1, 1, 4), VALUES)
def _aliased(p: Plan) -> Iterator[UOp]:
    """Apply each op to one long vector twice, to two, and to the result of another op twice."""
    x, y = _inputs(p, 2, LONG)
    ops = p.vocabulary.on(p.dtype)
    for op in (*ops.binary, *ops.comparisons, *ops.binary_wide):
        yield UOp(op, x, y)
        if not DECLARATIONS[op].is_partial:
            yield UOp(op, x, x)
            twice = UOp(p.choices.pick(ops.binary or (op,)), x, y)
            if twice.dtype is p.dtype and not twice.declaration.is_partial:
                yield UOp(op, twice, twice)
    yield from (UOp(op, x) for op in ops.unary + ops.unary_wide)


@ALONE.add("three", (1, 1, 12), VALUES)
def _three(p: Plan) -> Iterator[UOp]:
    """Build chains of three ops on four inputs, from the left and from the right."""
    inputs, ops = _inputs(p, 4, LENGTH), p.vocabulary.on(p.dtype).total
    for k in range(CHAINS if ops else 0):
        a, b, c, d = p.choices.shuffled(inputs)
        f, g, h = (p.choices.pick(ops) for _ in range(3))
        left = UOp(h, UOp(g, UOp(f, a, b), c), d)
        right = UOp(h, a, UOp(g, b, UOp(f, c, d)))
        yield right if k % 2 else left


def _inputs(p: Plan, count: int, length: int) -> list[UOp]:
    """Return inputs of a length, or of the most elements that a value may have."""
    return p.inputs(count, (min(length, p.vocabulary.elements or length),))


@ALONE.add("constants-alone", (2, 2, 9), VALUES)
def _constants(p: Plan) -> Iterator[UOp]:
    """Build one graph with other constants in each program: it is no program of before."""
    x, y = _inputs(p, 2, 6)
    numbers = (k + 3 + 2 * (p.index % 50) for k in range(2))
    c, d = (p.const(n % 2 == 1 if p.dtype is dtypes.bool else n) for n in numbers)
    yield UOp(Op.ADD, UOp(Op.MUL, x, c), d)
    yield UOp(Op.MAX, y, c)
    yield UOp(Op.WHERE, UOp(Op.CMPLT, x, c), y, d)
