"""Budgets around a float that the reals near it do not decide: by arithmetic with more digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx

from uop.interpreter.accepted import order
from uop.interpreter.accepted.budget import inner_budget
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.values import Array
from uop.spec.dtype import DType, FloatFormat
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
            middle, radius = _binary(ball.mid()), _binary(ball.rad())
        ends = {_within(_sum(middle, r), budget, dtype) for r in (radius, -radius)}
        if len(ends) == 1:
            return ends.pop()
    # Only what is exact is so close: the number with few digits in the ball.
    unit = middle.floor_log2 - 150
    exact = round(Fraction(middle.mantissa) * Fraction(2) ** (middle.exponent - unit))
    return _within(Binary(exact, unit), budget, dtype)


@dataclass(frozen=True, slots=True)
class Binary:
    """The number mantissa * 2^exponent: fractions would be far slower."""

    mantissa: int
    exponent: int

    def __neg__(self) -> Binary:
        return Binary(-self.mantissa, self.exponent)

    @property
    def floor_log2(self) -> int:
        """Of a number that is not 0, by magnitude."""
        return abs(self.mantissa).bit_length() - 1 + self.exponent

    def over(self, exponent: int) -> int:
        """The mantissa over an exponent that is no larger."""
        return self.mantissa << (self.exponent - exponent)


def _binary(x: arb) -> Binary:
    mantissa, exponent = x.man_exp()
    return Binary(int(mantissa), int(exponent))


def _sum(x: Binary, y: Binary) -> Binary:
    exponent = min(x.exponent, y.exponent)
    return Binary(x.over(exponent) + y.over(exponent), exponent)


def _within(y: Binary, budget: Fraction, dtype: DType) -> tuple[int, int] | None:
    form = dtype.format
    exponent = max(y.floor_log2, form.emin) if y.mantissa else form.emin
    # A budget is a number of halves, quarters, ... of an ulp.
    halvings = budget.denominator.bit_length() - 1
    reach = Binary(budget.numerator, exponent - form.fraction_bits - halvings)
    low, high = _sum(y, -reach), _sum(y, reach)
    if _magnitude(low, form, 0) >= form.max_bits or _magnitude(high, form, 0) >= form.max_bits:
        return None
    return -1 - _floor_key(-low, form), _floor_key(high, form)


def _floor_key(real: Binary, form: FloatFormat) -> int:
    """The key of the highest float that is not above a real."""
    return _magnitude(real, form, 0) if real.mantissa >= 0 else -1 - _magnitude(real, form, 1)


def _magnitude(real: Binary, form: FloatFormat, up: int) -> int:
    """The bits of the magnitude of a real, cut off, or with `up` 1 rounded away from zero."""
    if not real.mantissa:
        return 0
    exponent = max(real.floor_log2, form.emin)
    unit = exponent - form.fraction_bits
    # Neighbouring patterns are neighbouring values: a carry is the next exponent.
    left, right = max(real.exponent - unit, 0), max(unit - real.exponent, 0)
    steps, rest = divmod(abs(real.mantissa) << left, 1 << right)
    field = (
        0
        if exponent == form.emin and steps >> form.fraction_bits == 0
        else exponent + form.bias - 1
    )
    return (field << form.fraction_bits) + steps + (up if rest else 0)
