"""Bounds of real functions hold the balls of python-flint, and agree in the bits promised."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import assume, given
from hypothesis import strategies as st

from uop.interpreter.numeric import enclosure as bounds

FINER = 4096
"""The precision of the balls: that of every float, and far more."""

finite = st.floats(allow_nan=False, allow_infinity=False).filter(bool)
positive = finite.map(abs)
exponents = st.floats(-1100, 1040).filter(bool)


def holds(found: bounds.Bounds, ball: arb, bits: int) -> bool:
    """Whether a ball lies between bounds, which differ by less than 2^-bits of it, 2^9 times."""
    below, above = (arb(fmpq(x.numerator, x.denominator)) for x in found)
    return bool(below < ball < above and above - below < abs(ball) * arb(2) ** (9 - bits))


def at_once(
    enclose: bounds.Enclose, real: Callable[..., arb], *point: float, bits: int = 192
) -> bool:
    with ctx.workprec(FINER):
        return holds(enclose(*point, bits), real(*map(arb, point)), bits)


@given(finite)
def test_recip(x: float) -> None:
    assert at_once(bounds.recip, lambda x: 1 / x, x)


@given(positive)
def test_sqrt(x: float) -> None:
    assert at_once(bounds.sqrt, lambda x: x.sqrt(), x)


@given(exponents)
def test_exp2(x: float) -> None:
    assert at_once(bounds.exp2, lambda x: (x * arb.const_log2()).exp(), x)


@given(positive.filter(lambda x: x != 1))
def test_log2(x: float) -> None:
    assert at_once(bounds.log2, lambda x: x.log() / arb.const_log2(), x)


@given(positive.filter(lambda x: not 0.99 < x < 1.01), exponents)
def test_power(x: float, exponent: float) -> None:
    y = exponent / math.log2(x)
    assume(y)  # A subnormal exponent may have no half.
    assert at_once(bounds.power, lambda x, y: (x.log() * y).exp(), x, y)
    assert bounds.power(-x, y, 192) == bounds.power(x, y, 192)


@given(
    positive.filter(lambda x: not 0.99 < x < 1.01),
    st.floats(5e-324, 1e-12) | st.floats(-1e-12, -5e-324),
    st.sampled_from([64, 192]),
)
def test_powers_next_to_1(x: float, y: float, bits: int) -> None:
    """What they add to 1 is as exact as any power: few bits decide on which side of 1 they are."""
    below, above = bounds.power(x, y, bits)
    with ctx.workprec(FINER):
        assert holds((below - 1, above - 1), (arb(x).log() * y).expm1(), min(bits, 192) // 4)
    assert (above < 1) if (x < 1) == (y > 0) else (below > 1)


@given(finite, st.sampled_from([64, 128, 1024]))
def test_sin(x: float, bits: int) -> None:
    """A float is never so near to a multiple of pi that 64 bits of its sine are lost."""
    below, above = bounds.sin(x, bits)
    with ctx.workprec(FINER):
        ball = arb(x).sin()
        assert holds((below, above), ball, bits - 64)
    assert bounds.sin(-x, bits) == (-above, -below)


@pytest.mark.parametrize("x", [5e-324, 2.0**-1022, 6381956970095103.0 * 2.0**797, 1.7e308, math.pi])
def test_sines_that_lose_the_most_digits(x: float) -> None:
    """6381956970095103 * 2^797 is the double that lies nearest to a multiple of pi/2."""
    for bits in (128, 4096):
        below, above = bounds.sin(x, bits)
        with ctx.workprec(3 * FINER):
            assert holds((below, above), arb(x).sin(), bits - 64)


@pytest.mark.parametrize(
    ("enclose", "point"),
    [
        (bounds.log2, -1.0),
        (bounds.log2, 0.0),
        (bounds.sqrt, -2.0),
        (bounds.recip, 0.0),
        (bounds.sin, math.inf),
        (bounds.sin, math.nan),
    ],
)
def test_a_point_without_a_value_is_an_error(enclose: bounds.Enclose, point: float) -> None:
    with pytest.raises((ArithmeticError, ValueError)):
        enclose(point, 64)


def test_more_bits_lie_inside() -> None:
    wide, fine = (bounds.exp2(0.3, bits) for bits in (64, 256))
    assert wide[0] < fine[0] < fine[1] < wide[1]
    assert all(isinstance(x, Fraction) for x in fine)
