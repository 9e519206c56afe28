"""Budgets around a float that the reals near it do not decide: by arithmetic with more digits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx

from uop.interpreter.accepted import order
from uop.interpreter.accepted.budget import inner_budget
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.values import Array
from uop.spec.dtype import DType, floor_log2
from uop.spec.latitude import Ulp
from uop.spec.ops.names import Op

REALS: dict[Op, Callable[..., arb]] = {
    Op.RECIP: lambda x: 1 / x,
    Op.EXP2: lambda x: (x * arb.const_log2()).exp(),
    Op.LOG2: lambda x: x.log() / arb.const_log2(),
    Op.SIN: lambda x: x.sin(),
    Op.SQRT: lambda x: x.sqrt(),
    Op.POW: lambda x, y: x**y,
}

DIGITS = (200, 2400)
"""Binary ones. The last number tells everything apart that is not equal: 2^x from 1 for the least
subnormal x, and its sine from x itself."""

LARGEST_EXPONENT = 2000.0
"""Results beyond 2 to this power overflow or vanish in every dtype: nothing is left to decide."""


def decided(op: Op, dtype: DType, latitude: Ulp, reals: Array, result: Sets, *x: Array) -> Sets:
    """The sets of single operands, where a float lies next to the limit of the budget."""
    budget = latitude.budget(dtype)
    if 2 * budget == 1:
        return result
    inner = inner_budget(reals, float(budget), dtype)
    doubt = ~(order.same_bits(inner.lo, result.lo) & order.same_bits(inner.hi, result.hi))
    small = np.abs(np.log2(np.abs(reals.astype(np.float64)))) < LARGEST_EXPONENT
    doubt &= np.isfinite(reals) & (reals != 0) & small
    if not doubt.any():
        return result
    lo, hi = order.keys(result.lo).copy(), order.keys(result.hi).copy()
    for place in zip(*np.nonzero(doubt), strict=True):
        operands = tuple(float(a[place]) for a in x)
        limits = _limits(op, dtype, budget, operands)
        if limits is not None:
            lo[place], hi[place] = limits
    storage = result.lo.dtype
    return Sets(order.unkeys(lo, storage), order.unkeys(hi, storage), result.nan, result.only)


@lru_cache(maxsize=1 << 16)
def _limits(op: Op, dtype: DType, budget: Fraction, x: tuple[float, ...]) -> tuple[int, int] | None:
    """Keys of the lowest and the highest float in the budget of a real; None where it overflows."""
    for digits in DIGITS:
        with ctx.workprec(digits):
            ball = REALS[op](*(arb(v) for v in x))
            if not ball.is_finite():
                return None
            middle, radius = _fraction(ball.mid()), _fraction(ball.rad())
        ends = {_within(end, budget, dtype) for end in (middle - radius, middle + radius)}
        if len(ends) == 1:
            return ends.pop()
    # Only what is exact is so close: the number with few digits in the ball.
    unit = Fraction(2) ** (floor_log2(abs(middle)) - 150)
    return _within(round(middle / unit) * unit, budget, dtype)


def _fraction(x: arb) -> Fraction:
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _within(y: Fraction, budget: Fraction, dtype: DType) -> tuple[int, int] | None:
    form = dtype.format
    exponent = max(floor_log2(abs(y)), form.emin) if y else form.emin
    reach = budget * Fraction(2) ** (exponent - form.fraction_bits)
    largest = form.finite(form.max_bits)
    if max(abs(y - reach), abs(y + reach)) >= largest:
        return None
    return -1 - _floor_key(reach - y, dtype), _floor_key(y + reach, dtype)


def _floor_key(real: Fraction, dtype: DType) -> int:
    """The key of the highest float that is not above a real."""
    form = dtype.format
    bits = form.round(abs(real))
    value = form.finite(bits)
    if real >= 0:
        return bits - (value > real)
    return -1 - (bits + (value < -real))
