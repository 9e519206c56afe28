"""Compute the accepted results of RECIP, DIV, EXP2, LOG2, SIN, SQRT, POW: a budget of ulps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import cast

import numpy as np

from uop.interpreter.accepted import order, sets
from uop.interpreter.accepted.liberties import flushed
from uop.interpreter.accepted.rules.budget import doubtful, wide_storage, within_budget
from uop.interpreter.accepted.rules.floats import (
    computed,
    has_inf,
    has_zero,
    hull_of,
    inner,
    product,
    stored,
)
from uop.interpreter.accepted.rules.table import accepts_floats
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.numeric.enclosure import (
    HUGE,
    Magnitude,
    divided,
    magnitude,
    units,
    units_in_ulp,
)
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.numeric.transcendental import power
from uop.interpreter.values import either
from uop.spec.dtype import DType, FloatFormat
from uop.spec.latitude import Profile, Ulp
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Node


def decided(op: Op, dtype: DType, reals: Array, result: Sets, *operands: Sets) -> Sets:
    """Return the accepted sets; of single operands they are exact also at the limits of the budget.

    `reals` approximates the results. `result` is the set from that approximation: it may be too
    wide if a float lies next to a limit of the budget. A budget of half an ulp is not recomputed.
    """
    budget, x = _budget(op, dtype), [a.lo for a in operands]
    if 2 * budget == 1 or not all(_single(a).all() for a in operands):
        return result
    doubt = doubtful(reals, result, float(budget), dtype)
    # A real that overflows every dtype leaves nothing to decide.
    doubt &= np.frexp(reals)[1] < HUGE
    for operand in x:
        doubt &= np.isfinite(operand) & (operand != 0)
    if not doubt.any():
        return result
    near = reals[doubt]
    points = list(zip(*(a[doubt].astype(np.float64).tolist() for a in x), strict=True))
    at = dict(zip(points, units(near, dtype).tolist(), strict=True))
    limits = {p: _limits(magnitude(op, p, unit), budget, dtype.format) for p, unit in at.items()}
    # Far beyond the range a key leaves int64, and numpy would turn all of them into floats.
    last = dtype.format.max_bits
    lowest, highest = np.array([[min(k, last + 1) for k in limits[p]] for p in points]).T
    # The limits of a negative real are those of its magnitude, mirrored.
    minus = np.signbit(near)
    lo, hi = order.keys(result.lo).copy(), order.keys(result.hi).copy()
    for end, k, mirrored in ((lo, lowest, highest), (hi, highest, lowest)):
        in_range = np.where(minus, mirrored, k) <= last
        end[doubt] = np.where(in_range, np.where(minus, -1 - mirrored, k), end[doubt])
    storage = result.lo.dtype
    return Sets(order.unkeys(lo, storage), order.unkeys(hi, storage), result.nan, result.only)


def _limits(y: Magnitude, budget: Fraction, form: FloatFormat) -> tuple[int, int]:
    """Return the keys of the lowest and the highest float within the budget of a magnitude.

    The range of the format is ignored.
    """
    reach = (budget.numerator << units_in_ulp(y.whole, y.unit, form)) // budget.denominator
    highest, _ = divided(y.whole + reach, y.unit, form)
    low = y.whole - reach
    if low > 0 or (low == 0 and not y.exact):
        bits, rest = divided(low, y.unit, form)
        return bits + (rest > 0 or not y.exact), highest
    bits, _ = divided(-low - (not y.exact), y.unit, form)
    return -1 - bits, highest


# Beyond this the phase of the sine is not tracked: an interval may hold any value.
SIN_LIMIT = 2.0**20
# Far more than the error of a float64 quotient below that limit.
PERIOD_ERROR = 2.0**-24


@accepts_floats(Op.RECIP)
def recip(u: Node, profile: Profile, a: Sets) -> Sets:
    return reciprocal(u.dtype, a)


def reciprocal(dtype: DType, a: Sets) -> Sets:
    """Bound reciprocals, which fall on either side of zero."""
    if _spans_zero(a).any():
        return sets.united(*(reciprocal(dtype, side) for side in _sides_of_zero(a)))
    low, high = 1 / a.hi.astype(np.float64), 1 / a.lo.astype(np.float64)
    result = decided(Op.RECIP, dtype, low, _quotients(Op.RECIP, dtype, low, high), a)
    # The reciprocal of the largest value exceeds every budget, so none reaches across zero.
    zero = np.zeros_like(a.lo)
    lo = np.where(np.signbit(low), result.lo, order.upper(result.lo, zero))
    hi = np.where(np.signbit(high), order.lower(result.hi, -zero), result.hi)
    return _with_nans(Sets(lo, hi, result.nan, result.only), a)


@accepts_floats(Op.DIV)
def div(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    """Return the quotients within the budget, and the products with every accepted reciprocal."""
    if _spans_zero(b).any():
        return sets.united(*(div(u, profile, a, side) for side in _sides_of_zero(b)))
    quotient = _with_nans(_ratio(u.dtype, a, b), a, b)
    inverse = reciprocal(u.dtype, b)
    if u.dtype in profile.ftz:
        inverse = flushed(inverse, u.dtype)
    inverse = product(computed(a), computed(inverse))
    return sets.joined(quotient, stored(inverse, u.dtype))


def _spans_zero(s: Sets) -> Mask:
    return np.signbit(s.lo) & ~np.signbit(s.hi)


def _sides_of_zero(s: Sets) -> tuple[Sets, Sets]:
    """Return the values up to -0 and those from +0 on; all of them where zero lies outside."""
    across, zero = _spans_zero(s), np.zeros_like(s.lo)
    below = replace(s, hi=np.where(across, -zero, s.hi), gaps=())
    return below, replace(s, lo=np.where(across, zero, s.lo), gaps=())


@accepts_floats(Op.SQRT)
def sqrt(u: Node, profile: Profile, a: Sets) -> Sets:
    """Return square roots: of a zero the same zero, of a negative value NaN."""
    ends = np.sqrt(np.maximum(a.lo, 0).astype(np.float64)), np.sqrt(a.hi.astype(np.float64))
    real = np.where(a.lo < 0, np.nan, ends[0])
    result = _positive(decided(u.op, u.dtype, real, _budgeted(u.op, u.dtype, *ends), a))
    zero = np.zeros_like(a.lo)
    minus = order.contains_negative_zero(a.lo, a.hi)
    hi = np.where(a.hi == 0, np.where(np.signbit(a.hi), -zero, zero), result.hi)
    lo = np.where(minus, -zero, result.lo)
    return _with_nans(Sets(lo, hi, sets.somewhere(a.lo < 0), sets.somewhere(a.hi < 0)), a)


@accepts_floats(Op.EXP2)
def exp2(u: Node, profile: Profile, a: Sets) -> Sets:
    ends = _at_ends(np.exp2, a, u.dtype)
    result = _positive(_within(u.op, u.dtype, *ends, a))
    exact = _single(a) & ((a.lo == 0) | (a.lo == -np.inf))
    return _with_nans(_where_exact(exact, *ends, result, u.dtype), a)


@accepts_floats(Op.LOG2)
def log2(u: Node, profile: Profile, a: Sets) -> Sets:
    """Return logarithms: of a zero -inf, of a negative value NaN."""
    ends = _at_ends(lambda x: np.log2(np.maximum(x, 0)), a, u.dtype)
    result = _within(u.op, u.dtype, *ends, a)
    result = _where_exact(_single(a) & (a.lo == 1), *ends, result, u.dtype)
    below = Sets(result.lo, result.hi, sets.somewhere(a.lo < 0), sets.somewhere(a.hi < 0))
    return _with_nans(below, result, a)


@accepts_floats(Op.SIN)
def sin(u: Node, profile: Profile, a: Sets) -> Sets:
    """Return sines: those of the ends, and the peaks and troughs between; NaN for an infinity."""
    x_lo, x_hi = (end.astype(wide_storage(u.dtype)) for end in (a.lo, a.hi))
    single = _single(a)
    y_lo, y_hi = _at_ends(np.sin, a, u.dtype)
    low, high = np.minimum(y_lo, y_hi), np.maximum(y_lo, y_hi)
    if not single.all():
        peak, trough = _turning_points(x_lo, x_hi)
        low = np.where(~single & trough, -1, low)
        high = np.where(~single & peak, 1, high)
    result = _within(u.op, u.dtype, low, high, a)
    result = _where_exact(single & (a.lo == 0), x_lo, x_hi, result, u.dtype)
    only = np.isinf(a.lo) & single
    return _with_nans(
        Sets(result.lo, result.hi, sets.somewhere(has_inf(a)), sets.somewhere(only)), a
    )


@accepts_floats(Op.POW)
def pow_(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    """Return powers, which are monotone for bases from +0 on; anything for other sets.

    1 to the y and x to the 0 are 1 even for a quiet NaN, as IEEE 754 says; for one that may signal
    they are 1 or NaN.
    """
    wide = wide_storage(u.dtype)
    ends = [[end.astype(wide) for end in _ends(s)] for s in (a, b)]
    corners = [power(x, y) for x in ends[0] for y in ends[1]]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    single = a.is_point() & b.is_point()
    open_ = ~single & np.signbit(a.lo)
    low, high = np.where(open_, -np.inf, low), np.where(open_, np.inf, high)
    result = _within(u.op, u.dtype, low, high, a, b)
    special = single & _is_special_power(a.lo, b.lo)
    result = _where_exact(special, corners[0], corners[0], result, u.dtype)
    undefined = single & order.is_nan(corners[0])
    nan = either(result.nan, sets.somewhere(open_ | undefined), _may_signal(a), _may_signal(b))
    result = Sets(result.lo, result.hi, nan, either(result.only, sets.somewhere(undefined)))
    return _with_nan_operands(result, single, a, b)


def _ends(a: Sets) -> tuple[Array, ...]:
    return (a.lo,) if a.hi is a.lo else (a.lo, a.hi)


def _at_ends(function: Callable[[Array], Array], a: Sets, dtype: DType) -> tuple[Array, Array]:
    values = [function(end.astype(wide_storage(dtype))) for end in _ends(a)]
    return values[0], values[-1]


def _quotients(op: Op, dtype: DType, low: Array, high: Array) -> Sets:
    """Return quotients within a budget; a zero is exact if it comes from a zero or an infinity."""
    result = _budgeted(op, dtype, low, high)
    return _where_exact((low == 0) & (low == high), low, high, result, dtype)


def _ratio(dtype: DType, a: Sets, b: Sets) -> Sets:
    """Bound quotients, which are monotone in each operand on either side of a zero divisor."""
    x = [end.astype(np.float64) for end in (a.lo, a.hi)]
    y = [end.astype(np.float64) for end in (b.lo, b.hi)]
    plain = (b.lo > 0) | (b.hi < 0)
    finite = np.isfinite(x[0]) & np.isfinite(x[1]) & np.isfinite(y[0]) & np.isfinite(y[1])
    if not (plain & finite).all():
        x += [end.astype(np.float64) for end in inner(a)]
        y += [end.astype(np.float64) for end in inner(b)]
        across = np.signbit(y[0]) != np.signbit(y[1])
        y += [np.where(across, zero, y[0]) for zero in (-0.0, 0.0)]
    hull, lost = hull_of([i / j for i in x for j in y])
    result = _quotients(Op.DIV, dtype, hull.lo, hull.hi)
    undefined = (has_zero(a) & has_zero(b)) | (has_inf(a) & has_inf(b))
    nan = either(result.nan, sets.somewhere(undefined))
    return Sets(result.lo, result.hi, nan, either(result.only, sets.somewhere(lost)))


def _budget(op: Op, dtype: DType) -> Fraction:
    return cast(Ulp, DECLARATIONS[op].latitude).budget(dtype)


def _within(op: Op, dtype: DType, low: Array, high: Array, *operands: Sets) -> Sets:
    """Return the floats within the budget of the reals from `low` to `high`."""
    return decided(op, dtype, low, _budgeted(op, dtype, low, high), *operands)


def _budgeted(op: Op, dtype: DType, low: Array, high: Array) -> Sets:
    """Return the floats within about the budget of the reals from `low` to `high`."""
    budget = _budget(op, dtype)
    if 2 * budget == 1:
        return Sets(low.astype(np.float64), high.astype(np.float64))
    return within_budget(low, high, float(budget), dtype)


def _positive(s: Sets) -> Sets:
    """Drop the negative values that a budget has reached."""
    zero = np.zeros_like(s.lo)
    return Sets(order.upper(s.lo, zero), order.upper(s.hi, zero), s.nan, s.only)


def _where_exact(exact: Mask, low: Array, high: Array, result: Sets, dtype: DType) -> Sets:
    """Replace the sets by the exact special values, which have no budget, where `exact` is true."""
    if not exact.any():
        return result
    special = stored(Sets(low.astype(np.float64), high.astype(np.float64)), dtype)
    lo, hi = np.where(exact, special.lo, result.lo), np.where(exact, special.hi, result.hi)
    masks = ((special.nan, result.nan), (special.only, result.only))
    return Sets(lo, hi, *(either(sets.both(x, exact), sets.without(y, exact)) for x, y in masks))


def _turning_points(x_lo: Array, x_hi: Array) -> tuple[Mask, Mask]:
    """Return whether a peak, and whether a trough, of the sine may lie between two points."""
    first = np.floor(x_lo / np.pi - 0.5 - PERIOD_ERROR)
    last = np.floor(x_hi / np.pi - 0.5 + PERIOD_ERROR)
    far = ~((np.abs(x_lo) < SIN_LIMIT) & (np.abs(x_hi) < SIN_LIMIT)) | (last - first > 1)
    one = last - first == 1
    even = np.remainder(last, 2) == 0
    return far | (one & even), far | (one & ~even)


def _is_special_power(x: Array, y: Array) -> Mask:
    special = (y == 0) | (x == 1) | (x == 0) | np.isinf(x) | np.isinf(y)
    return np.asarray(special)


def _single(a: Sets) -> Mask:
    return order.same_bits(a.lo, a.hi)


def _with_nans(result: Sets, *operands: Sets) -> Sets:
    nan = either(result.nan, *(s.nan for s in operands))
    return Sets(result.lo, result.hi, nan, either(result.only, *(s.only for s in operands)))


def _may_signal(s: Sets) -> Mask | None:
    """Return where a set has a NaN that is not known as a quiet one."""
    if s.exact is None:
        return s.nan
    return either(sets.without(s.nan, s.exact), sets.signalling(s))


def _with_nan_operands(result: Sets, single: Mask, a: Sets, b: Sets) -> Sets:
    """With a NaN operand a power is NaN, or 1 if the exponent can be zero or the base 1."""
    nan = sets.somewhere(sets.without(either(a.nan, b.nan), single))
    if nan is None:
        return result
    one = np.ones_like(result.lo)
    lo, hi = order.lower(result.lo, one), order.upper(result.hi, one)
    alone = either(a.only, b.only)
    if alone is not None:
        lo, hi = np.where(alone, one, lo), np.where(alone, one, hi)
    return Sets(
        np.where(nan, lo, result.lo),
        np.where(nan, hi, result.hi),
        either(result.nan, nan),
        sets.without(result.only, nan),
    )
