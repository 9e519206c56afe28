"""Generate level graph: arithmetic that a compiler does itself, or in another dtype.

- of-constants: each op on constants alone. A compiler that computes them in doubles, or in numbers
  without end, is wrong.
- mixed-products: sums of products of two narrow dtypes in a wider one, at the ends of both. An
  instruction that adds products in pairs saturates there.
- narrow-indices: reads by indices of 8 bits, from more elements than they count. A compiler that
  computes the place in the dtype of the index is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.pairs import Build, groups_of
from uop.conformance.suite.levels.group import OF_ALL, Counts, Generated, Group, program
from uop.conformance.suite.levels.nodes import (
    bitcast,
    cast,
    constant,
    expand,
    fold,
    outputs,
    reshape,
)
from uop.conformance.suite.levels.op.elementwise import guarded
from uop.conformance.suite.values import (
    array,
    draw_bits,
    draw_ordinary,
    draw_special,
    draw_within,
    sample,
)
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.dtype import DTYPES, VALUES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, param

NARROW = tuple(DTYPES[name] for name in ("uint8", "int8", "uint16", "int16"))
IN_SMOKE = OF_ALL | {"uint8"}
ROW = 8
"""The terms of a sum, and the elements that a constant is repeated to."""
DRAWS = (draw_bits, draw_special, draw_ordinary)
"""Those of the second operand, which is small in one of three."""
WITH_BITS = tuple(d for d in VALUES if d not in (dtypes.bool, dtypes.index))


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    return groups_of(vocabulary, _builds, IN_SMOKE)


def _builds(dtype: DType) -> Iterator[tuple[str, Counts, Build]]:
    yield "of-constants", (1, 3, 12), _of_constants
    if dtype.name in IN_SMOKE:
        yield "narrow-indices", (1, 2, 6), _narrow_indices
    if dtype in NARROW:
        yield "mixed-products", (2, 2, 6), _mixed_products


def _of_constants(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Apply each op to constants that have a meaning, and convert a repeated one to each dtype."""
    own = vocabulary.on(dtype)
    found = []
    for op in (*own.unary, *own.unary_wide, *own.binary, *own.comparisons):
        draws = [draw_bits, choices.pick(DRAWS)][: len(DECLARATIONS[op].src)]
        columns = [sample(draw, dtype, 1, choices) for draw in draws]
        columns = guarded(op, (dtype,) * len(columns), columns)
        found.append(UOp(op, *(constant(c[0], dtype) for c in columns)))
    repeated = expand(
        reshape(constant(sample(draw_bits, dtype, 1, choices)[0], dtype), (1,)), (ROW,)
    )
    found += [cast(repeated, d) for d in vocabulary.of_dtypes(VALUES) if d is not dtypes.index]
    if dtype is not dtypes.bool:
        found += [bitcast(repeated, d) for d in vocabulary.of_dtypes(WITH_BITS)]
    return program(outputs(*(u for u in found if vocabulary.speaks(u))))


def _mixed_products(
    dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    """Multiply rows, and a matrix by another one, most of whose elements are an end."""
    kinds = [dtype, *(d for d in vocabulary.of_dtypes(NARROW) if d is not dtype)]
    inputs = [param(slot, (ROW, ROW), d) for slot, d in enumerate(kinds)]
    found = []
    for wide in vocabulary.of_dtypes((dtypes.int32, dtypes.int64)):
        x, *others = (cast(u, wide) for u in inputs)
        for y in others:
            found.append(fold(Op.ADD, UOp(Op.MUL, x, y), (1,)))
            rows, columns = reshape(x, (ROW, ROW, 1)), reshape(y, (1, ROW, ROW))
            found.append(fold(Op.ADD, UOp(Op.MUL, rows, columns), (1,)))
    root = outputs(*(u for u in found if vocabulary.speaks(u)))
    data = []
    for d in kinds:
        ends = (int(d.max), int(d.max), int(d.min), choices.between(1, 100))
        drawn = (d.encode(choices.pick(ends)) for _ in range(ROW * ROW))
        data.append(array(d, drawn).reshape(ROW, ROW))
    return program(root, data)


def _narrow_indices(
    dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    """Read rows and elements of a table by indices whose place in memory exceeds their dtype."""
    shape = choices.between(9, 20), choices.between(30, 60)
    narrow, table = (dtypes.uint8, dtypes.int8)[index % 2], param(0, shape, dtype)
    row, column = (param(slot, (ROW,), narrow) for slot in (1, 2))
    found = (UOp(Op.INDEX, table, row), UOp(Op.INDEX, table, row, column))
    places = (sample(draw_within(0, n - 1), narrow, ROW, choices) for n in shape)
    root = outputs(*(u for u in found if vocabulary.speaks(u)))
    return program(root, [sample(draw_bits, dtype, shape, choices), *places])
