"""The sets of REDUCE: the published bounds, and folds in many orders that must lie inside."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.adversary.kernels import fold_somehow
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import ReduceArg
from uop.spec.dtype import FLOATS, DType, dtypes
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

TWO = Fraction(2)
INF, NAN = math.inf, math.nan


def reduced(op: Op, dtype: DType, terms: Array, profile: Profile = STRICT) -> Accepted:
    """The set of one fold over all terms."""
    u = UOp(Op.REDUCE, param(0, terms.shape, dtype), arg=ReduceArg(op, (0,)))
    (accepted,) = accept(u, {0: terms}, profile)
    return accepted


def array(dtype: DType, *values: float) -> Array:
    return np.asarray(values).astype(np_dtype(dtype))


def terms_of(dtype: DType, random: np.random.Generator, count: int) -> Array:
    """Terms near 1, mixed with large and with tiny ones of the dtype."""
    form = dtype.format
    exponent = random.choice([0, 0, 0, form.bias, form.emin - 1, form.emin // 2], count)
    with np.errstate(all="ignore"):
        terms = random.standard_normal(count) * np.ldexp(1.0, exponent)
        terms = np.where(random.random(count) < 0.1, 0 * np.sign(terms), terms)
        return terms.astype(np_dtype(dtype))


@pytest.mark.parametrize("op", [Op.ADD, Op.MUL, Op.MAX], ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_every_order_and_width_lies_inside(op: Op, dtype: DType) -> None:
    random = np.random.default_rng([dtype.bits, len(op.name)])
    for count in (1, 2, 3, 7, 40):
        for _ in range(12):
            terms = terms_of(dtype, random, count)
            if random.random() < 0.2:
                terms[random.integers(count)] = random.choice([INF, -INF, NAN])
            accepted = reduced(op, dtype, terms)
            for _ in range(12):
                with np.errstate(all="ignore"):
                    result = fold_somehow(op, dtype, terms.reshape(-1, 1), random)
                assert accepted.contains(result).all(), (terms, result, accepted.describe(0))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_sums_are_bounded_as_published(dtype: DType) -> None:
    """RN(sum - E) to RN(sum + E) with E = (n-1) u sum |x|, a part in 2^20 of E to spare."""
    random = np.random.default_rng(dtype.bits)
    u = TWO**-dtype.format.precision
    for count in (2, 3, 10):
        terms = array(dtype, *random.uniform(-1, 1, count))
        exact = [Fraction(float(t)) for t in terms.astype(np.float64)]
        error = (count - 1) * u * sum(map(abs, exact))
        accepted = reduced(Op.ADD, dtype, terms)
        lo, hi = (float(end[0].astype(np.float64)) for end in (accepted.lo, accepted.hi))
        spare = 1 + TWO ** -(20 if dtype.bits < 64 else 9)
        for end, sign in ((lo, -1), (hi, 1)):
            nearest = [rounded(dtype, sum(exact) + sign * error * part) for part in (1, spare)]
            assert min(nearest) <= end <= max(nearest)


def rounded(dtype: DType, real: Fraction) -> float:
    return float(dtype.decode(dtype.encode(real)))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_products_are_bounded_as_published(dtype: DType) -> None:
    """RN(P (1 - g)) to RN(P (1 + g)) with g = (1+u)^(n-1) - 1 if nothing under- or overflows."""
    random = np.random.default_rng(dtype.bits)
    u = TWO**-dtype.format.precision
    for count in (2, 3, 4):
        terms = array(dtype, *random.uniform(1, 1.4, count))
        exact = math.prod(Fraction(float(t)) for t in terms.astype(np.float64))
        growth = (1 + u) ** (count - 1) - 1
        accepted = reduced(Op.MUL, dtype, terms)
        lo, hi = (float(end[0].astype(np.float64)) for end in (accepted.lo, accepted.hi))
        spare = 1 + TWO ** -(16 if dtype.bits < 64 else 6)
        for end, sign in ((lo, -1), (hi, 1)):
            nearest = [rounded(dtype, exact * (1 + sign * growth * part)) for part in (1, spare)]
            assert min(nearest) <= end <= max(nearest)


F32 = dtypes.float32
LARGEST = float(np.finfo(np.float32).max)
HAND = [
    # op, terms, the set in words
    (Op.ADD, (INF, -INF), "NaN"),
    (Op.ADD, (INF, 1.0), "inf"),
    (Op.ADD, (NAN, 1.0), "NaN"),
    (Op.ADD, (INF, -LARGEST, -LARGEST), "inf or NaN"),
    (Op.ADD, (3.5,), "0x1.cp+1"),
    (Op.ADD, (-0.0,), "-0x0p+0 or 0x0p+0"),
    (Op.ADD, (1.0, -1.0), "-0x1p-23 to 0x1p-23"),
    (Op.MUL, (INF, 0.0), "NaN"),
    (Op.MUL, (INF, 2.0), "inf"),
    (Op.MUL, (0.0, -3.0), "-0x0p+0"),
    (Op.MUL, (LARGEST,), "0x1.fffffep+127"),
    (Op.MAX, (1.0, NAN), "-inf or 0x1p+0 or NaN"),
    (Op.MAX, (-0.0, 0.0), "-0x0p+0 or 0x0p+0"),
    (Op.MAX, (0.0, 0.0), "0x0p+0"),
    (Op.MAX, (3.0, 2.0), "0x1.8p+1"),
]


@pytest.mark.parametrize(("op", "terms", "said"), HAND, ids=lambda x: str(x))
def test_folds_of_special_values(op: Op, terms: tuple[float, ...], said: str) -> None:
    assert reduced(op, F32, array(F32, *terms)).describe(0) == said


def test_a_sum_that_may_overflow_may_be_infinite_or_what_is_left() -> None:
    accepted = reduced(Op.ADD, F32, array(F32, LARGEST, LARGEST / 2, -LARGEST / 2))
    inside = accepted.contains
    assert inside(array(F32, INF)).all()
    assert inside(array(F32, LARGEST)).all()
    assert not inside(array(F32, -INF)).any()
    assert not inside(array(F32, NAN)).any()


def test_a_product_that_may_overflow_and_vanish_may_be_nan() -> None:
    accepted = reduced(Op.MUL, F32, array(F32, 1e30, 1e30, 1e-30, 1e-30))
    for value in (INF, NAN, 0.0, 1.0):
        assert accepted.contains(array(F32, value)).all()
    assert not accepted.contains(array(F32, -1.0)).any()


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_what_underflow_adds_to_a_product_is_bounded_as_published(dtype: DType) -> None:
    """(n-1) eta/2 prod max(1,|x|), each later factor rounded up: here all of it, for P is tiny."""
    tiny, large = TWO ** (dtype.format.emin // 2 - 4), TWO ** (-dtype.format.emin // 2)
    terms = array(dtype, float(tiny), float(tiny), float(large))
    eta = Fraction(float(dtype.format.finite(1)))
    most = (eta * large + tiny * tiny * large) * (1 + TWO**-dtype.format.precision) ** 2
    above = dtype.decode(dtype.encode(most * (1 + TWO**-6)))
    assert reduced(Op.MUL, dtype, terms).hi[0].astype(np.float64) <= float(above)


@pytest.mark.parametrize(("knob", "said"), [("propagate", "NaN"), ("number", "0x1p+0")])
def test_max_nan_narrows_a_maximum(knob: str, said: str) -> None:
    profile = Profile(max_nan="propagate" if knob == "propagate" else "number")
    assert reduced(Op.MAX, F32, array(F32, 1.0, NAN), profile).describe(0) == said


def test_int_folds_are_exact() -> None:
    terms = np.asarray([100, 100, 100], np.int8)
    accepted = reduced(Op.ADD, dtypes.int8, terms)
    assert accepted.sets is None
    assert accepted.describe(0) == "44"


def test_small_floats_without_infinity_overflow_to_nan() -> None:
    accepted = reduced(Op.ADD, dtypes.fp8e4m3, array(dtypes.fp8e4m3, 448, 448))
    assert accepted.describe(0) == "NaN"


def test_a_wide_term_widens_the_fold() -> None:
    """A term known to 3 ulps adds them to the bound of the sum."""
    x = array(F32, 0.1, 1.7)
    u = UOp(Op.REDUCE, UOp(Op.EXP2, param(0, (2,), F32)), arg=ReduceArg(Op.ADD, (0,)))
    (wide,) = accept(u, {0: x})
    exact = reduced(Op.ADD, F32, np.exp2(x))
    assert wide.patterns[0] > exact.patterns[0]
