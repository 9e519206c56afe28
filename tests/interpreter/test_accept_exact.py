"""Selections and integers are accepted exactly: all outcomes, by brute force, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from oracles.allowed import COMPARISONS

from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.storage import Array, from_bits, np_dtype
from uop.spec.args import DTypeArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.latitude import MaxNan, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param

E5M2, INT8, UINT8, BOOL = dtypes.fp8e5m2, dtypes.int8, dtypes.uint8, dtypes.bool
NAN = 0x7E
"""Stands for every NaN of fp8e5m2."""
KNOBS: tuple[MaxNan, ...] = ("either", "propagate", "number")
Outcomes = frozenset[int]
Choose = Callable[[int, int], Iterable[int]]


def admitted(accepted: Accepted) -> list[set[int]]:
    """The patterns of a byte that the set of each element has, with one for all NaNs."""
    patterns = from_bits(np.arange(256, dtype=np.uint8), accepted.dtype)
    inside = [
        accepted.contains(np.full(accepted.value.data.shape, p, patterns.dtype)).reshape(-1)
        for p in patterns
    ]
    found = [set(np.flatnonzero(column).tolist()) for column in np.transpose(inside)]
    if not accepted.dtype.is_float:
        return [s & {0, 1} if accepted.dtype is BOOL else s for s in found]
    return [{NAN if is_nan(x) else x for x in s} for s in found]


def is_nan(x: int) -> bool:
    return x & 0x7F > 0x7C


def value(x: int) -> float:
    return float(from_bits(np.asarray([x], np.uint8), E5M2)[0])


# MAX and MIN of floats, elementwise and folded


def larger(sign: int, knob: MaxNan) -> Choose:
    """What the spec lets MAX (sign 1) or MIN (sign -1) return for two values."""

    def choose(a: int, b: int) -> set[int]:
        if is_nan(a) and is_nan(b):
            return {NAN}
        if is_nan(a) or is_nan(b):
            nan, number = ({NAN}, {b if is_nan(a) else a})
            return {"either": nan | number, "propagate": nan, "number": number}[knob]
        x, y = sign * value(a), sign * value(b)
        return {a, b} if x == y else {a if x > y else b}

    return choose


def folds(choose: Choose, terms: tuple[int, ...], start: int) -> Outcomes:
    """The results of all orders and groupings, where the parts may start from `start`."""

    @cache
    def of(rest: tuple[int, ...]) -> Outcomes:
        if len(rest) == 1:
            return frozenset(rest)
        halves = range(1, 1 << (len(rest) - 1))
        return frozenset(
            result
            for half in halves
            for a in of(tuple(t for k, t in enumerate(rest) if half >> k & 1))
            for b in of(tuple(t for k, t in enumerate(rest) if not half >> k & 1))
            for result in choose(a, b)
        )

    return frozenset(x for n in range(3) for x in of(tuple(sorted((*terms, *[start] * n)))))


SPECIAL = (0x00, 0x80, 0x3C, 0xBC, 0x44, 0x01, 0x7C, 0xFC, NAN)
"""Both zeros, 1, -1, 4, the least, both infinities, NaN."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("knob", KNOBS)
@pytest.mark.parametrize("op", [Op.MAX, Op.MIN], ids=lambda op: op.name)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_fold_of_floats_gives_what_some_order_gives(op: Op, count: int, knob: MaxNan) -> None:
    sign = 1 if op is Op.MAX else -1
    rows = list(combinations_with_replacement(SPECIAL, count))
    terms = from_bits(np.asarray(rows, np.uint8), E5M2)
    u = UOp(Op.REDUCE, param(0, terms.shape, E5M2), arg=ReduceArg(op, (1,)))
    (accepted,) = accept(u, {0: terms}, Profile(max_nan=knob))
    choose, start = larger(sign, knob), 0xFC if op is Op.MAX else 0x7C
    for row, found in zip(rows, admitted(accepted), strict=True):
        assert found == folds(choose, row, start), row


@pytest.mark.parametrize("knob", KNOBS)
@pytest.mark.parametrize("op", [Op.MAX, Op.MIN], ids=lambda op: op.name)
def test_the_larger_of_two_sets_is_exact(op: Op, knob: MaxNan) -> None:
    """Each operand is one of two values."""
    pairs = list(combinations_with_replacement(SPECIAL, 2))
    rows = [(a, b) for a in pairs for b in pairs]
    u, inputs = on_choices(op, E5M2, rows)
    (accepted,) = accept(u, inputs, Profile(max_nan=knob))
    choose = larger(1 if op is Op.MAX else -1, knob)
    for (a, b), found in zip(rows, admitted(accepted), strict=True):
        assert found == {r for x in a for y in b for r in choose(x, y)}, (a, b)


def on_choices(
    op: Op, dtype: DType, rows: list[tuple[tuple[int, ...], ...]]
) -> tuple[UOp, dict[int, Array]]:
    """An op on operands that are one of two values each: CMPGE of a NaN is either bool."""
    n = len(rows)
    unsure = UOp(Op.CMPGE, param(0, (n,), E5M2), const(1.0, E5M2))
    inputs = {0: np.full(n, np.nan, np_dtype(E5M2))}
    operands = []
    for k in range(len(rows[0])):
        slots = 2 * k + 1, 2 * k + 2
        for slot, which in zip(slots, (0, 1), strict=True):
            bits = np.asarray([row[k][which] for row in rows], np.uint8)
            inputs[slot] = from_bits(bits, dtype)
        operands.append(UOp(Op.WHERE, unsure, *(param(slot, (n,), dtype) for slot in slots)))
    return UOp(op, *operands), inputs


# Integers and bools: the results by Python's integers


def wrapped(x: int, dtype: DType) -> int:
    """The bits of an integer modulo 2^8."""
    return x & 0xFF if dtype is not BOOL else int(x != 0)


EXACT: dict[Op, Callable[[int, int], int | None]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.MAX: max,
    Op.MIN: min,
    Op.IDIV: lambda a, b: a // b if b else None,
    Op.MOD: lambda a, b: a % b if b else None,
    Op.AND: lambda a, b: a & b,
    Op.OR: lambda a, b: a | b,
    Op.XOR: lambda a, b: a ^ b,
    Op.SHL: lambda a, b: a << b if 0 <= b < 8 else None,
    Op.SHR: lambda a, b: a >> b if 0 <= b < 8 else None,
}
INTS = {INT8: (-128, -1, 0, 1, 3, 127), UINT8: (0, 1, 5, 200, 255), BOOL: (0, 1)}


@pytest.mark.parametrize("dtype", INTS, ids=lambda d: d.name)
@pytest.mark.parametrize("op", EXACT, ids=lambda op: op.name)
def test_integers_that_are_one_of_two_give_what_one_of_them_gives(op: Op, dtype: DType) -> None:
    if dtype is BOOL and op in (Op.SUB, Op.IDIV, Op.MOD, Op.SHL, Op.SHR):
        return
    pairs = list(combinations_with_replacement(INTS[dtype], 2))
    rows = [(a, b) for a in pairs for b in pairs]
    u, inputs = on_choices(op, dtype, bits_of(rows))
    (accepted,) = accept(u, inputs)
    for (a, b), found in zip(rows, admitted(accepted), strict=True):
        results = [EXACT[op](x, y) for x in a for y in b]
        if None in results:
            assert len(found) == 256
            continue
        assert found == {wrapped(r, dtype) for r in results if r is not None}, (a, b)


def bits_of(rows: list[tuple[tuple[int, ...], ...]]) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(tuple(x & 0xFF for x in pair) for pair in row) for row in rows]


def truncated(a: int, b: int) -> int:
    """The quotient rounded toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


TRUNCATED: dict[Op, Callable[[int, int], int | None]] = {
    Op.IDIV: lambda a, b: truncated(a, b) if b else None,
    Op.MOD: lambda a, b: a - b * truncated(a, b) if b else None,
}


@pytest.mark.parametrize("op", TRUNCATED, ids=lambda op: op.name)
def test_integers_that_are_one_of_two_may_be_divided_toward_zero(op: Op) -> None:
    values = (-7, -1, 1, 2, 7)
    pairs = list(combinations_with_replacement(values, 2))
    rows = [(a, b) for a in pairs for b in pairs]
    u, inputs = on_choices(op, INT8, bits_of(rows))
    (accepted,) = accept(u, inputs, Profile(int_div="trunc"))
    for (a, b), found in zip(rows, admitted(accepted), strict=True):
        results = [TRUNCATED[op](x, y) for x in a for y in b]
        assert found == {wrapped(r, INT8) for r in results if r is not None}, (a, b)


@pytest.mark.parametrize("op", COMPARISONS, ids=lambda op: op.name)
def test_comparisons_of_floats_that_are_one_of_two(op: Op) -> None:
    pairs = list(combinations_with_replacement(SPECIAL, 2))
    rows = [(a, b) for a in pairs for b in pairs]
    u, inputs = on_choices(op, E5M2, rows)
    free = op in (Op.CMPGE, Op.CMPLE)
    (accepted,) = accept(u, inputs)
    for (a, b), found in zip(rows, admitted(accepted), strict=True):
        results = {int(COMPARISONS[op](value(x), value(y))) for x in a for y in b}
        if free and any(map(is_nan, (*a, *b))):
            results |= {0, 1}
        assert found == results, (a, b)


@pytest.mark.parametrize("target", [INT8, UINT8, BOOL], ids=lambda d: d.name)
@pytest.mark.parametrize("source", [INT8, UINT8, BOOL], ids=lambda d: d.name)
def test_a_cast_and_the_bits_of_an_integer_that_is_one_of_two(source: DType, target: DType) -> None:
    rows = [(pair,) for pair in combinations_with_replacement(INTS[source], 2)]
    for op in (Op.CAST, Op.BITCAST):
        if op is Op.BITCAST and BOOL in (source, target):
            continue
        node, inputs = on_choices(Op.DETACH, source, bits_of(rows))
        (accepted,) = accept(UOp(op, node.src[0], arg=DTypeArg(target)), inputs)
        for (a,), found in zip(rows, admitted(accepted), strict=True):
            assert found == {wrapped(x, target) for x in a}, a


FOLDED: dict[Op, Callable[[Iterable[int]], int]] = {
    Op.ADD: sum,
    Op.MUL: math.prod,
    Op.MAX: max,
    Op.MIN: min,
}


@pytest.mark.parametrize("dtype", INTS, ids=lambda d: d.name)
@pytest.mark.parametrize("op", FOLDED, ids=lambda op: op.name)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_fold_of_integers_is_one_value(op: Op, dtype: DType, count: int) -> None:
    rows = list(combinations_with_replacement(INTS[dtype], count))
    bits = np.asarray([[x & 0xFF for x in row] for row in rows], np.uint8)
    terms = from_bits(bits, dtype)
    u = UOp(Op.REDUCE, param(0, terms.shape, dtype), arg=ReduceArg(op, (1,)))
    (accepted,) = accept(u, {0: terms})
    for row, found in zip(rows, admitted(accepted), strict=True):
        assert found == {wrapped(FOLDED[op](row), dtype)}, row


def test_a_choice_among_floats_keeps_their_bits() -> None:
    pairs = list(combinations_with_replacement((*SPECIAL, 0xFF), 2))
    node, inputs = on_choices(Op.DETACH, E5M2, [(pair,) for pair in pairs])
    (accepted,) = accept(node, inputs)
    for pair, found in zip(pairs, admitted(accepted), strict=True):
        assert found == {NAN if is_nan(x) else x for x in pair}, pair
