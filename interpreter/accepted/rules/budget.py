"""Find the floats within a budget of ulps of a real number, or of any real between two bounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.sets import Sets, somewhere
from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.numeric.transcendental import HAS_EXTENDED
from uop.interpreter.values import either
from uop.spec.dtype import DType

# Reals are held as wider floats with an error of a few of their own ulps. The bounds go outward by
# far more than that, so a float that lies this close outside the budget is accepted too.
FLOAT64_ERROR = 2.0**-46
EXTENDED_ERROR = 2.0**-59


def wide_storage(dtype: DType) -> np.dtype[Any]:
    """Return a storage dtype with more digits than a float dtype, if the machine has one."""
    return np.dtype(np.longdouble if dtype.bits == 64 else np.float64)


def within_budget(low: Array, high: Array, budget: float, dtype: DType) -> Sets:
    """Return every float v with |v - y| <= budget ulp(y) for a real y from `low` to `high`.

    Infinity is accepted where |y| + budget ulp(y) rounds to it; the largest finite value is
    accepted unless |y| - budget ulp(y) rounds to infinity. A dtype without infinity has NaN in its
    place. If the interval reaches zero, both zeros are accepted.
    """
    error = _error(dtype)
    low = low * (1 - error * np.sign(low))
    high = high * (1 + error * np.sign(high))
    below = low - budget * ulp(low, dtype)
    above = high + budget * ulp(high, dtype)
    # The ulp doubles at a power of two: the interval around one may reach below those under it.
    two = _next_power(low)
    crossed = (low > 0) & (two <= high) & np.isfinite(low)
    if crossed.any():
        below = np.where(crossed, np.minimum(below, two - budget * ulp(two, dtype)), below)
    two = _next_power(high)
    crossed = (high < 0) & (two >= low) & np.isfinite(high)
    if crossed.any():
        above = np.where(crossed, np.maximum(above, two + budget * ulp(two, dtype)), above)
    return floats_between(below, above, dtype)


def doubtful(reals: Array, result: Sets, budget: float, dtype: DType) -> Mask:
    """Return where an end of `within_budget` of single reals may lie outside the budget.

    There the error of the real is larger than its distance from the limit.
    """
    inward = np.abs(reals) * _error(dtype)
    reach = budget * ulp(reals, dtype)
    lo, hi = (end.astype(reals.dtype) for end in (result.lo, result.hi))
    fraction = np.abs(np.frexp(reals)[0])
    next_to_power = (fraction < 0.5 + _error(dtype)) | (fraction > 1 - _error(dtype))
    doubt = (lo <= reals + inward - reach) | (hi >= reals - inward + reach) | next_to_power
    return np.asarray(doubt & np.isfinite(reals))


def _error(dtype: DType) -> float:
    return EXTENDED_ERROR if dtype.bits == 64 and HAS_EXTENDED else FLOAT64_ERROR


def ulp(y: Array, dtype: DType) -> Array:
    """Return 2^(max(floor(log2 |y|), emin) - p + 1), the ulp of a real in a dtype."""
    form = dtype.format
    exponent = np.frexp(y)[1] - 1
    exponent = np.where((y == 0) | np.isinf(y), form.emin, np.maximum(exponent, form.emin))
    return np.asarray(np.ldexp(y.dtype.type(1), exponent - form.fraction_bits))


def floats_between(below: Array, above: Array, dtype: DType) -> Sets:
    """Return the floats between two reals, with infinity for a real that rounds to it."""
    s = in_range(Sets(below, above), dtype)
    return Sets(_ceiling(s.lo, dtype), _floor(s.hi, dtype), s.nan, s.only)


def in_range(s: Sets, dtype: DType) -> Sets:
    """Return sets of wider floats with NaN for what overflows a dtype without infinity."""
    if dtype.format.has_inf:
        return s
    edge = s.lo.dtype.type(overflow_threshold(dtype))
    nan = either(s.nan, somewhere((s.lo < -edge) | (s.hi > edge)))
    only = either(s.only, somewhere((s.lo > edge) | (s.hi < -edge)))
    return Sets(np.clip(s.lo, -edge, edge), np.clip(s.hi, -edge, edge), nan, only)


@cache
def overflow_threshold(dtype: DType) -> float:
    """Return max + ulp(max)/2, where rounding to infinity starts; infinity for float64."""
    form = dtype.format
    largest = form.finite(form.max_bits)
    half_step = (largest - form.finite(form.max_bits - 1)) / 2
    return float(largest + half_step) if dtype.bits < 64 else np.inf


@cache
def largest_finite(dtype: DType) -> float:
    form = dtype.format
    return float(form.finite(form.max_bits))


def _next_power(y: Array) -> Array:
    """Return the next power of two away from zero, where the ulp changes."""
    fraction, exponent = np.frexp(y)
    return np.copysign(np.ldexp(np.abs(np.sign(fraction)), exponent), y)


def _ceiling(real: Array, dtype: DType) -> Array:
    near, back = _nearest(real, dtype)
    short = (back < real) & _may_step(back, largest_finite(dtype))
    k = order.keys(near)
    zero = (back == 0) & (real <= 0)
    return order.unkeys(np.where(zero, k.dtype.type(-1), k + short.astype(k.dtype)), near.dtype)


def _floor(real: Array, dtype: DType) -> Array:
    near, back = _nearest(real, dtype)
    beyond = (back > real) & _may_step(back, -largest_finite(dtype))
    k = order.keys(near)
    zero = (back == 0) & (real >= 0)
    return order.unkeys(np.where(zero, k.dtype.type(0), k - beyond.astype(k.dtype)), near.dtype)


def _nearest(real: Array, dtype: DType) -> tuple[Array, Array]:
    near = real.astype(np.float64) if dtype.bits == 64 else round_to(real, dtype)
    return near, near.astype(real.dtype)


def _may_step(back: Array, last: float) -> Mask:
    return np.asarray(np.isfinite(back) & (back != last))
