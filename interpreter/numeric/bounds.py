"""Enclose real functions at floats between two fractions, by decimals and integers of any length.

The decimal module rounds exp, ln, sqrt, products and quotients correctly: each is wrong by half a
unit of its last digit. Sines are Taylor series in fixed point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from functools import cache

GUARD = 32
"""Extra bits of a result in fixed point, for the errors of at most 2^28 terms."""

Bounds = tuple[Fraction, Fraction]
Enclose = Callable[..., Bounds]
"""Takes a point and a number of bits; returns bounds that agree in about so many bits.

Raises ArithmeticError or ValueError if the function has no value. Of a power it takes the magnitude
of the base.
"""


def recip(x: float, bits: int) -> Bounds:
    c = _context(bits)
    return _around(c.divide(Decimal(1), Decimal(x)), c)


def sqrt(x: float, bits: int) -> Bounds:
    c = _context(bits)
    return _around(c.sqrt(Decimal(x)), c)


def exp2(x: float, bits: int) -> Bounds:
    c = _context(bits)
    return _exp(c.multiply(Decimal(x), _ln2(bits)), c)


def log2(x: float, bits: int) -> Bounds:
    c = _context(bits)
    return _around(c.divide(c.ln(Decimal(x)), _ln2(bits)), c)


def power(x: float, y: float, bits: int) -> Bounds:
    c = _context(bits)
    return _exp(c.multiply(c.ln(Decimal(abs(x))), Decimal(y)), c)


def sin(x: float, bits: int) -> Bounds:
    """With |x| = n pi/2 + r it is sin r, cos r, -sin r or -cos r, and negative where x is."""
    exponent = math.frexp(x)[1]
    # A small sine has as many digits as any other; the error of pi counts n times.
    unit = bits + GUARD + max(-exponent, 0)
    finer = max(exponent, 0)
    numerator, denominator = abs(x).as_integer_ratio()
    scaled = (numerator << (unit + finer)) // denominator
    n, r = divmod(scaled, _pi(unit + finer) >> 1)
    near = _taylor(r >> finer, unit, n % 2) * (-1 if n % 4 >= 2 else 1) * (-1 if x < 0 else 1)
    error, one = 1 << (GUARD - 2), 1 << unit
    return Fraction(near - error, one), Fraction(near + error, one)


def _taylor(r: int, unit: int, first: int) -> int:
    """The sine (first=0) or cosine (first=1) of r 2^-unit, in that unit."""
    square = (r * r) >> unit
    k = 1 - first
    term = total = r if k else 1 << unit
    while term:
        k += 2
        term = -((term * square) >> unit) // (k * (k - 1))
        total += term
    return total


@cache
def _pi(unit: int) -> int:
    """pi in units of 2^-unit, wrong by less than one; by Machin's formula."""
    one = 1 << (unit + GUARD)
    return (16 * _arctan_of_inverse(5, one) - 4 * _arctan_of_inverse(239, one)) >> GUARD


def _arctan_of_inverse(n: int, one: int) -> int:
    power = total = one // n
    k = 1
    while power:
        power //= -n * n
        k += 2
        total += power // k
    return total


def _exp(t: Decimal, c: Context) -> Bounds:
    """The exponential of t, an argument with an error of 2 units of its last digit from two
    roundings.

    For a tiny t it is 1 + t with an error below t^2: it needs as many digits as t has.
    """
    if abs(t).adjusted() < -c.prec // 2:
        value = Fraction(t)
        error = abs(value) * 3 / 10 ** (c.prec - 1) + value * value
        return 1 + value - error, 1 + value + error
    return _around(c.exp(t), c, 2 + 2 * abs(t))


def _around(y: Decimal, c: Context, units: Decimal = Decimal(3)) -> Bounds:
    """The bounds of a number that is wrong by at most so many units of its last digit."""
    value = Fraction(y)
    error = abs(value) * Fraction(units) / 10 ** (c.prec - 1)
    return value - error, value + error


@cache
def _ln2(bits: int) -> Decimal:
    return _context(bits).ln(Decimal(2))


@cache
def _context(bits: int) -> Context:
    """Digits for so many bits, and a few more."""
    digits = math.ceil(bits * math.log10(2)) + 5
    traps = [InvalidOperation, DivisionByZero, Overflow]
    return Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=traps)
