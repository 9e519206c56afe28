"""Generate level op, elementwise: every op and dtype on special values, shapes, constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import inf

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import OF_ALL, Generated, Group, group, program
from uop.conformance.suite.levels.nodes import constant, outputs
from uop.interpreter.numeric.storage import Array, np_dtype, to_bits
from uop.spec.dtype import INTS, VALUES, DType, dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp, const, param

DTypes = tuple[DType, ...]

SHAPES: tuple[tuple[Shape, ...], ...] = (
    ((), (), ()),
    ((7,), (7,), (7,)),
    ((4099,), (4099,), (4099,)),
    ((3, 1), (1, 5), (3, 5)),
    ((1, 6), (6, 1), (6, 6)),
    ((0,), (0,), (0,)),
    ((2, 1, 3), (4, 1), ()),
    ((3, 0, 2), (1, 0, 1), (2,)),
    ((3, 347), (347,), (3, 1)),
    ((), (5, 3), (1, 1, 3)),
)
"""Shapes of the first, second and third operand: rank 0, odd, large, no elements, broadcast."""

EXPONENTS = (0.5, -0.5, 0.25, 1.5, 0.0, 1.0, -1.0, 2.0, -2.0, 3.0, inf, -inf)
BASES = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5)
"""Numbers for which a power has another form, which differs at zeros, infinities or a NaN."""

CONSTANTS = 6
"""The constants that every dtype meets: of a float both zeros, both ones, 2 and 1/2."""
CONSTANTS_BY_TURNS = 2
"""The constants of a program besides those."""
CONSTANTS_OF_THREE = 3
"""The constants of a program of an op on three operands."""


def groups() -> Iterator[Group]:
    """Yield groups for every elementwise op without arg, and every dtype that it takes."""
    for declaration in taking_values():
        for dtype in declaration.dtypes:
            yield from _of_cell(declaration, dtype)


def taking_values() -> list[OpDef]:
    """Return the declarations of elementwise ops without arg."""
    return [d for d in DECLARATIONS.values() if d.takes_values]


def _of_cell(declaration: OpDef, dtype: DType) -> Iterator[Group]:
    op, dts = declaration.op, operand_dtypes(declaration, dtype)
    yield group("op", op, dtype, "edges", (1, 1, 1 if len(dts) == 1 else 2), _edges, op, dts)
    shapes = (0, int(dtype.name in OF_ALL), len(SHAPES))
    yield group("op", op, dtype, "shapes", shapes, _shapes, op, dts)
    yield group("op", op, dtype, "constants", (0, 1, 4), _constants, op, dts)
    if DECLARATIONS[op].is_shift:
        others = tuple((dtype, count) for count in INTS if count != dtype)
        yield group("op", op, dtype, "counts", (0, 1, len(others)), _counts, op, others)
    if DECLARATIONS[op].is_division:
        yield group("op", op, dtype, "zero-divisors", (1, 1, 2), _zero_divisors, op, dts)
    if op is Op.POW:
        few = (int(dtype.name in OF_ALL), 1, 1)
        yield group("op", op, dtype, "exponents", few, _exponents, dtype)
    if declaration.decomposition is not None:
        yield group("op", op, dtype, "twin", (0, 1, 1), _twin, op, dts)
    # One operand of at most 16 bits, or two of 8: one program has every combination with a meaning.
    bits = sum(d.bits for d in dts)
    if bits == 16 or (len(dts) == 1 and bits < 16):
        yield group("op", op, dts[-1], "exhaustive", (0, 1, 1), _exhaustive, op, dts)


def operand_dtypes(declaration: OpDef, dtype: DType) -> DTypes:
    """Return the dtypes of the operands where the one that the declaration is about is `dtype`."""
    arity = len(declaration.src)
    same = (dtype,) * arity
    for dts in (same, (dtypes.bool, *same[1:])):
        try:
            UOp(declaration.op, *_params(dts, ((),) * arity))
        except InvalidError:
            continue
        return dts
    raise ValueError(f"{declaration.op.name} takes no operands of {dtype.name}")


def _params(dts: DTypes, shapes: Sequence[Shape]) -> list[UOp]:
    return [param(k, s, d) for k, (d, s) in enumerate(zip(dts, shapes, strict=True))]


def on_inputs(op: Op, dts: DTypes, n: int) -> UOp:
    """Apply the op to PARAMs of shape (n,)."""
    return UOp(op, *_params(dts, ((n,),) * len(dts)))


def samples(op: Op, draw: values.Draw, dts: DTypes, n: int, choices: Choices) -> list[Array]:
    """Return random columns on which the op has a meaning."""
    return guarded(op, dts, [values.sample(draw, d, n, choices) for d in dts])


def _edges(op: Op, dts: DTypes, choices: Choices, index: int) -> Generated:
    """Use all combinations of special values, then as many mixed and ordinary ones."""
    edges = _combined(op, dts, values.specials) if index else edge_columns(op, dts)
    n = len(edges[0])
    draws = (values.draw_mixed, values.draw_ordinary)
    batches = [edges, *(samples(op, draw, dts, n, choices) for draw in draws)]
    if op in values.SECOND and dts[0].is_float:
        batches.append([np.resize(c, n) for c in values.close_to_bounds(op, dts[0])])
    if DECLARATIONS[op].is_division:
        batches.append(_multiples(*batches[-1]))
    return program(on_inputs(op, dts, n), *batches)


def _multiples(dividends: Array, divisors: Array) -> list[Array]:
    """Return dividends which their divisors divide, every second one less 1.

    A quotient by way of a reciprocal is one off there.
    """
    whole = dividends - np.fmod(dividends, divisors)
    whole[1::2] -= 1
    return [whole, divisors]


def edge_columns(op: Op, dts: DTypes) -> list[Array]:
    """Return every combination of special values: of the sharpest ones for several operands."""
    most = (None, 8, 2)[len(dts) - 1]
    return _combined(op, dts, partial(values.sharpest, most=most))


def _combined(op: Op, dts: DTypes, column: Callable[[DType], Array]) -> list[Array]:
    """Return every combination of some values of each dtype."""
    if DECLARATIONS[op].is_shift:
        # Every count that has a meaning, and the first that has none.
        counts = [k for k in range(dts[0].bits + 1) if k <= dts[1].max]
        return values.products(column(dts[0]), np.array(counts, np_dtype(dts[1])))
    return products(op, *map(column, dts))


def products(op: Op, *columns: Array) -> list[Array]:
    """Return every combination of the values of each operand, without zero divisors.

    A division by zero may end a program, so other programs are about it.
    """
    if DECLARATIONS[op].is_division:
        columns = (columns[0], columns[1][columns[1] != 0])
    return values.products(*columns)


def guarded(op: Op, dts: DTypes, columns: list[Array]) -> list[Array]:
    """Return the columns with valid shift counts and without zero divisors.

    Other groups have programs about those.
    """
    if DECLARATIONS[op].is_division:
        return [columns[0], np.where(columns[1] == 0, 1, columns[1]).astype(columns[1].dtype)]
    if DECLARATIONS[op].is_shift:
        # A width is a power of two, so a mask of the bits of any value is a count.
        bits = to_bits(columns[1])
        mask = bits.dtype.type(dts[0].bits - 1)
        return [columns[0], (bits & mask).astype(np_dtype(dts[1]))]
    return columns


def _shapes(op: Op, dts: DTypes, choices: Choices, index: int) -> Generated:
    """Use each shape; the first one depends on the cell, so that a small effort covers all."""
    cell = sum(map(ord, op.name + dts[-1].name))
    shapes = SHAPES[(cell + index) % len(SHAPES)][: len(dts)]
    params = _params(dts, shapes)
    data = [values.sample(values.draw_mixed, u.dtype, u.shape, choices) for u in params]
    return program(UOp(op, *params), guarded(op, dts, data))


def _constants(op: Op, dts: DTypes, choices: Choices, index: int) -> Generated:
    """Use constants in each position with inputs in the others, in all positions, and two in a row.

    Two constants in a row are not equal to one, where a result is rounded.
    """
    columns = [_columns(d, choices) for d in dts]
    constants = CONSTANTS + CONSTANTS_BY_TURNS if len(dts) < 3 else CONSTANTS_OF_THREE
    n = max(len(values.specials(d)) for d in dts)
    # Shifted, so that in a row the special values of two inputs differ.
    inputs = [np.roll(np.resize(values.specials(d), n), k) for k, d in enumerate(dts)]
    params = _params(dts, ((n,),) * len(dts))
    results = []
    for k in range(constants):
        here, later = (_row(op, dts, columns, constants * index + k + step) for step in (0, 1))
        places = range(len(dts))
        results += [UOp(op, *params[:p], here[p], *params[p + 1 :]) for p in places]
        if len(dts) > 2:
            results += [UOp(op, *here[:p], params[p], *later[p + 1 :]) for p in places]
    if len(dts) > 1:
        results.append(UOp(op, *here))
    if op in values.SECOND:
        first, second = (
            constant(c, dts[0]) for c in values.sample(values.draw_ordinary, dts[0], 2, choices)
        )
        results.append(UOp(op, UOp(op, params[0], first), second))
    return program(outputs(*dict.fromkeys(results)), guarded(op, dts, inputs))


def _exponents(dtype: DType, choices: Choices, index: int) -> Generated:
    special = values.sharpest(dtype, 4)
    x = param(0, special.shape, dtype)
    powers = [UOp(Op.POW, x, const(e, dtype)) for e in EXPONENTS]
    powers += [UOp(Op.POW, const(b, dtype), x) for b in BASES]
    return program(outputs(*powers), [special])


def _row(op: Op, dts: DTypes, columns: Sequence[Array], k: int) -> list[UOp]:
    row = guarded(op, dts, [np.roll(column, -k)[:1] for column in columns])
    return [constant(value[0], dtype) for value, dtype in zip(row, dts, strict=True)]


def _columns(dtype: DType, choices: Choices) -> Array:
    """Return constants: the first ones of each dtype, others by turns, then special values.

    A program takes some of them, and the next program those after them.
    """
    numbers, special = rewrite_constants(dtype), values.specials(dtype)
    by = CONSTANTS_BY_TURNS * list(VALUES).index(dtype)
    others = np.roll(numbers[CONSTANTS:], -by), np.roll(special, -choices.below(len(special)))
    return np.concatenate([numbers[:CONSTANTS], *others])


@cache
def rewrite_constants(dtype: DType) -> Array:
    """Return numbers that rewrites look for: 0, 1, 2, 1/2 and bits - 1, then the ends of the dtype.

    Behind them come powers of two, what a neighbour of the dtype does not hold, and a NaN with a
    payload.
    """
    if dtype is dtypes.bool:
        return values.specials(dtype)
    bits = _float_constants(dtype) if dtype.is_float else _integer_constants(dtype)
    return values.array(dtype, dict.fromkeys(bits))


def _integer_constants(dtype: DType) -> list[int]:
    low, high = values.bounds(dtype)
    half = 1 << (dtype.bits // 2)
    numbers = [0, 1, 2, dtype.bits - 1, -1, low, high, half, half - 1, -half, 4, 3, -2]
    numbers += [high // 2 + 1, high - 1]
    return [dtype.encode(n) for n in numbers if low <= n <= high]


def _float_constants(dtype: DType) -> list[int]:
    form = dtype.format
    least = 1 << form.fraction_bits
    numbers = [dtype.encode(n) for n in (0.0, -0.0, 1.0, -1.0, 2.0, 0.5)]
    payload = [form.nan_bits if form.inf_bits is None else form.exponent_mask | 3]
    ends = [form.max_bits, form.max_bits | form.sign_bit, least, 1]
    infinities = [] if form.inf_bits is None else [form.inf_bits, form.inf_bits | form.sign_bit]
    return [*numbers, *payload, *infinities, *ends, numbers[2] | 1, *map(dtype.encode, (-2.0, 3.0))]


def _counts(op: Op, others: tuple[DTypes, ...], choices: Choices, index: int) -> Generated:
    """Shift by a count of another dtype than what is shifted."""
    dts = others[(index + choices.below(len(others))) % len(others)]
    edges = edge_columns(op, dts)
    return program(on_inputs(op, dts, len(edges[0])), edges)


def _twin(op: Op, dts: DTypes, choices: Choices, index: int) -> Generated:
    """Use the published decomposition of the op as a program of its own."""
    columns = products(op, *(values.sharpest(d, 2) for d in dts))
    n = len(columns[0])
    data = (samples(op, d, dts, n, choices) for d in (values.draw_ordinary, values.draw_positive))
    return program(decomposed(on_inputs(op, dts, n)), columns, *data)


def _zero_divisors(op: Op, dts: DTypes, choices: Choices, index: int) -> Generated:
    """Divide every special value, or every value of a small dtype, by zero as input or CONST."""
    dividends = values.every_pattern(dts[0]) if dts[0].bits == 8 else values.specials(dts[0])
    zero = np.zeros(len(dividends), dividends.dtype)
    root = on_inputs(op, dts, len(dividends))
    if index == 0:
        return program(root, [dividends, zero])
    return program(UOp(op, root.src[0], constant(zero[0], dts[1])), [dividends])


def decomposed(u: UOp, keeps: Callable[[UOp], bool] = lambda u: False) -> UOp:
    """Replace each op of a graph by its decomposition, but for the ops that it keeps."""
    done: dict[UOp, UOp] = {}
    for node in u.toposort():
        same = node.with_src(done[s] for s in node.src)
        smaller = None if keeps(same) else same.decompose()
        done[node] = same if smaller is None else decomposed(smaller, keeps)
    return done[u]


def _exhaustive(op: Op, dts: DTypes, choices: Choices, index: int) -> Generated:
    patterns = [values.every_pattern(d) for d in dts]
    if DECLARATIONS[op].is_shift:
        patterns[1] = patterns[1][: dts[0].bits]
    columns = products(op, *patterns)
    return program(on_inputs(op, dts, len(columns[0])), columns)
