"""Flush subnormals: which operands and results of a dtype may be zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.sets import Sets, chosen, intervals, united
from uop.interpreter.numeric.storage import STORED, Array, Mask
from uop.spec.dtype import DType
from uop.spec.ops.names import Op

SPLIT = 2.0**27 + 1
"""Splits a float64 in two halves whose products are exact (Veltkamp)."""


def flushed(s: Sets, dtype: DType, tiny: Mask | None = None) -> Sets:
    """Return the sets with both zeros added wherever they hold a subnormal.

    `tiny` says where a result is subnormal before it is rounded: it may be flushed too.
    """
    small = np.logical_or.reduce([_holds_small(part, dtype, tiny) for part in intervals(s)])
    if not small.any():
        return s
    zero = np.zeros_like(s.lo)
    wider = replace(united(s, Sets(-zero, zero)), any=s.any, invalid=s.invalid)
    return chosen(small, wider, s)


def tiny_results(op: Op, dtype: DType, operands: Sequence[Sets]) -> Mask | None:
    """Return where an exact result may be subnormal although the rounded one is not.

    None for other ops: the sums of a dtype are exact there, and a budget of an ulp or more reaches
    the subnormals.
    """
    if op not in (Op.MUL, Op.DIV, Op.CAST) or not all(order.is_float(s.lo.dtype) for s in operands):
        return None
    least, most = zip(*map(_magnitudes, operands), strict=True)
    nonzero = np.logical_and.reduce([end > 0 for end in most])
    if op is Op.MUL:
        return np.asarray(nonzero & _product_is_tiny(least[0], least[1], dtype.format.emin))
    if op is Op.DIV:
        return np.asarray(nonzero & (np.ldexp(least[0], -dtype.format.emin) < most[1]))
    return np.asarray(nonzero & (least[0] < 2.0**dtype.format.emin))


def _holds_small(s: Sets, dtype: DType, tiny: Mask | None) -> Mask:
    least = s.lo.dtype.type(2.0**dtype.format.emin)
    small = (s.lo < least) & (s.hi > -least) & ((s.lo != 0) | (s.hi != 0))
    if tiny is not None:
        small = small | (tiny & (s.lo <= least) & (s.hi >= -least))
    return np.asarray(small)


def _magnitudes(s: Sets) -> tuple[Array, Array]:
    """Return the least magnitude above zero, and the largest, as float64."""
    ends = [np.abs(end).astype(np.float64) for end in (s.lo, s.hi)]
    form = STORED[s.lo.dtype].format
    has_zero = (np.signbit(s.lo) != np.signbit(s.hi)) | (np.minimum(*ends) == 0)
    return np.where(has_zero, float(form.finite(1)), np.minimum(*ends)), np.maximum(*ends)


def _product_is_tiny(a: Array, b: Array, emin: int) -> Mask:
    """Compare exact products with 2^emin, by their fractions."""
    (x, i), (y, j) = np.frexp(a), np.frexp(b)
    product = x * y
    x_high, y_high = (SPLIT * v - (SPLIT * v - v) for v in (x, y))
    x_low, y_low = x - x_high, y - y_high
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    limit = np.ldexp(1.0, np.clip(emin - i - j, -3, 2))
    return np.asarray((product < limit) | ((product == limit) & (rest < 0)))
