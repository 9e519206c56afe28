"""EXP2, LOG2, SIN and POW against arb's enclosures and the special cases of IEEE 754."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import exact
from oracles.exact import any_nan
from oracles.rules import Array, array, run, run_bits, values

from uop.interpreter.numeric import transcendental
from uop.interpreter.numeric.storage import from_bits, np_dtype, to_bits
from uop.spec.dtype import FLOATS, DType, dtypes
from uop.spec.ops.names import Op

UNARY: dict[Op, np.ufunc] = {Op.EXP2: np.exp2, Op.LOG2: np.log2, Op.SIN: np.sin}


def check_unary(op: Op, dtype: DType, patterns: list[int]) -> None:
    expected = [exact.UNARY[op](dtype, x) for x in values(dtype, patterns)]
    assert run_bits(op, dtype, patterns) == expected


def check_pow(dtype: DType, pairs: list[tuple[int, int]]) -> None:
    a, b = [a for a, _ in pairs], [b for _, b in pairs]
    x, y = values(dtype, a), values(dtype, b)
    expected = [exact.power(dtype, p, q) for p, q in zip(x, y, strict=True)]
    assert run_bits(Op.POW, dtype, a, b) == expected


def encoded(dtype: DType, numbers: Any) -> list[int]:
    return [dtype.encode(float(number)) for number in numbers]


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_special_values(op: Op, dtype: DType) -> None:
    check_unary(op, dtype, exact.specials(dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_special_values_of_pow(dtype: DType) -> None:
    check_pow(dtype, list(product(exact.specials(dtype), repeat=2)))


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_a_power_is_the_same_alone_and_among_others(dtype: DType) -> None:
    for a, b in product(exact.specials(dtype), encoded(dtype, (0.5, -0.5, 2, -1, 0.25))):
        (x,), (y,) = values(dtype, [a]), values(dtype, [b])
        alone = run(Op.POW, dtype, *(array(dtype, [bits]).reshape(()) for bits in (a, b)))
        (found,) = to_bits(alone.reshape(1)).tolist()
        assert any_nan(dtype, found) == exact.power(dtype, x, y), (x, y)


@pytest.mark.parametrize("dtype", [dtypes.fp8e4m3, dtypes.fp8e5m2], ids=repr)
def test_every_8_bit_float(dtype: DType) -> None:
    for op in UNARY:
        check_unary(op, dtype, list(range(256)))


@pytest.mark.parametrize("dtype", [dtypes.fp8e4m3, dtypes.fp8e5m2], ids=repr)
def test_pow_of_pairs_of_8_bit_floats(dtype: DType) -> None:
    # All exponents of every third base, and the other way round.
    pairs = list(product(range(256), range(256)))
    check_pow(dtype, [(a, b) for a, b in pairs if a % 3 == 1 or b % 5 == 2])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=repr)
@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_every_16_bit_float(op: Op, dtype: DType) -> None:
    patterns = np.arange(1 << 16, dtype=np.uint16)
    operands = from_bits(patterns, dtype)
    with np.errstate(all="ignore"):
        near = np.asarray(UNARY[op](operands.astype(np.longdouble)))
        low, high = (nearest(dtype, near * (1 + np.longdouble(d) * 2**-45)) for d in (-1, 1))
    clear, nan = low == high, np.isnan(near)
    result = run(op, dtype, operands)
    assert np.isnan(result[nan].astype(np.float64)).all()
    np.testing.assert_array_equal(to_bits(result)[clear & ~nan], low[clear & ~nan])
    check_unary(op, dtype, patterns[~clear].tolist())


def nearest(dtype: DType, near: Array) -> Array:
    """The bits of the nearest values, by looking the magnitudes up among the halfway points."""
    form = dtype.format
    finite = np.array([float(form.finite(m)) for m in range(form.max_bits + 1)])
    overflow = finite[-1] + (finite[-1] - finite[-2]) / 2
    halfway = np.append((finite[1:] + finite[:-1]) / 2, overflow).astype(np.longdouble)
    magnitude = np.searchsorted(halfway, np.abs(near))
    return np.where(np.signbit(near), magnitude | form.sign_bit, magnitude)


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits > 8], ids=repr)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_float(dtype: DType, data: st.DataObject) -> None:
    patterns = st.lists(st.integers(0, (1 << dtype.bits) - 1), min_size=30, max_size=30)
    for op in UNARY:
        check_unary(op, dtype, data.draw(patterns))


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits > 8], ids=repr)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_usual_floats(dtype: DType, seed: int) -> None:
    """Operands whose results are neither extreme nor trivial, and seldom decided by few bits."""
    rng = np.random.default_rng(seed)
    wide = dtype.format.emin * rng.uniform(-1.1, 1.1, 20)
    check_unary(Op.EXP2, dtype, encoded(dtype, [*wide, *rng.normal(0, 3, 20)]))
    check_unary(Op.LOG2, dtype, encoded(dtype, [*rng.exponential(9, 20), *rng.normal(1, 1e-3, 20)]))
    check_unary(
        Op.SIN, dtype, encoded(dtype, math.pi * rng.integers(1, 1 << rng.integers(3, 50), 40))
    )
    x = encoded(
        dtype, [*rng.exponential(3, 20), *rng.normal(1, 1e-2, 20), *rng.integers(1, 30, 20)]
    )
    y = encoded(
        dtype, [*rng.normal(0, 3, 20), *rng.normal(0, 1e3, 20), *rng.integers(-12, 12, 20) / 2]
    )
    check_pow(dtype, list(zip(x, y, strict=True)))


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_ties_and_exact_results(dtype: DType) -> None:
    """What no enclosure decides: powers of two to half the smallest subnormal, squares, roots."""
    form = dtype.format
    exponents = range(form.emin - form.fraction_bits - 3, 2 - form.emin)
    representable = [e for e in exponents if dtype.decode(dtype.encode(e)) == e]
    check_unary(Op.EXP2, dtype, encoded(dtype, representable))
    powers = [
        Fraction(2) ** e for e in exponents if 0 < dtype.encode(Fraction(2) ** e) <= form.max_bits
    ]
    check_unary(Op.LOG2, dtype, [dtype.encode(power) for power in powers])
    # (2^p + 1)^2 / 2^k needs one bit more than the dtype has whenever its length is p + 1.
    odd = (3, 5, 7, 9, 11, 13, 15, 181, 4095, 4097, 5793, 94906267, 2**27 + 1)
    bases = [b for v in odd for b in encoded(dtype, [v, -v, v / 8]) if not form.is_nan(b)]
    bases += encoded(dtype, [0.25, 2.25, 1 / 1024, 6.25, 2.0**-8])
    check_pow(dtype, list(product(bases, encoded(dtype, [2, 3, -1, -2, 0.5, 0.25, 1.5, -0.5]))))


@pytest.mark.parametrize(("op", "pattern"), [(Op.EXP2, 0x3B429D37), (Op.SIN, 0x46199998)])
def test_a_float32_that_rounding_a_float64_gets_wrong(op: Op, pattern: int) -> None:
    # Nearer to a tie than 2^-53, relatively; found by searching 2^27 operands.
    check_unary(op, dtypes.float32, [pattern])


def test_the_sine_near_multiples_of_pi() -> None:
    # Of all float64 and of all float32, these two are the nearest to a multiple of pi / 2.
    check_unary(Op.SIN, dtypes.float64, encoded(dtypes.float64, [6381956970095103 * 2.0**797]))
    check_unary(Op.SIN, dtypes.float32, encoded(dtypes.float32, [16367173 * 2.0**72]))
    convergents = [22, 355, 103993, 104348, 208341, 312689, 833719, 1146408, 4272943, 80143857]
    for dtype in FLOATS:
        fitting = [c for c in convergents if dtype.decode(dtype.encode(c)) == c]
        check_unary(Op.SIN, dtype, encoded(dtype, fitting))


@pytest.mark.parametrize("op", [*UNARY, Op.POW], ids=lambda op: op.name)
def test_without_an_extended_type_every_float64_is_the_same(
    op: Op, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = list(product(exact.specials(dtypes.float64)[::2], exact.specials(dtypes.float64)))
    sides = [[a for a, _ in pairs], [b for _, b in pairs]][: 2 if op is Op.POW else 1]
    with_extended = run_bits(op, dtypes.float64, *sides)
    monkeypatch.setattr(transcendental, "HAS_EXTENDED", False)
    assert run_bits(op, dtypes.float64, *sides) == with_extended


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_shapes(dtype: DType) -> None:
    storage = np_dtype(dtype)
    scalar = run(Op.EXP2, dtype, np.array(3).astype(storage))
    assert (scalar.shape, scalar.dtype, float(scalar)) == ((), storage, 8.0)
    assert run(Op.EXP2, dtype, np.zeros((2, 0), storage)).shape == (2, 0)
    column, row = np.ones((2, 1), storage), np.ones(3, storage)
    assert run(Op.POW, dtype, column + column, row + row).tolist() == [[4.0] * 3] * 2
    # An undecided element among operands that broadcast: 2^p + 1 squared, or its like, is a tie.
    tie = np.array([dtype.decode(dtype.encode(1.0) + 1)]).astype(storage)
    result = run(Op.POW, dtype, tie, np.full((2, 1), 2).astype(storage))
    assert result.tolist() == [run(Op.MUL, dtype, tie, tie).tolist()] * 2


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_powers_of_infinity(dtype: DType) -> None:
    """By IEEE 754: 0 below an exponent of 0, inf above; negative for odd ones of -inf."""
    exponents = np.array([-np.inf, -(2.0**63), -(2.0**62), -3, -2, -0.5, 0.5, 2, 3, 2.0**63])
    bases = np.array([[-np.inf], [np.inf]])
    sides = np.broadcast_arrays(bases.astype(np_dtype(dtype)), exponents.astype(np_dtype(dtype)))
    zero, inf = [0.0] * 6, [np.inf] * 4
    expected = np.array([[*zero[:3], -0.0, *zero[4:], *inf[:2], -np.inf, np.inf], [*zero, *inf]])
    found = transcendental.rounded(Op.POW, dtype, *sides)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
