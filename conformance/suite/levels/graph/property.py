"""Generate level property: programs whose intervals are neither a point nor the whole dtype.

Every result must lie in the min_max of its node. A compiler that simplifies by intervals must not
go further than they do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph import intervals, steps
from uop.conformance.suite.levels.graph.growth import (
    Growth,
    GrowthStep,
    is_long,
    is_number,
    on_candidate,
)
from uop.conformance.suite.levels.graph.random_graph import bases_in, on_data, rooted
from uop.conformance.suite.levels.group import Generated, Group, group
from uop.conformance.suite.levels.nodes import cast, fold
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.dtype import DTYPES, INTS, DType, dtypes
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.properties.interval import full
from uop.spec.uop import UOp, const

DTYPES_OF_INTERVALS = (*INTS, dtypes.index, *(DTYPES[n] for n in ("float32", "float64", "float16")))
SMALL = (DTYPES["int8"], DTYPES["uint8"], dtypes.bool)
LARGEST = 40
"""The largest constant: products of a few leave an 8-bit dtype sometimes, not always."""
STEPS, STEPS_OF_PART = 40, 160
"""The most steps that are tried; a part of the language rules out many of them."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in DTYPES_OF_INTERVALS:
        args, counts = (dtype, vocabulary), (2, 10, 100)
        yield group("property", None, dtype, "intervals", counts, _intervals, *args)
    yield from intervals.groups(vocabulary)


def _intervals(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build narrow values, then ops on them until there are about ten nodes."""
    base = choices.weighted(bases_in(vocabulary))
    growth = Growth(choices, base, (dtype,), vocabulary)
    tries = STEPS if vocabulary.is_whole else STEPS_OF_PART
    with np.errstate(all="ignore"):
        for _ in range(2):
            growth.add(narrow(growth, dtype))
        for _ in range(tries):
            if len(growth.live) >= 14:
                break
            candidate = choices.weighted(TABLE)(growth)
            if candidate is not None and candidate.min_max != full(candidate.dtype):
                growth.add_if_useful(candidate)
    return on_data(growth, rooted(growth, choices))


def narrow(g: Growth, dtype: DType) -> UOp:
    """Make inputs narrow: by MOD, by CAST from a smaller dtype, by WHERE between constants.

    An input stays as it is where the vocabulary has none of these.
    """
    kind, has = g.choices.below(3), g.vocabulary.has
    smaller = [d for d in g.vocabulary.of_dtypes(SMALL) if d is not dtype and has(Op.CAST, on=d)]
    if kind == 0 and not dtype.is_float and has(Op.MOD, Op.CONST, on=dtype):
        x = g.input(dtype, g.base)
        return UOp(Op.MOD, x, const(g.choices.between(2, LARGEST), dtype))
    if kind == 1 and smaller:
        return cast(g.input(g.choices.pick(smaller), g.base), dtype)
    if not has(Op.WHERE, Op.CONST, on=dtype):
        return g.input(dtype, g.base)
    if g.vocabulary.of_dtypes((dtypes.bool,)):
        condition = g.input(dtypes.bool, g.base)
    elif has(Op.CMPLT, on=dtype):
        condition = UOp(Op.CMPLT, *(g.input(dtype, g.base) for _ in range(2)))
    else:
        return g.input(dtype, g.base)
    return UOp(Op.WHERE, condition, _constant(g, dtype), _constant(g, dtype))


def _constant(g: Growth, dtype: DType) -> UOp:
    low = 0 if dtype.min == 0 else -LARGEST
    return const(g.choices.between(low, LARGEST), dtype)


def _operand(g: Growth, u: UOp) -> UOp:
    """Return a constant, another narrow value, or a new one."""
    if g.choices.chance(40):
        return _constant(g, u.dtype)
    other = g.take(lambda v: v.dtype is u.dtype)
    return narrow(g, u.dtype) if other is None else other


def _is_integer(g: Growth, v: UOp) -> bool:
    return is_number(g, v) and not v.dtype.is_float


@on_candidate(is_number)
def arithmetic(g: Growth, u: UOp) -> UOp | None:
    ops = g.vocabulary.of((Op.ADD, Op.SUB, Op.MUL, Op.MAX, Op.MIN))
    return UOp(g.choices.pick(ops), u, _operand(g, u)) if ops else None


@on_candidate(_is_integer)
def division(g: Growth, u: UOp) -> UOp | None:
    """Divide by a positive constant, which may exceed every dividend."""
    divisor = const(g.choices.between(1, 3 * LARGEST), u.dtype)
    return UOp(g.choices.pick(g.vocabulary.of(FLOOR_DIVISIONS) or FLOOR_DIVISIONS), u, divisor)


@on_candidate(is_number)
def sign(g: Growth, u: UOp) -> UOp | None:
    ops = Op.NEG, Op.TRUNC
    return UOp(g.choices.pick(g.vocabulary.of(ops) or ops), u)


@on_candidate(_is_integer)
def comparison(g: Growth, u: UOp) -> UOp | None:
    """Compare with a constant at or near a bound of the operand's interval."""
    if u.min_max is None:
        return None
    bound = int(g.choices.pick((u.min_max.min, u.min_max.max))) + g.choices.between(-1, 1)
    if not u.dtype.min <= bound <= u.dtype.max:
        return None
    ops = Op.CMPLT, Op.CMPNE
    compared = UOp(g.choices.pick(g.vocabulary.of(ops) or ops), u, const(bound, u.dtype))
    return UOp(Op.WHERE, compared, u, _constant(g, u.dtype))


@on_candidate(is_number)
def padded(g: Growth, u: UOp) -> UOp | None:
    """Pad with zeros, which join the interval."""
    if not u.shape:
        return None
    shifted = steps.shift(g.choices, u) if max(u.shape) > 1 else u
    return UOp(Op.ADD, shifted, _constant(g, u.dtype))


@on_candidate(is_long)
def largest(g: Growth, u: UOp) -> UOp | None:
    return fold(Op.MAX, u, (len(u.shape) - 1,))


@on_candidate(_is_integer)
def converted(g: Growth, u: UOp) -> UOp | None:
    """Convert to a smaller dtype and back: what does not fit wraps."""
    smaller = [d for d in g.vocabulary.of_dtypes(SMALL) if d is not u.dtype]
    if not smaller:
        return None
    return cast(cast(u, g.choices.pick(smaller)), u.dtype)


TABLE: tuple[tuple[GrowthStep, int], ...] = (
    (arithmetic, 8),
    (division, 3),
    (comparison, 3),
    (converted, 2),
    (sign, 2),
    (padded, 1),
    (largest, 1),
)
