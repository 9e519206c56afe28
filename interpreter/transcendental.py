"""EXP2, LOG2, SIN and POW correctly rounded: a wider approximation where it decides, arb where not.

A result is decided when the ends of the approximation's error interval round to the same value. The
undecided ones, one in thousands for float32 and a few in a hundred for float64, are enclosed by arb
at growing precision; the dyadic values that arb could never tell from a tie are computed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from flint import arb, ctx

from uop.interpreter.numeric import BITS, from_bits, round_to, to_bits
from uop.interpreter.values import Array, Mask
from uop.spec.dtype import DType
from uop.spec.ops.names import Op

# The libraries behind numpy document errors of a few units in the last place (2^-52 in float64,
# 2^-63 in the x87 format); these intervals are wider, and leave a few more elements undecided.
FLOAT64_ERROR = 2.0**-40
EXTENDED_ERROR = 2.0**-59
HAS_EXTENDED = np.finfo(np.longdouble).nmant in (63, 112)

# Exponents of two beyond every finite value, and below half of every subnormal.
HUGE, TINY = 1100, -1200


@dataclass(frozen=True, slots=True)
class Function:
    """A real function at finite points where it is finite: approximated by numpy, enclosed by arb.

    `known` gives its value where that can be a tie or a value of a dtype, or a stand-in where it is
    out of every dtype's range: what an enclosure would not decide.
    """

    approximate: np.ufunc
    known: Callable[..., Fraction | None]
    enclose: Callable[..., arb]


def rounded(op: Op, dtype: DType, *operands: Array) -> Array:
    """The op's real function, rounded once to nearest even; with the special cases of IEEE 754."""
    if dtype.bits * len(operands) > 16:
        return _computed(op, dtype, *operands)
    pattern = to_bits(operands[0])
    for operand in operands[1:]:
        pattern = (pattern.astype(np.uint16) << np.uint16(dtype.bits)) | to_bits(operand)
    return _table(op, dtype, len(operands))[pattern]


@cache
def _table(op: Op, dtype: DType, arity: int) -> Array:
    """The results for all operands, by the operands' bits, the first operand's highest."""
    patterns = np.arange(1 << (dtype.bits * arity), dtype=np.uint32)
    shifts = range(dtype.bits * (arity - 1), -1, -dtype.bits)
    mask, storage = (1 << dtype.bits) - 1, BITS[dtype.itemsize]
    operands = (((patterns >> shift) & mask).astype(storage) for shift in shifts)
    return _computed(op, dtype, *(from_bits(operand, dtype) for operand in operands))


def _computed(op: Op, dtype: DType, *operands: Array) -> Array:
    function = FUNCTIONS[op]
    wide: type[np.floating[Any]] = np.float64 if dtype.bits < 64 else np.longdouble
    if wide is np.longdouble and not HAS_EXTENDED:
        return _by_arb(function, dtype, *operands)
    error = wide(FLOAT64_ERROR if dtype.bits < 64 else EXTENDED_ERROR)
    near = np.asarray(function.approximate(*(operand.astype(wide) for operand in operands)))
    low = to_bits(_narrowed(np.asarray(near * (1 - error)), dtype))
    high = to_bits(_narrowed(np.asarray(near * (1 + error)), dtype))
    undecided = np.not_equal(low, high)
    return from_bits(_refined(function, dtype, low, undecided, *operands), dtype)


def _by_arb(function: Function, dtype: DType, *operands: Array) -> Array:
    """Where nothing wider is at hand: the library settles the special cases, arb all others."""
    library = np.asarray(function.approximate(*operands))
    ordinary = ~np.isnan(library)
    for operand in operands:
        ordinary &= np.isfinite(operand) & (operand != 0)
    return from_bits(_refined(function, dtype, to_bits(library), ordinary, *operands), dtype)


def _refined(
    function: Function, dtype: DType, bits: Array, undecided: Mask, *operands: Array
) -> Array:
    if not undecided.any():
        return bits
    exact = np.array(bits)
    spread = (np.broadcast_to(x.astype(np.float64), exact.shape)[undecided] for x in operands)
    points = zip(*(x.tolist() for x in spread), strict=True)
    exact[undecided] = [_exact_bits(function, dtype, *point) for point in points]
    return exact


def _narrowed(wide: Array, dtype: DType) -> Array:
    return wide.astype(np.float64) if dtype.bits == 64 else round_to(wide, dtype)


def _exact_bits(function: Function, dtype: DType, *point: float) -> int:
    value = function.known(*point)
    if value is not None:
        return dtype.encode(value)
    precision = 2 * dtype.format.precision
    while True:
        low, high = _bounds(function, precision, point)
        bits = dtype.encode(low)
        if bits == dtype.encode(high):
            return bits
        precision *= 2


def _bounds(
    function: Function, precision: int, point: tuple[float, ...]
) -> tuple[Fraction, Fraction]:
    with ctx.workprec(precision):
        ball = function.enclose(*point)
        return _fraction(ball.lower()), _fraction(ball.upper())


def _fraction(exact: arb) -> Fraction:
    mantissa, exponent = exact.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _exp2_known(x: float) -> Fraction | None:
    if not TINY < x < HUGE:
        return Fraction(2) ** (HUGE if x > 0 else TINY)
    return Fraction(2) ** int(x) if x.is_integer() else None


def _exp2_enclosed(x: float) -> arb:
    return (arb(x) * arb.const_log2()).exp()


def _log2_known(x: float) -> Fraction | None:
    """Of a dyadic x the logarithm is irrational, but for the powers of two."""
    significand, exponent = math.frexp(x)
    return Fraction(exponent - 1) if significand == 0.5 else None


def _log2_enclosed(x: float) -> arb:
    return arb(x).log() / arb.const_log2()


def _sin_known(x: float) -> Fraction | None:
    """None: the sine of any rational but 0 is irrational."""
    return None


def _sin_enclosed(x: float) -> arb:
    return arb(x).sin()


def _pow_known(x: float, y: float) -> Fraction | None:
    exponent = math.log2(abs(x)) * y
    if not TINY < exponent < HUGE:
        return _pow_sign(x, y) * Fraction(2) ** (HUGE if exponent > 0 else TINY)
    magnitude = _dyadic_power(abs(x), y)
    return None if magnitude is None else _pow_sign(x, y) * magnitude


def _pow_enclosed(x: float, y: float) -> arb:
    return _pow_sign(x, y) * (arb(abs(x)).log() * arb(y)).exp()


def _pow_sign(x: float, y: float) -> int:
    return -1 if x < 0 and abs(y) % 2 == 1 else 1


def _dyadic_power(x: float, y: float) -> Fraction | None:
    """x^y for finite x > 0, where that is dyadic and short enough to be a tie.

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
    """The odd m and the e of x = m 2^e, for finite x other than 0."""
    numerator, denominator = x.as_integer_ratio()
    zeros = (numerator & -numerator).bit_length() - 1
    return numerator >> zeros, zeros - denominator.bit_length() + 1


FUNCTIONS: dict[Op, Function] = {
    Op.EXP2: Function(np.exp2, _exp2_known, _exp2_enclosed),
    Op.LOG2: Function(np.log2, _log2_known, _log2_enclosed),
    Op.SIN: Function(np.sin, _sin_known, _sin_enclosed),
    Op.POW: Function(np.power, _pow_known, _pow_enclosed),
}
