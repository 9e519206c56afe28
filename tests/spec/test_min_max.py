"""Intervals promise nothing that a value breaks: every rule against brute force over a small dtype.

An operand with the interval [lo, hi] is STACK(lo, hi). The concrete results are computed here, with
Python integers and exact fractions; where the spec gives no value the result is None.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import bits_of

from uop.spec.args import BufferArg, ConstArg, DTypeArg, PadArg, PadFill, ReduceArg
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.ops.names import Op
from uop.spec.properties.interval import Interval, dtype_range
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, dims, index_const, param

Rule = Callable[[int, int], int | None]
EDGES = {
    dtypes.int8: (-128, -127, -2, -1, 0, 1, 2, 126, 127),
    dtypes.uint8: (0, 1, 2, 3, 127, 128, 129, 254, 255),
    dtypes.index: (-3, -2, -1, 0, 1, 2, 3),
    dtypes.bool: (False, True),
}


def divided(x: int, y: int) -> int | None:
    return x // y if y else None


def remainder(x: int, y: int) -> int | None:
    return x % y if y else None


INT_RULES: dict[Op, Rule] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.MAX: max,
    Op.MIN: min,
    Op.IDIV: divided,
    Op.MOD: remainder,
    Op.CMPLT: operator.lt,
    Op.CMPNE: operator.ne,
    Op.CMPGT: operator.gt,
    Op.CMPGE: operator.ge,
    Op.CMPLE: operator.le,
    Op.CMPEQ: operator.eq,
    Op.XOR: operator.xor,
    Op.OR: operator.or_,
    Op.AND: operator.and_,
    Op.SHL: lambda x, y: x << y if 0 <= y < 8 else None,
    Op.SHR: lambda x, y: x >> y if 0 <= y < 8 else None,
}
BOOL_RULES: dict[Op, Rule] = {
    Op.ADD: operator.or_,
    Op.MUL: operator.and_,
    Op.MAX: operator.or_,
    Op.MIN: operator.and_,
    **{op: INT_RULES[op] for op in (Op.XOR, Op.OR, Op.AND, Op.CMPLT, Op.CMPNE, Op.CMPEQ)},
}
NOT_OF_INDEX = {Op.XOR, Op.OR, Op.AND, Op.SHL, Op.SHR}
INT_CASES = [
    (op, dtype)
    for dtype in EDGES
    for op in (BOOL_RULES if dtype is dtypes.bool else INT_RULES)
    if not (dtype is dtypes.index and op in NOT_OF_INDEX)
]


def wrapped(dtype: DType, value: int) -> int:
    """The value modulo 2^n, in the range of the dtype; an index is not wrapped."""
    if dtype.kind in (Kind.BOOL, Kind.INDEX):
        return value
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.is_signed and value >> (dtype.bits - 1) else value


def intervals(values: Iterable[float]) -> list[tuple[float, float]]:
    return list(itertools.combinations_with_replacement(values, 2))


def between(low: float, high: float, dtype: DType) -> UOp:
    """An operand whose interval is [low, high]."""
    u = UOp(Op.STACK, const(low, dtype), const(high, dtype))
    assert u.min_max == Interval(low, high)
    return u


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("op", "dtype"), INT_CASES, ids=lambda x: getattr(x, "name", str(x)))
def test_binary_integer_rules_over_all_pairs_of_intervals(op: Op, dtype: DType) -> None:
    rule = BOOL_RULES[op] if dtype is dtypes.bool else INT_RULES[op]
    first, last = EDGES[dtype][0], EDGES[dtype][-1]
    span = range(first, last + 1)
    operands = {(lo, hi): between(lo, hi, dtype) for lo, hi in intervals(EDGES[dtype])}
    to = UOp(op, *[between(first, last, dtype)] * 2).dtype
    results = [[rule(x, y) for y in span] for x in span]
    low_if_none = [[math.inf if r is None else wrapped(to, r) for r in row] for row in results]
    high_if_none = [[-math.inf if r is None else wrapped(to, r) for r in row] for row in results]
    lowest, highest = np.array(low_if_none), np.array(high_if_none)
    for (a, b), (c, d) in itertools.product(operands, repeat=2):
        found = UOp(op, operands[a, b], operands[c, d]).min_max
        assert found is not None
        window = (slice(a - first, b - first + 1), slice(c - first, d - first + 1))
        assert found.min <= lowest[window].min(), (a, b, c, d)
        assert found.max >= highest[window].max(), (a, b, c, d)
        assert not found.may_be_nan


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.index], ids=repr)
def test_unary_integer_rules_over_all_intervals(dtype: DType) -> None:
    for low, high in intervals(EDGES[dtype]):
        u = between(low, high, dtype)
        negated = UOp(Op.NEG, u).min_max
        assert negated is not None
        members = range(int(low), int(high) + 1)
        assert all(negated.min <= wrapped(dtype, -x) <= negated.max for x in members)
        assert UOp(Op.TRUNC, u).min_max == u.min_max


FP8 = [dtypes.fp8e4m3, dtypes.fp8e5m2]


def ieee_add(x: float, y: float) -> float:
    return x + y


def ieee_mul(x: float, y: float) -> float:
    if (math.isinf(x) and y == 0) or (math.isinf(y) and x == 0):
        return math.nan
    return x * y


def nan_wins(x: float, y: float, choose: Callable[..., float] = max) -> float:
    return math.nan if math.isnan(x) or math.isnan(y) else choose(x, y)


def number_wins(x: float, y: float, choose: Callable[..., float] = max) -> float:
    return y if math.isnan(x) else x if math.isnan(y) else choose(x, y)


FLOAT_RULES: list[tuple[Op, Callable[[float, float], float]]] = [
    (Op.ADD, ieee_add),
    (Op.SUB, lambda x, y: x + -y),
    (Op.MUL, ieee_mul),
    (Op.MAX, nan_wins),
    (Op.MAX, number_wins),
    (Op.MIN, partial(nan_wins, choose=min)),
    (Op.MIN, partial(number_wins, choose=min)),
    (Op.CMPLT, lambda x, y: float(x < y)),
    (Op.CMPNE, lambda x, y: float(x != y)),
]


def float_edges(dtype: DType) -> list[float]:
    form = dtype.format
    finite = [dtype.decode(b) for b in (form.max_bits, 1, dtype.encode(1.5))]
    ends = [dtype.max, *finite]
    return sorted({float(s * x) for x in ends for s in (1, -1)} | {0.0})


def rounding(dtype: DType) -> Callable[[float], float]:
    """Sums and products of 8-bit floats are exact in float64, so this rounds once."""
    known: dict[float, float] = {}

    def rounded(x: float) -> float:
        if math.isnan(x):
            return x
        if x not in known:
            known[x] = float(dtype.decode(dtype.encode(x)))
        return known[x]

    return rounded


def extremes(
    table: NDArray[np.float64], rows: list[int], columns: list[int]
) -> tuple[float, float, bool]:
    """The lowest and highest ordinary result in a window, and whether there is a NaN."""
    window = table[np.ix_(rows, columns)]
    ordinary = window[~np.isnan(window)]
    low = ordinary.min() if ordinary.size else math.inf
    high = ordinary.max() if ordinary.size else -math.inf
    return float(low), float(high), bool(np.isnan(window).any())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", FP8, ids=repr)
@pytest.mark.parametrize(("op", "rule"), FLOAT_RULES, ids=lambda x: getattr(x, "name", ""))
def test_binary_float_rules_over_pairs_of_intervals(
    op: Op, rule: Callable[[float, float], float], dtype: DType
) -> None:
    every = [float(dtype.decode(b)) for b in range(256)]
    rounded = float if op in (Op.CMPLT, Op.CMPNE) else rounding(dtype)
    table = np.array([[rounded(rule(x, y)) for y in every] for x in every])
    operands: list[tuple[UOp, list[int]]] = []
    for low, high in intervals(float_edges(dtype)):
        members = [i for i, x in enumerate(every) if low <= x <= high]
        operands.append((between(low, high, dtype), members))
    nan = UOp(Op.STACK, const(math.nan, dtype), const(1.0, dtype))
    operands.append((nan, list(range(256))))
    for (a, rows), (b, columns) in itertools.product(operands, repeat=2):
        found = UOp(op, a, b).min_max
        assert found is not None
        low, high, has_nan = extremes(table, rows, columns)
        assert found.min <= low, (a.min_max, b.min_max)
        assert found.max >= high, (a.min_max, b.min_max)
        assert found.may_be_nan or not has_nan, (a.min_max, b.min_max)


@pytest.mark.parametrize("dtype", FP8, ids=repr)
def test_unary_float_rules_over_all_intervals(dtype: DType) -> None:
    every = [float(dtype.decode(b)) for b in range(256)]
    for low, high in intervals(float_edges(dtype)):
        members = [x for x in every if low <= x <= high]
        negated = UOp(Op.NEG, between(low, high, dtype)).min_max
        truncated = UOp(Op.TRUNC, between(low, high, dtype)).min_max
        assert negated is not None
        assert truncated is not None
        assert all(negated.min <= -x <= negated.max for x in members)
        wholes = [x if math.isinf(x) else float(math.trunc(x)) for x in members]
        assert all(truncated.min <= x <= truncated.max for x in wholes)


def cast_edges(dtype: DType) -> list[float]:
    """A few values of any dtype: its ends, the ends of smaller ones, and what lies between."""
    if dtype.kind is Kind.BOOL:
        return [False, True]
    wanted = (0, 1, -1, 0.5, -0.9, 127, 128, -128, 300, 465, 65520, 1 << 31, 1 << 63)
    found: set[float] = {dtype.min, dtype.max}
    for x in wanted:
        if dtype.is_float:
            value = dtype.decode(dtype.encode(x))
            found |= set() if math.isnan(value) else {value}
        elif x == int(x) and dtype.min <= x <= dtype.max:
            found.add(int(x))
    return sorted(found)[:12]


def cast(x: float, source: DType, target: DType) -> float | None:
    """The cast of a value, exactly; None where the spec gives none."""
    if target.kind is Kind.BOOL:
        return x != 0
    if target.is_float:
        return float(target.decode(target.encode(x if isinstance(x, float) else Fraction(x))))
    if not math.isfinite(x):
        return None
    whole = math.trunc(x)
    if source.is_float and not target.min <= whole <= target.max:
        return None
    return wrapped(target, whole)


VALUES = [d for d in DTYPES.values() if d.kind is not Kind.VOID]


@pytest.mark.parametrize("source", VALUES, ids=repr)
def test_casts_of_intervals_hold_the_casts_of_their_values(source: DType) -> None:
    edges = cast_edges(source)
    for target in VALUES:
        if source.is_float and target is dtypes.index:
            continue
        for low, high in intervals(edges):
            u = UOp(Op.CAST, between(low, high, source), arg=DTypeArg(target))
            assert u.min_max is not None
            for x in (e for e in edges if low <= e <= high):
                result = cast(x, source, target)
                if result is None or (
                    target is dtypes.index and not target.min <= result <= target.max
                ):
                    continue
                if math.isnan(result):
                    assert u.min_max.may_be_nan, (source, target, low, high)
                else:
                    assert u.min_max.min <= result <= u.min_max.max, (source, target, low, high, x)


@pytest.mark.parametrize("target", VALUES, ids=repr)
def test_a_cast_of_what_may_be_nan(target: DType) -> None:
    if target is dtypes.index:
        return
    zero_or_nan = UOp(Op.STACK, const(math.nan, dtypes.float32), const(0.0, dtypes.float32))
    found = UOp(Op.CAST, zero_or_nan, arg=DTypeArg(target)).min_max
    assert found is not None
    assert found.may_be_nan == target.is_float
    assert found.min <= 0 <= found.max
    assert found.max >= (1 if target is dtypes.bool else 0)


def test_structural_rules() -> None:
    u, v = between(-3, 5, dtypes.int8), between(7, 9, dtypes.int8)
    assert UOp(Op.STACK, u, v).min_max == Interval(-3, 9)
    assert UOp(Op.PAD, v, dims((1,)), dims((4,))).min_max == Interval(7, 9)
    zero = PadArg(PadFill.ZERO)
    assert UOp(Op.PAD, v, dims((1,)), dims((4,)), arg=zero).min_max == Interval(0, 9)
    assert UOp(Op.LOAD, v, u).min_max == Interval(-3, 9)
    assert UOp(Op.CONTIGUOUS, v).min_max == Interval(7, 9)
    assert UOp(Op.INDEX, v, index_const(0)).min_max == Interval(7, 9)
    assert UOp(Op.REDUCE, v, arg=ReduceArg(Op.ADD, (0,))).min_max == Interval(-128, 127)
    assert UOp(Op.REDUCE, v, arg=ReduceArg(Op.MAX, (0,))).min_max == Interval(-128, 9)
    assert UOp(Op.SINK).min_max is None
    assert dtype_range(dtypes.void) is None


@pytest.mark.parametrize("dtype", VALUES, ids=repr)
def test_what_no_rule_narrows_is_all_of_the_dtype(dtype: DType) -> None:
    t = param(0, (2,), dtype)
    count = param(1, (2,), dtypes.int8)
    found = [t, UOp(Op.BUFFER, dims((2,)), arg=BufferArg(0, dtype))]
    for op in (Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT, Op.POW, Op.RECIP, Op.DIV, Op.THREEFRY):
        if dtype in (declared := DECLARATIONS[op]).dtypes:
            found.append(UOp(op, *[t] * len(declared.src)))
    if dtype.is_int:
        found += [UOp(Op.SHL, t, count), UOp(Op.ADD, t, t), UOp(Op.MULACC, t, t, t)]
    if dtype.kind is not Kind.INDEX:
        found.append(UOp(Op.BITCAST, t, arg=DTypeArg(dtype)))
        found.append(UOp(Op.REDUCE, t, arg=ReduceArg(Op.ADD, (0,))))
    for u in found:
        assert u.min_max == Interval(dtype.min, dtype.max, dtype.is_float), u.op


def test_where_joins_unless_its_condition_is_known() -> None:
    a, b = between(1, 2, dtypes.int8), between(7, 9, dtypes.int8)
    either = param(0, (2,), dtypes.bool)
    assert UOp(Op.WHERE, either, a, b).min_max == Interval(1, 9)
    assert UOp(Op.WHERE, const(True, dtypes.bool), a, b).min_max == Interval(1, 2)
    assert UOp(Op.WHERE, const(False, dtypes.bool), a, b).min_max == Interval(7, 9)


def test_rules_are_not_loose_where_they_can_be_exact() -> None:
    a, b = between(1, 2, dtypes.int8), between(3, 5, dtypes.int8)
    exact = {
        Op.ADD: Interval(4, 7),
        Op.SUB: Interval(-4, -1),
        Op.MUL: Interval(3, 10),
        Op.MAX: Interval(3, 5),
        Op.MIN: Interval(1, 2),
        Op.IDIV: Interval(0, 0),
        Op.MOD: Interval(1, 2),
        Op.CMPLT: Interval(True, True),
        Op.CMPNE: Interval(True, True),
    }
    for op, expected in exact.items():
        assert UOp(op, a, b).min_max == expected, op
    assert UOp(Op.NEG, a).min_max == Interval(-2, -1)
    i = UOp(Op.CAST, a, arg=DTypeArg(dtypes.float32))
    assert UOp(Op.MUL, i, i).min_max == Interval(1.0, 4.0)


def test_bits_shifts_and_negative_divisors_have_sharp_intervals() -> None:
    any_, few = param(0, (2,), dtypes.int8), between(3, 5, dtypes.int8)
    byte = param(1, (2,), dtypes.uint8)
    one, zero = const(1.0, dtypes.float32), const(0.0, dtypes.float32)
    to_bits = DTypeArg(dtypes.uint32)
    no_bool = UOp(Op.BITCAST, const(-1, dtypes.int8), arg=DTypeArg(dtypes.bool))
    for u, expected in (
        (UOp(Op.MOD, const(7, dtypes.int8), const(-4, dtypes.int8)), Interval(-1, -1)),
        (UOp(Op.MOD, any_, const(-4, dtypes.int8)), Interval(-3, 0)),
        (UOp(Op.IDIV, few, const(-2, dtypes.int8)), Interval(-3, -2)),
        (UOp(Op.IDIV, any_, const(-1, dtypes.int8)), Interval(-128, 127)),
        (UOp(Op.AND, any_, const(7, dtypes.int8)), Interval(0, 7)),
        (UOp(Op.OR, few, const(8, dtypes.int8)), Interval(8, 15)),
        (UOp(Op.XOR, few, few), Interval(0, 7)),
        (UOp(Op.XOR, const(3, dtypes.int8), const(-3, dtypes.int8)), Interval(-2, -2)),
        (UOp(Op.SHR, byte, const(4, dtypes.uint8)), Interval(0, 15)),
        (UOp(Op.SHL, few, const(2, dtypes.int8)), Interval(12, 20)),
        (UOp(Op.SHL, few, const(6, dtypes.int8)), Interval(-128, 127)),
        (UOp(Op.NOT, const(True, dtypes.bool)), Interval(False, False)),
        (UOp(Op.SQRT, const(4.0, dtypes.float64)), Interval(2.0, 2.0)),
        (UOp(Op.SQRT, UOp(Op.NEG, one)), Interval(-math.inf, math.inf, may_be_nan=True)),
        (UOp(Op.BITCAST, one, arg=to_bits), Interval(0x3F800000, 0x3F800000)),
        (UOp(Op.BITCAST, zero, arg=to_bits), Interval(0, 2**32 - 1)),
        (no_bool, Interval(False, True)),
    ):
        assert u.min_max == expected, u
    # What may be accepted of a root in float32 is three steps away from it.
    root = UOp(Op.SQRT, const(4.0, dtypes.float32)).min_max
    assert root == Interval(2 - 3 * 2.0**-23, 2 + 3 * 2.0**-22)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(VALUES).flatmap(lambda d: st.tuples(st.just(d), bits_of(d))))
def test_a_constant_lies_in_its_interval(constant: tuple[DType, int]) -> None:
    dtype, bits = constant
    u, value = UOp(Op.CONST, arg=ConstArg(bits, dtype)), dtype.decode(bits)
    assert u.min_max is not None
    if isinstance(value, float) and math.isnan(value):
        assert u.min_max.may_be_nan
    else:
        assert u.min_max == Interval(value, value)
