"""Level property: programs whose derived intervals are neither a point nor the whole dtype.

Every result must lie in the min_max of its node; a compiler that simplifies by intervals must not
go further than they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from uop.conformance.suite.case import MIXED
from uop.conformance.suite.choices import Choices, between, chance, pick, weighted
from uop.conformance.suite.levels.graph import intervals
from uop.conformance.suite.levels.graph.growth import Growth
from uop.conformance.suite.levels.graph.random_graph import bases_in, batches, rooted
from uop.conformance.suite.levels.graph.steps import Step
from uop.conformance.suite.levels.group import Group, Program
from uop.conformance.suite.levels.op import views
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import DTypeArg, PadFill, ReduceArg
from uop.spec.dtype import DTYPES, INTS, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.properties.interval import full
from uop.spec.uop import UOp, const

DTYPES_OF_INTERVALS = (*INTS, dtypes.index, *(DTYPES[n] for n in ("float32", "float64", "float16")))
SMALL = (DTYPES["int8"], DTYPES["uint8"], dtypes.bool)
LARGEST = 40
"""Of the constants: products of a few leave an 8-bit dtype sometimes, not always."""
STEPS, STEPS_OF_PART = 40, 160
"""Steps that are tried, of which a part of the language rules out many."""
DIVISIONS = (Op.IDIV, Op.MOD)
SIGNS = (Op.NEG, Op.TRUNC)
COMPARES = (Op.CMPLT, Op.CMPNE)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in DTYPES_OF_INTERVALS:
        build = partial(_intervals, dtype, vocabulary)
        yield Group("property", MIXED, dtype.name, "intervals", (2, 10, 100), build)
    yield from intervals.groups(vocabulary)


def _intervals(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """Narrow values first, then ops on them until there are about ten nodes."""
    base = weighted(choices, bases_in(vocabulary))
    growth = Growth(choices, base, (dtype,), vocabulary)
    tries = STEPS if vocabulary.is_whole else STEPS_OF_PART
    with np.errstate(all="ignore"):
        for _ in range(2):
            growth.add(narrow(growth, dtype))
        for _ in range(tries):
            if len(growth.live) >= 14:
                break
            candidate = weighted(choices, TABLE)(growth)
            if candidate is not None and candidate.min_max != full(candidate.dtype):
                growth.offer(candidate)
        root = rooted(growth, choices)
    return Program(root, batches(growth, root))


def narrow(g: Growth, dtype: DType) -> UOp:
    """Inputs made narrow: by MOD, by CAST from a smaller dtype, by WHERE between constants.

    An input as it is where the vocabulary has none of these.
    """
    kind, has = g.choices.below(3), g.vocabulary.has
    smaller = [d for d in g.vocabulary.of_dtypes(SMALL) if d is not dtype]
    if kind == 0 and not dtype.is_float and has(Op.MOD, Op.CONST):
        x = g.input(dtype, g.base)
        return UOp(Op.MOD, x, const(between(g.choices, 2, LARGEST), dtype))
    if kind == 1 and smaller and has(Op.CAST):
        return UOp(Op.CAST, g.input(pick(g.choices, smaller), g.base), arg=DTypeArg(dtype))
    if not has(Op.WHERE, Op.CONST):
        return g.input(dtype, g.base)
    if g.vocabulary.of_dtypes((dtypes.bool,)):
        condition = g.input(dtypes.bool, g.base)
    elif has(Op.CMPLT):
        condition = UOp(Op.CMPLT, *(g.input(dtype, g.base) for _ in range(2)))
    else:
        return g.input(dtype, g.base)
    return UOp(Op.WHERE, condition, _constant(g, dtype), _constant(g, dtype))


def _constant(g: Growth, dtype: DType) -> UOp:
    low = 0 if dtype.min == 0 else -LARGEST
    return const(between(g.choices, low, LARGEST), dtype)


def _operand(g: Growth, u: UOp) -> UOp:
    """A constant, another narrow value, or one made now."""
    if chance(g.choices, 40):
        return _constant(g, u.dtype)
    other = g.take(lambda v: v.dtype is u.dtype)
    return narrow(g, u.dtype) if other is None else other


def _numeric(g: Growth) -> UOp | None:
    return g.take(lambda v: v.dtype is not dtypes.bool)


def arithmetic(g: Growth) -> UOp | None:
    u = _numeric(g)
    if u is None:
        return None
    ops = g.vocabulary.of((Op.ADD, Op.SUB, Op.MUL, Op.MAX, Op.MIN))
    return UOp(pick(g.choices, ops), u, _operand(g, u)) if ops else None


def division(g: Growth) -> UOp | None:
    """By a positive constant, which may be larger than every dividend."""
    u = g.take(lambda v: v.dtype is not dtypes.bool and not v.dtype.is_float)
    if u is None:
        return None
    divisor = const(between(g.choices, 1, 3 * LARGEST), u.dtype)
    return UOp(pick(g.choices, g.vocabulary.of(DIVISIONS) or DIVISIONS), u, divisor)


def sign(g: Growth) -> UOp | None:
    u = _numeric(g)
    return None if u is None else UOp(pick(g.choices, g.vocabulary.of(SIGNS) or SIGNS), u)


def comparison(g: Growth) -> UOp | None:
    """With a constant at or near a bound of the operand's interval, where a wrong rule decides."""
    u = g.take(lambda v: v.dtype is not dtypes.bool and not v.dtype.is_float)
    if u is None or u.min_max is None:
        return None
    bound = int(pick(g.choices, (u.min_max.min, u.min_max.max))) + between(g.choices, -1, 1)
    if not u.dtype.min <= bound <= u.dtype.max:
        return None
    op = pick(g.choices, g.vocabulary.of(COMPARES) or COMPARES)
    compared = UOp(op, u, const(bound, u.dtype))
    return UOp(Op.WHERE, compared, u, _constant(g, u.dtype))


def padded(g: Growth) -> UOp | None:
    """Zeros join the interval."""
    u = _numeric(g)
    if u is None or not u.shape:
        return None
    shifted = views.shift(g.choices, u, PadFill.ZERO) if max(u.shape) > 1 else u
    return UOp(Op.ADD, shifted, _constant(g, u.dtype))


def largest(g: Growth) -> UOp | None:
    u = g.take(lambda v: any(s > 1 for s in v.shape))
    if u is None:
        return None
    return UOp(Op.REDUCE, u, arg=ReduceArg(Op.MAX, (len(u.shape) - 1,)))


def converted(g: Growth) -> UOp | None:
    """To a smaller dtype and back: what does not fit wraps."""
    u = g.take(lambda v: not v.dtype.is_float and v.dtype is not dtypes.bool)
    if u is None:
        return None
    smaller = [d for d in g.vocabulary.of_dtypes(SMALL) if d is not u.dtype]
    if not smaller:
        return None
    cast = UOp(Op.CAST, u, arg=DTypeArg(pick(g.choices, smaller)))
    return UOp(Op.CAST, cast, arg=DTypeArg(u.dtype))


TABLE: tuple[tuple[Step, int], ...] = (
    (arithmetic, 8),
    (division, 3),
    (comparison, 3),
    (converted, 2),
    (sign, 2),
    (padded, 1),
    (largest, 1),
)
