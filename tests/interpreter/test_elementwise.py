"""The elementwise primitives against exact arithmetic on single elements."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import exact
from oracles.rules import array, open_elements, run, run_bits, values

from uop.interpreter.numeric.storage import np_dtype, to_bits
from uop.interpreter.rules.table import RULES, evaluates
from uop.spec.dtype import FLOATS, INTS, DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op

BYTE_FLOATS = [dtypes.fp8e4m3, dtypes.fp8e5m2]
SHORT_FLOATS = [dtypes.float16, dtypes.bfloat16]
BYTE_INTS = [dtypes.int8, dtypes.uint8]
INT_OPS: dict[Op, Callable[[int, int], int]] = {
    Op.ADD: operator.add,
    Op.MUL: operator.mul,
    Op.MAX: max,
    Op.XOR: operator.xor,
    Op.OR: operator.or_,
    Op.AND: operator.and_,
}
COMPARISONS: dict[Op, Callable[[int | float, int | float], bool]] = {
    Op.CMPLT: operator.lt,
    Op.CMPNE: operator.ne,
}
DIVISIONS: dict[Op, Callable[[int, int], int]] = {
    Op.IDIV: operator.floordiv,
    Op.MOD: operator.mod,
}


def all_pairs(dtype: DType) -> tuple[list[int], list[int]]:
    n = 1 << dtype.bits
    return [a for a in range(n) for _ in range(n)], list(range(n)) * n


def edges(dtype: DType) -> list[int]:
    """Integers around the ends of the dtype, of its halves and of zero."""
    low, high = int(dtype.min), int(dtype.max)
    near = {low, low + 1, -2, -1, 0, 1, 2, 3, 7, high // 2, high // 2 + 1, high - 1, high, 0x5A}
    return sorted(v for v in near if low <= v <= high)


def pairs_of_bits(dtype: DType) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Pairs of patterns, special values and near neighbours among them."""
    one = st.integers(0, (1 << dtype.bits) - 1) | st.sampled_from(exact.specials(dtype))
    near = st.tuples(one, st.integers(-3, 3)).map(
        lambda p: (p[0], (p[0] + p[1]) % (1 << dtype.bits))
    )
    return st.lists(st.tuples(one, one) | near, min_size=1, max_size=40)


def agrees_with_exact(op: Op, dtype: DType, a: list[int], b: list[int]) -> None:
    x, y = values(dtype, a), values(dtype, b)
    expected = [exact.BINARY[op](dtype, p, q) for p, q in zip(x, y, strict=True)]
    assert run_bits(op, dtype, a, b) == expected


@pytest.mark.parametrize("dtype", BYTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", [Op.ADD, Op.MUL, Op.MAX], ids=lambda op: op.name)
def test_every_pair_of_8_bit_floats(op: Op, dtype: DType) -> None:
    a, b = zip(*combinations_with_replacement(range(256), 2), strict=True)
    agrees_with_exact(op, dtype, list(a), list(b))
    assert run_bits(op, dtype, list(b), list(a)) == run_bits(op, dtype, list(a), list(b))


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("op", [Op.ADD, Op.MUL, Op.MAX], ids=lambda op: op.name)
def test_special_floats(op: Op, dtype: DType) -> None:
    pairs = list(product(exact.specials(dtype), repeat=2))
    agrees_with_exact(op, dtype, [a for a, _ in pairs], [b for _, b in pairs])


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits > 8], ids=repr)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_floats(dtype: DType, data: st.DataObject) -> None:
    pairs = data.draw(pairs_of_bits(dtype))
    for op in (Op.ADD, Op.MUL, Op.MAX):
        agrees_with_exact(op, dtype, [a for a, _ in pairs], [b for _, b in pairs])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [*BYTE_FLOATS, *SHORT_FLOATS], ids=repr)
@pytest.mark.parametrize("op", [Op.RECIP, Op.TRUNC], ids=lambda op: op.name)
def test_every_narrow_float(op: Op, dtype: DType) -> None:
    patterns = list(range(1 << dtype.bits))
    expected = [exact.UNARY[op](dtype, x) for x in values(dtype, patterns)]
    assert run_bits(op, dtype, patterns) == expected


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=repr)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_any_wide_float(dtype: DType, data: st.DataObject) -> None:
    patterns = [a for a, _ in data.draw(pairs_of_bits(dtype))]
    for op in (Op.RECIP, Op.TRUNC):
        expected = [exact.UNARY[op](dtype, x) for x in values(dtype, patterns)]
        assert run_bits(op, dtype, patterns) == expected


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_comparisons_of_special_floats(dtype: DType) -> None:
    pairs = list(product(exact.specials(dtype), repeat=2))
    a, b = [a for a, _ in pairs], [b for _, b in pairs]
    x, y = values(dtype, a), values(dtype, b)
    for op, compare in COMPARISONS.items():
        result = run(op, dtype, array(dtype, a), array(dtype, b))
        assert result.dtype == np.bool_
        assert result.tolist() == list(map(compare, x, y))


@pytest.mark.parametrize("dtype", BYTE_INTS, ids=repr)
def test_every_pair_of_8_bit_ints(dtype: DType) -> None:
    a, b = all_pairs(dtype)
    x, y = values(dtype, a), values(dtype, b)
    for op, meaning in INT_OPS.items():
        expected = [exact.wrapped(dtype, v) for v in map(meaning, x, y)]
        assert run(op, dtype, array(dtype, a), array(dtype, b)).tolist() == expected
    for op, compare in COMPARISONS.items():
        expected = list(map(compare, x, y))
        assert run(op, dtype, array(dtype, a), array(dtype, b)).tolist() == expected


@pytest.mark.parametrize("dtype", INTS, ids=repr)
def test_edge_ints(dtype: DType) -> None:
    pairs = list(product(edges(dtype), repeat=2))
    a, b = (np.array(side, np_dtype(dtype)) for side in zip(*pairs, strict=True))
    for op, meaning in INT_OPS.items():
        expected = [exact.wrapped(dtype, meaning(x, y)) for x, y in pairs]
        assert run(op, dtype, a, b).tolist() == expected
    for op, compare in COMPARISONS.items():
        assert run(op, dtype, a, b).tolist() == [compare(x, y) for x, y in pairs]


@pytest.mark.parametrize("dtype", [*INTS, dtypes.index], ids=repr)
@pytest.mark.parametrize("op", DIVISIONS, ids=lambda op: op.name)
def test_division_is_floored_and_open_by_zero(op: Op, dtype: DType) -> None:
    numbers = edges(dtype) if dtype.bits > 8 else range(int(dtype.min), int(dtype.max) + 1)
    pairs = [p for p in product(numbers, repeat=2) if dtype.is_int or p != (dtype.min, -1)]
    a, b = (np.array(side, np_dtype(dtype)) for side in zip(*pairs, strict=True))
    result, undefined = run(op, dtype, a, b), open_elements(op, dtype, a, b)
    assert result.dtype == np_dtype(dtype)
    assert undefined is not None
    assert undefined.tolist() == [y == 0 for _, y in pairs]
    for (x, y), got in zip(pairs, result.tolist(), strict=True):
        assert y == 0 or got == exact.wrapped(dtype, DIVISIONS[op](x, y))


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("dtype", [d for d in INTS if d.is_signed], ids=repr)
def test_min_divided_by_minus_one_wraps_whatever_loop_numpy_takes(dtype: DType, size: int) -> None:
    a, b = np.full(size, dtype.min, np_dtype(dtype)), np.full(size, -1, np_dtype(dtype))
    for divisor in (b, b[:1], b[0].reshape(())):
        assert (run(Op.IDIV, dtype, a, divisor) == dtype.min).all()
        assert (run(Op.MOD, dtype, a, divisor) == 0).all()


@pytest.mark.parametrize("counts", [*INTS, dtypes.index], ids=repr)
@pytest.mark.parametrize("dtype", INTS, ids=repr)
def test_shifts(dtype: DType, counts: DType) -> None:
    pairs = [
        (x, c)
        for x in edges(dtype)
        for c in sorted({*range(dtype.bits + 2), *edges(counts)})
        if counts.min <= c <= counts.max
    ]
    a = np.array([x for x, _ in pairs], np_dtype(dtype))
    b = np.array([c for _, c in pairs], np_dtype(counts))
    left, right = run(Op.SHL, dtype, a, b), run(Op.SHR, dtype, a, b)
    assert left.dtype == right.dtype == np_dtype(dtype)
    for op in (Op.SHL, Op.SHR):
        undefined = open_elements(op, dtype, a, b)
        assert undefined is not None
        assert undefined.tolist() == [not 0 <= c < dtype.bits for _, c in pairs]
    for (x, c), up, down in zip(pairs, left.tolist(), right.tolist(), strict=True):
        if 0 <= c < dtype.bits:
            assert up == exact.wrapped(dtype, x << c)
            assert down == x >> c


def test_bools_are_a_lattice() -> None:
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    table = {
        Op.ADD: [0, 1, 1, 1],
        Op.MUL: [0, 0, 0, 1],
        Op.MAX: [0, 1, 1, 1],
        Op.OR: [0, 1, 1, 1],
        Op.AND: [0, 0, 0, 1],
        Op.XOR: [0, 1, 1, 0],
        Op.CMPLT: [0, 1, 0, 0],
        Op.CMPNE: [0, 1, 1, 0],
    }
    for op, expected in table.items():
        result = run(op, dtypes.bool, a, b)
        assert result.dtype == np.bool_
        assert result.tolist() == expected


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS], ids=repr)
def test_where_copies_bits_nan_payloads_included(dtype: DType) -> None:
    mask = (1 << dtype.bits) - 1
    patterns = exact.specials(dtype) if dtype.is_float else [x & mask for x in edges(dtype)]
    a, b = array(dtype, patterns), array(dtype, patterns[::-1])
    p = np.arange(len(patterns)) % 3 == 0
    chosen = [x if c else y for c, x, y in zip(p, patterns, patterns[::-1], strict=True)]
    assert to_bits(run(Op.WHERE, dtype, p, a, b)).tolist() == chosen


@pytest.mark.parametrize("dtype", [*INTS, dtypes.index], ids=repr)
def test_trunc_of_an_integer_is_the_integer(dtype: DType) -> None:
    a = np.array(edges(dtype), np_dtype(dtype))
    assert run(Op.TRUNC, dtype, a).tolist() == edges(dtype)


@pytest.mark.parametrize(
    ("op", "a", "b"),
    [
        (Op.ADD, 2**63 - 1, 1),
        (Op.MUL, 2**32, 2**31),
        (Op.MUL, -(2**63), -1),
        (Op.IDIV, -(2**63), -1),
        (Op.SHL, 1, 63),
        (Op.SUB, -(2**63), 1),
        (Op.NEG, -(2**63), None),
        (Op.MULACC, 2**62, 1),
    ],
)
def test_an_index_that_leaves_64_bits_has_no_meaning(op: Op, a: int, b: int | None) -> None:
    operands = [np.array([3, v]) for v in (a, b) if v is not None]
    if op is Op.MULACC:
        operands.append(np.array([0, 2**62]))
    with pytest.raises(UndefinedError, match="64 bits"):
        run(op, dtypes.index, *operands)


def test_an_index_at_the_ends_of_64_bits_has_meaning() -> None:
    # The corners of the ranges leave 64 bits here, no element does.
    a, b = np.array([2**62, -(2**62), 1]), np.array([1, 2, 2**62])
    assert run(Op.MUL, dtypes.index, a, b).tolist() == [2**62, -(2**63), 2**62]
    assert run(Op.ADD, dtypes.index, a, b).tolist() == [2**62 + 1, 2 - 2**62, 2**62 + 1]
    assert run(Op.SHL, dtypes.index, np.array([-1, 2**61]), np.array([63, 1])).tolist() == [
        -(2**63),
        2**62,
    ]
    assert run(Op.ADD, dtypes.index, a[:0], b[:1]).tolist() == []


def test_operands_broadcast_and_scalars_stay_scalars() -> None:
    row, column = np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int32).reshape(2, 1)
    assert run(Op.ADD, dtypes.int32, row, column).tolist() == [[0, 1, 2], [1, 2, 3]]
    for dtype in (dtypes.index, dtypes.int8, dtypes.float32, dtypes.bfloat16):
        two = np.array(2).astype(np_dtype(dtype))
        for op in (Op.ADD, Op.MUL, Op.MAX, Op.SUB):
            result = run(op, dtype, two, two)
            assert (result.shape, result.dtype) == ((), np_dtype(dtype))


def test_a_second_rule_for_an_op_is_refused() -> None:
    with pytest.raises(ValueError, match="two rules for ADD"):
        evaluates(Op.ADD)(RULES[Op.ADD])
