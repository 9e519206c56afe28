"""The sets of single operands, against the formulas computed with fractions and arb."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from oracles.budgets import FUNCTIONS, Expected, exact, within

from uop.interpreter.accepted import order
from uop.interpreter.accepted.apply import elementwise
from uop.interpreter.accepted.sets import Sets, points
from uop.interpreter.numeric.storage import BITS, Array, from_bits, np_dtype
from uop.interpreter.values import Value
from uop.spec.dtype import FLOATS, DType, dtypes
from uop.spec.latitude import DIV, POW, STRICT
from uop.spec.ops.names import Op

SMALL = (dtypes.fp8e4m3, dtypes.fp8e5m2)


def sets_of(op: Op, dtype: DType, *operands: Array) -> tuple[Sets, Array, Array]:
    u = SimpleNamespace(
        op=op,
        dtype=dtype,
        src=[SimpleNamespace(dtype=dtype)] * len(operands),
        arg=None,
        shape=operands[0].shape,
    )
    with np.errstate(all="ignore"):
        s = elementwise(u, STRICT, *(points(Value(x), is_float=True) for x in operands))
    none = np.zeros(u.shape, np.bool_)
    return s, none if s.nan is None else s.nan, none if s.only is None else s.only


def sample(dtype: DType, count: int) -> Array:
    """Every value of the 8-bit dtypes; of others patterns at random, more of them near 1."""
    if dtype.bits == 8:
        return from_bits(np.arange(256, dtype=np.uint8), dtype)
    random = np.random.default_rng(dtype.bits)
    raw = (
        random.integers(0, 1 << dtype.bits, count, dtype=np.uint64, endpoint=False)
        if (dtype.bits < 64)
        else random.integers(0, np.iinfo(np.uint64).max, count, dtype=np.uint64, endpoint=True)
    )
    patterns = from_bits(raw.astype(BITS[dtype.itemsize]), dtype)
    usual = (random.standard_normal(count) * 4).astype(np_dtype(dtype))
    edges = np.asarray([1.0, 2.0, 8.0, 0.5, 0.25, 3.0, 1e-3, -1e-3]).astype(np_dtype(dtype))
    return np.concatenate([patterns, usual, edges])


def check(op: Op, dtype: DType, budget: Fraction, y: Fraction, got: tuple[int, int, bool]) -> None:
    """The computed set is that of the formula."""
    positive = op in (Op.EXP2, Op.SQRT)
    expected = within(y, budget, dtype)
    lo, hi, nan = got
    assert nan == expected.nan
    if expected.lo is not None:
        assert lo == (max(0, expected.lo) if positive else expected.lo)
        assert hi == expected.hi


def is_special(op: Op, x: float) -> bool:
    special = not np.isfinite(x) or x == 0
    return special or (op is Op.LOG2 and (x < 0 or x == 1)) or (op is Op.SQRT and x < 0)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.name)
def test_unary_sets_are_those_of_the_definition(op: Op, dtype: DType) -> None:
    latitude, function = FUNCTIONS[op]
    if 2 * latitude.budget(dtype) == 1:
        pytest.skip("half an ulp means correctly rounded: tested below")
    x = sample(dtype, 60)
    s, nan, only = sets_of(op, dtype, x)
    lo, hi = order.keys(s.lo).tolist(), order.keys(s.hi).tolist()
    for i, v in enumerate(x.astype(np.float64).tolist()):
        if is_special(op, v) or only[i] or (op is Op.EXP2 and abs(v) > 4000):
            continue
        y = exact(function, v)
        check(op, dtype, latitude.budget(dtype), y, (lo[i], hi[i], bool(nan[i])))


def test_a_budget_of_half_an_ulp_means_correctly_rounded() -> None:
    x = np.abs(sample(dtypes.float64, 200))
    for op, result in ((Op.SQRT, np.sqrt), (Op.RECIP, np.reciprocal)):
        with np.errstate(all="ignore"):
            reference = result(x)
        s, _, _ = sets_of(op, dtypes.float64, x)
        ordinary = ~np.isnan(reference)
        np.testing.assert_array_equal(s.lo[ordinary], reference[ordinary])
        np.testing.assert_array_equal(s.hi[ordinary], reference[ordinary])


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_powers_are_those_of_the_definition(dtype: DType) -> None:
    random = np.random.default_rng(1)
    x = np.abs(random.standard_normal(80) * 2).astype(np_dtype(dtype))
    y = (random.standard_normal(80) * 3).astype(np_dtype(dtype))
    s, nan, only = sets_of(Op.POW, dtype, x, y)
    lo, hi = order.keys(s.lo).tolist(), order.keys(s.hi).tolist()
    pairs = zip(x.astype(np.float64).tolist(), y.astype(np.float64).tolist(), strict=True)
    for i, (base, exponent) in enumerate(pairs):
        if base in (0, 1) or exponent == 0 or only[i]:
            continue
        value = exact(lambda a, b: (a.log() * b).exp(), base, exponent)
        check(Op.POW, dtype, POW.budget(dtype), value, (lo[i], hi[i], bool(nan[i])))


@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_quotients_are_the_hull_of_quotient_and_products(dtype: DType) -> None:
    """All r accepted for RECIP(b) are tried, each product rounded exactly."""
    random = np.random.default_rng(2)
    values = sample(dtype, 0)
    a, b = random.choice(values, 1500), random.choice(values, 1500)
    s, nan, only = sets_of(Op.DIV, dtype, a, b)
    lo, hi = order.keys(s.lo).tolist(), order.keys(s.hi).tolist()
    budget = DIV.budget(dtype)
    checked = 0
    pairs = zip(a.astype(np.float64).tolist(), b.astype(np.float64).tolist(), strict=True)
    for i, (x, y) in enumerate(pairs):
        if not np.isfinite(x) or not np.isfinite(y) or x == 0 or y == 0:
            continue
        quotient = within(Fraction(x) / Fraction(y), budget, dtype)
        inverses = within(1 / Fraction(y), budget, dtype)
        keys, maybe_nan = products(x, inverses, dtype)
        ends = [k for k in (quotient.lo, quotient.hi, *keys) if k is not None]
        slack = 1 if dtype is dtypes.fp8e4m3 else 0
        assert bool(nan[i]) >= (quotient.nan or inverses.nan or maybe_nan)
        assert only[i] == (not ends)
        if ends:
            assert min(ends) - slack <= lo[i] <= min(ends)
            assert max(ends) <= hi[i] <= max(ends) + slack
        checked += 1
    assert checked > 1000


def products(x: float, inverses: Expected, dtype: DType) -> tuple[list[int], bool]:
    """Keys of the rounded products of x with all of these floats; whether one is NaN."""
    if inverses.lo is None or inverses.hi is None:
        return [], True
    found, nan = [], False
    for key in range(inverses.lo, inverses.hi + 1):
        bits = key if key >= 0 else (-1 - key) | dtype.format.sign_bit
        r = dtype.decode(bits)
        product = x * r if np.isinf(r) else Fraction(x) * Fraction(r)
        code = dtype.encode(product) if product else (bits ^ dtype.encode(x)) & 128
        magnitude = code & (dtype.format.sign_bit - 1)
        if dtype.format.is_nan(code):
            nan = True
        else:
            found.append(-1 - magnitude if code & dtype.format.sign_bit else magnitude)
    return found, nan


SPECIAL = [
    (Op.EXP2, -0.0, 1.0),
    (Op.EXP2, -np.inf, 0.0),
    (Op.EXP2, np.inf, np.inf),
    (Op.LOG2, 1.0, 0.0),
    (Op.LOG2, -0.0, -np.inf),
    (Op.LOG2, np.inf, np.inf),
    (Op.SIN, -0.0, -0.0),
    (Op.SIN, 0.0, 0.0),
    (Op.SQRT, -0.0, -0.0),
    (Op.SQRT, 0.0, 0.0),
    (Op.SQRT, np.inf, np.inf),
    (Op.RECIP, -0.0, -np.inf),
    (Op.RECIP, 0.0, np.inf),
    (Op.RECIP, -np.inf, -0.0),
]


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64], ids=str)
def test_special_values_have_no_budget(dtype: DType) -> None:
    for op, x, result in SPECIAL:
        s, nan, _ = sets_of(op, dtype, np.asarray([x], np_dtype(dtype)))
        expected = np.asarray([result], np_dtype(dtype))
        assert order.same_bits(s.lo, expected).all(), (op, x, s.lo)
        assert order.same_bits(s.hi, expected).all(), (op, x, s.hi)
        assert not nan.any()


@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.float32, dtypes.float64], ids=str)
def test_undefined_reals_are_nan_alone(dtype: DType) -> None:
    cases = [(Op.LOG2, -1.0), (Op.SQRT, -1.0), (Op.SIN, np.inf), (Op.SIN, np.nan)]
    for op, x in cases:
        _, nan, only = sets_of(op, dtype, np.asarray([x], np_dtype(dtype)))
        assert nan.all()
        assert only.all()


POWERS = [
    (np.nan, 0.0, 1.0),
    (1.0, np.nan, 1.0),
    (-1.0, np.inf, 1.0),
    (-0.0, -3.0, -np.inf),
    (-0.0, -2.0, np.inf),
    (-0.0, 3.0, -0.0),
    (0.0, 0.5, 0.0),
    (0.5, np.inf, 0.0),
    (2.0, -np.inf, 0.0),
    (-np.inf, 3.0, -np.inf),
    (-8.0, 1 / 3, None),
    (np.nan, 1.0, None),
    (2.0, np.nan, None),
]


def test_powers_of_special_values() -> None:
    x, y, result = zip(*POWERS, strict=True)
    operands = (np.asarray(column, np.float32) for column in (x, y))
    s, nan, only = sets_of(Op.POW, dtypes.float32, *operands)
    for i, value in enumerate(result):
        assert nan[i] == only[i] == (value is None)
        if value is not None:
            expected = np.asarray([value], np.float32)
            assert order.same_bits(s.lo[i : i + 1], expected).all(), POWERS[i]
            assert order.same_bits(s.hi[i : i + 1], expected).all(), POWERS[i]


def test_the_set_of_a_power_does_not_depend_on_one_beyond_the_range_beside_it() -> None:
    found, _, _ = sets_of(Op.POW, dtypes.float64, np.array([-1.0, 2.0]), np.array([1.0, 1025.0]))
    reach = POW.budget(dtypes.float64)
    assert found.lo[0] == float(-1 - reach * Fraction(1, 2**52))
    assert found.hi[0] == float(-1 + reach * Fraction(1, 2**52))
