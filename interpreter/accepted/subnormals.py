"""Flush subnormals: which operands and results of a dtype may be zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from uop.interpreter.accepted.sets import Sets, chosen, intervals, united
from uop.interpreter.numeric.storage import Array, Mask
from uop.spec.dtype import DType
from uop.spec.ops.names import Op

SPLIT = 2.0**27 + 1
"""Splits a float64 in two halves whose products are exact (Veltkamp)."""


def flushed(s: Sets, dtype: DType, tiny: Mask | None = None) -> Sets:
    """Return the sets with both zeros added wherever they hold a subnormal.

    `tiny` says where the least normal value may have been rounded from a smaller one: what is tiny
    before the rounding may be flushed too.
    """
    small = np.logical_or.reduce([_holds_small(part, dtype, tiny) for part in intervals(s)])
    if not small.any():
        return s
    zero = np.zeros_like(s.lo)
    wider = replace(united(s, Sets(-zero, zero)), any=s.any, invalid=s.invalid)
    return chosen(small, wider, s)


def _holds_small(s: Sets, dtype: DType, tiny: Mask | None) -> Mask:
    least = s.lo.dtype.type(2.0**dtype.format.emin)
    small = (s.lo < least) & (s.hi > -least) & ((s.lo != 0) | (s.hi != 0))
    if tiny is not None:
        small = small | (tiny & ((s.lo == least) | (s.hi == -least)))
    return np.asarray(small)


def rounded_from_tiny(op: Op, dtype: DType, operands: Sequence[Sets]) -> Mask | None:
    """Return where an exact result lies below the least normal value; None for other ops.

    The sums of a dtype are exact there, and a budget of an ulp or more reaches the subnormals.
    """
    if op is Op.MUL:
        a, b = operands
        return _product_is_tiny(_least_magnitude(a), _least_magnitude(b), dtype)
    if op is Op.DIV:
        a, b = operands
        most = np.maximum(np.abs(b.lo), np.abs(b.hi)).astype(np.float64)
        return np.asarray(np.ldexp(_least_magnitude(a), -dtype.format.emin) < most)
    if op is Op.CAST:
        return np.asarray(_least_magnitude(operands[0]) < 2.0**dtype.format.emin)
    return None


def _least_magnitude(s: Sets) -> Array:
    """Return the least magnitude of each set, as float64."""
    least = np.minimum(np.abs(s.lo), np.abs(s.hi)).astype(np.float64)
    return np.where(np.signbit(s.lo) == np.signbit(s.hi), least, 0)


def _product_is_tiny(a: Array, b: Array, dtype: DType) -> Mask:
    """Compare exact products with the least normal value, by their fractions."""
    (x, i), (y, j) = np.frexp(a), np.frexp(b)
    product = x * y
    x_high, y_high = (SPLIT * v - (SPLIT * v - v) for v in (x, y))
    x_low, y_low = x - x_high, y - y_high
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    limit = np.ldexp(1.0, np.clip(dtype.format.emin - i - j, -2, 2))
    return np.asarray((product < limit) | ((product == limit) & (rest < 0)))
