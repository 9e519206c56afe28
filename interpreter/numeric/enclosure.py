"""Compute real functions of floats exactly if the value is dyadic, else enclose them.

The precision of the enclosure grows until it decides the result, which is a magnitude: callers take
the sign from an approximation. The decimal module rounds exp, ln, sqrt, products and quotients
correctly: each is wrong by half a unit of its last digit. Sines are Taylor series in fixed point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import DType, FloatFormat
from uop.spec.ops.names import Op

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


# Exponents of two beyond every finite value, and below half of every subnormal.
HUGE, TINY = 1030, -1200

PRECISION, LAST_PRECISION = 64, 1 << 16
"""The bits of precision of the first enclosure and of the last one.

The first one decides all but one in 2^30 of usual operands of float32, in 2^8 of float64; the next
one has twice the bits. The last one is far more than it takes
to separate the sine of the least subnormal from its operand.
"""


@dataclass(frozen=True, slots=True)
class Real:
    """A real function, at finite points where it is finite and not zero.

    `known` returns the magnitude where it is dyadic and short enough to be a tie or a value of a
    dtype, and a substitute where it is outside the range of every dtype. An enclosure decides all
    other cases.
    """

    known: Callable[..., Fraction | None]
    enclose: Enclose


@dataclass(frozen=True, slots=True)
class Magnitude:
    """`whole` times 2^unit if it is exact, else strictly between that and the next multiple."""

    whole: int
    unit: int
    exact: bool


def magnitude(op: Op, point: tuple[float, ...], unit: int) -> Magnitude:
    """Compute the magnitude of a function at a point, in units of 2^unit.

    Raises ArithmeticError if no enclosure decides, as at a point where the function has no value.
    """
    known = REALS[op].known(*point)
    if known is not None:
        scaled = known * Fraction(2) ** -unit
        return Magnitude(math.floor(scaled), unit, scaled.denominator == 1)
    precision = PRECISION
    while precision <= LAST_PRECISION:
        try:
            below, above = _enclosed(op, point, precision)
        except (ArithmeticError, ValueError) as error:
            raise ArithmeticError(f"{op.name} at {point}: {error}") from error
        scale = Fraction(2) ** -unit
        low, high = max(below, -above) * scale, max(-below, above) * scale
        whole = math.floor(low)
        if whole < low and high < whole + 1:
            return Magnitude(whole, unit, exact=False)
        precision *= 2
    raise ArithmeticError(f"{op.name} at {point}: not decided by {LAST_PRECISION} bits")


@lru_cache(1 << 12)
def _enclosed(op: Op, point: tuple[float, ...], precision: int) -> Bounds:
    """The bounds of a function at a point, which several dtypes and batches have."""
    return REALS[op].enclose(*point, precision)


def units(near: Array, dtype: DType) -> Array:
    """Return exponents of units of at most an eighth of an ulp, for reals near these."""
    form = dtype.format
    exponent = np.frexp(near)[1].astype(np.int64) - 2
    exponent = np.where(np.isinf(near), form.bias - 1, np.where(near == 0, form.emin, exponent))
    return np.maximum(exponent, form.emin) - form.fraction_bits - 3


def units_in_ulp(whole: int, unit: int, form: FloatFormat) -> int:
    """Return log2 of the number of units in one ulp of `whole` times 2^unit."""
    return max(whole.bit_length() - 1 + unit, form.emin) - form.fraction_bits - unit


def divided(whole: int, unit: int, form: FloatFormat) -> tuple[int, int]:
    """Return the bits of the highest float up to `whole` times 2^unit, and the remainder.

    The range of the format is ignored.
    """
    shift = units_in_ulp(whole, unit, form)
    # Neighbouring bit patterns are neighbouring values: a carry goes into the exponent.
    binade = shift + form.fraction_bits + unit - form.emin
    return (whole >> shift) + (binade << form.fraction_bits), whole & ((1 << shift) - 1)


def nearest_bits(y: Magnitude, form: FloatFormat) -> int:
    """Round a magnitude to nearest even and return its bits.

    Above the range these are inf, or NaN in a format without inf.
    """
    bits, rest = divided(y.whole, y.unit, form)
    tie = 1 << (units_in_ulp(y.whole, y.unit, form) - 1)
    bits += rest > tie or (rest == tie and (bits & 1 == 1 or not y.exact))
    if bits <= form.max_bits:
        return bits
    return form.nan_bits if form.inf_bits is None else form.inf_bits


def _exp2_known(x: float) -> Fraction | None:
    if not TINY < x < HUGE:
        return _out_of_range(x)
    return Fraction(2) ** int(x) if x.is_integer() else None


def _log2_known(x: float) -> Fraction | None:
    """Return the logarithm of a power of two; that of any other dyadic x is irrational."""
    significand, exponent = math.frexp(x)
    return Fraction(abs(exponent - 1)) if significand == 0.5 else None


def _pow_known(x: float, y: float) -> Fraction | None:
    exponent = math.log2(abs(x)) * y
    if not TINY < exponent < HUGE:
        return _out_of_range(exponent)
    return _dyadic_power(abs(x), y)


def _out_of_range(exponent: float) -> Fraction:
    return Fraction(2) ** (HUGE if exponent > 0 else TINY)


def _dyadic_power(x: float, y: float) -> Fraction | None:
    """Return x^y for finite x > 0 where it is dyadic and short enough to be a tie, else None.

    With x = m 2^e and y = n / 2^k, m and n odd, it is rational only if x is a square k times over,
    and then dyadic only if n > 0 or m = 1. With n > 64 and m > 1 it has more than 64 bits.
    """
    odd, exponent = _odd_and_exponent(x)
    power, halvings = _odd_and_exponent(y)
    while halvings < 0:
        root = math.isqrt(odd)
        if root * root != odd or exponent % 2:
            return None
        odd, exponent, halvings = root, exponent // 2, halvings + 1
    power <<= halvings
    if odd > 1 and not 0 < power <= 64:
        return None
    return Fraction(odd) ** power * Fraction(2) ** (exponent * power)


def _odd_and_exponent(x: float) -> tuple[int, int]:
    """Return the odd m and the e of x = m 2^e, for finite x other than 0."""
    numerator, denominator = x.as_integer_ratio()
    zeros = (numerator & -numerator).bit_length() - 1
    return numerator >> zeros, zeros - denominator.bit_length() + 1


REALS: dict[Op, Real] = {
    Op.RECIP: Real(lambda x: _dyadic_power(abs(x), -1.0), recip),
    Op.SQRT: Real(lambda x: _dyadic_power(x, 0.5), sqrt),
    Op.EXP2: Real(_exp2_known, exp2),
    Op.LOG2: Real(_log2_known, log2),
    # The sine of any rational but 0 is irrational.
    Op.SIN: Real(lambda x: None, sin),
    Op.POW: Real(_pow_known, power),
}
