"""Bound float sums and products of sets, whatever the order and grouping of the roundings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.rules.budget import largest_finite, overflow_threshold, wide_storage
from uop.interpreter.accepted.sets import Gap, Sets, somewhere
from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.enclosure import Magnitude, nearest_bits
from uop.interpreter.numeric.storage import Array, Mask, to_bits
from uop.interpreter.values import either
from uop.spec.dtype import DType, FloatFormat

LONGEST = 256
"""The most terms of a fold whose ends are decided exactly; a longer one keeps its outward ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """Folds of single terms along the first axis: their counts, and where all terms are finite."""

    terms: Array
    count: Array
    where: Mask


Limits = Callable[[Array, int, int], tuple[int, int, int]]
"""Takes finite terms, their number of roundings and p; returns integers low, high and unit.

The result of the fold lies between low 2^unit and high 2^unit.
"""


def decided(
    dtype: DType, folds: Folded, outward: Sets, below: Array, above: Array, limits: Limits
) -> Sets:
    """Return the sets with exact ends, where inner and outward bounds round to different ends.

    `outward` holds the sets so far, `below` and `above` the inner bounds, which surely lie inside;
    `limits` computes the exact ends.
    """
    if len(folds.terms) > LONGEST or not folds.where.any():
        return outward
    shape = outward.lo.shape
    lo, hi = (np.array(end).reshape(-1) for end in (outward.lo, outward.hi))
    doubt = (lo != round_to(below, dtype).reshape(-1)) | (hi != round_to(above, dtype).reshape(-1))
    doubt &= folds.where.reshape(-1) & np.isfinite(lo) & np.isfinite(hi)
    if not doubt.any():
        return outward
    columns = folds.terms.reshape(len(folds.terms), -1).astype(np.float64)
    counts = np.broadcast_to(folds.count, shape).reshape(-1)
    lo_bits, hi_bits = to_bits(lo), to_bits(hi)
    for k in np.flatnonzero(doubt).tolist():
        *ends, unit = limits(columns[:, k], max(int(counts[k]) - 1, 0), dtype.format.precision)
        bits = [_rounded(end, unit, dtype.format) for end in ends]
        if not any(map(dtype.format.is_nan, bits)):
            lo_bits[k], hi_bits[k] = bits
    return replace(outward, lo=lo.reshape(shape), hi=hi.reshape(shape))


def sum_limits(terms: Array, roundings: int, p: int) -> tuple[int, int, int]:
    """Bound a sum by `roundings` times 2^-p the sum of magnitudes around the exact one."""
    significands, exponents = _integers(terms)
    unit = min((e for m, e in zip(significands, exponents, strict=True) if m), default=0)
    whole = [m << max(e - unit, 0) for m, e in zip(significands, exponents, strict=True)]
    total, error = sum(whole) << p, roundings * sum(map(abs, whole))
    return total - error, total + error, unit - p


def product_limits(factors: Array, roundings: int, p: int) -> tuple[int, int, int]:
    """Bound the magnitude of a product by the factors 2 - (1 + 2^-p)^roundings and its growth.

    The growth is (1 + 2^-p)^roundings; the lower factor is at least 0.
    """
    significands, exponents = _integers(np.abs(factors))
    product, one = prod(significands), 1 << (p * roundings)
    growth = ((1 << p) + 1) ** roundings
    return product * max(2 * one - growth, 0), product * growth, sum(exponents) - p * roundings


def _integers(x: Array) -> tuple[list[int], list[int]]:
    significand, exponent = np.frexp(x)
    return np.ldexp(significand, 53).astype(np.int64).tolist(), (exponent - 53).tolist()


def _rounded(whole: int, unit: int, form: FloatFormat) -> int:
    """Return the bits of `whole` times 2^unit, rounded to nearest even."""
    if whole == 0:
        return 0
    finer = 2 * form.precision
    bits = nearest_bits(Magnitude(abs(whole) << finer, unit - finer, exact=True), form)
    return bits | form.sign_bit if whole < 0 else bits


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms of folds along the first axis, as sets; `count` is the number of present terms."""

    lo: Array
    hi: Array
    nan: Mask | None
    only: Mask | None
    count: Array
    signalling: Mask | None = None
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Real bounds of the results of folds, and where a result may be or must be NaN."""

    below: Array
    above: Array
    nan: Mask | None
    only: Mask | None


def sum_of(dtype: DType, t: Terms) -> Sets:
    """Bound the sums by E = (n-1) u sum max|x| around the sums of the ends, whatever the order.

    Infinity is accepted where the terms of its sign alone can overflow, NaN where both infinities
    are.
    """
    wide = wide_storage(dtype)
    lo, hi = _finite(t.lo, t.only, dtype, wide), _finite(t.hi, t.only, dtype, wide)
    u, count = 2.0**-dtype.format.precision, t.count.astype(wide)
    more = np.maximum(count - 1, 0)
    magnitude = np.maximum(np.abs(lo), np.abs(hi)).sum(axis=0)
    # The second part covers the roundings of the sums computed here.
    error = more * (u + 2 * _unit(wide)) * magnitude
    reach, edge = np.where(more > 0, 1 + count * (u + 2 * _unit(wide)), 1), _edge(dtype)
    positive = np.maximum(hi, 0).sum(axis=0) * reach >= edge
    negative = np.minimum(lo, 0).sum(axis=0) * reach <= -edge
    bounds = Bounds(lo.sum(axis=0) - error, hi.sum(axis=0) + error, _some(t.nan), _some(t.only))
    if dtype.format.has_inf:
        result = _with_infinities(dtype, t, bounds, positive, negative)
    else:
        result = _without_infinity(dtype, bounds, positive | negative)
    folds = Folded(t.lo, t.count, _are_single(t) & ~(positive | negative))
    slack = 4 * (more + 1) * _unit(wide) * magnitude
    result = decided(dtype, folds, result, bounds.below + slack, bounds.above - slack, sum_limits)
    # Terms cancel to a zero of either sign. A single term keeps its sign, or is added to +0.
    minus = (more > 0) | np.signbit(order.unkeys(order.keys(t.lo).min(axis=0), t.lo.dtype))
    lo = np.where((result.lo == 0) & minus, -np.abs(result.lo), result.lo)
    hi = np.where((result.hi == 0) & (t.count > 0), np.abs(result.hi), result.hi)
    return Sets(lo, hi, result.nan, result.only)


def product_of(dtype: DType, t: Terms) -> Sets:
    """Bound the products by |P| ((1+u)^(n-1) - 1) around those of the ends, and by underflow.

    The sign is that of the exact product. Where a partial product can overflow, infinity is
    accepted, and NaN too where one can be zero.
    """
    wide, form = wide_storage(dtype), dtype.format
    ends = [np.abs(_finite(end, t.only, dtype, wide, nothing=1)) for end in (t.lo, t.hi)]
    mixed = np.signbit(t.lo) != np.signbit(t.hi)
    least, most = np.where(mixed, 0, np.minimum(*ends)), np.maximum(*ends)
    u, more = 2.0**-form.precision, np.maximum(t.count.astype(wide) - 1, 0)
    growth = np.exp(more * np.log1p(wide.type(u + 4 * _unit(wide))))
    grown, shrunk = _product(np.maximum(most, 1)), _product(np.minimum(least, 1))
    eta = float(form.finite(1))
    underflows = (shrunk < 2.0**form.emin * growth) & (more > 0)
    lost = np.where(underflows, more * eta * grown * (growth / 2), 0)
    product, zero = _product(most), (most == 0).any(axis=0)
    above = np.where(zero, 0, np.nextafter(product * growth, np.inf, dtype=wide) + lost)
    below = np.maximum(_product(least) * np.maximum(2 - growth, 0) - lost, 0)
    overflows = (grown * growth * (1 + u) >= _edge(dtype)) & (more > 0)
    vanishes = (least == 0).any(axis=0) | (shrunk <= eta * growth)
    bounds = Bounds(below, np.where(more > 0, above, product), _some(t.nan), _some(t.only))
    if dtype.format.has_inf:
        magnitude = _with_overflow(dtype, t, bounds, overflows, vanishes, zero)
    else:
        magnitude = _without_infinity(dtype, bounds, overflows)
    folds = Folded(t.lo, t.count, _are_single(t) & ~(overflows | underflows | zero))
    slack = 16 * (more + 1) * _unit(wide) * product * growth
    inward = bounds.below + slack, bounds.above - slack
    magnitude = decided(dtype, folds, magnitude, *inward, product_limits)
    return _signed(t, mixed, magnitude)


def _finite(
    end: Array, only: Mask | None, dtype: DType, wide: np.dtype[Any], nothing: int = 0
) -> Array:
    """Return finite ends: `nothing` for NaN, the largest finite value for infinity."""
    wider = end.astype(wide)
    if only is not None:
        wider = np.where(only, nothing, wider)
    return np.asarray(np.clip(wider, -largest_finite(dtype), largest_finite(dtype)))


def _with_infinities(
    dtype: DType, t: Terms, bounds: Bounds, positive: Mask, negative: Mask
) -> Sets:
    """Return the sets of sums. An infinite term gives an infinite sum, both infinities give NaN."""
    must = [(end == inf).any(axis=0) for end, inf in ((t.lo, np.inf), (t.hi, -np.inf))]
    positive = positive | (t.hi == np.inf).any(axis=0)
    negative = negative | (t.lo == -np.inf).any(axis=0)
    last = largest_finite(dtype)
    lo = round_to(np.where(negative, -np.inf, np.maximum(bounds.below, -last)), dtype)
    hi = round_to(np.where(positive, np.inf, np.minimum(bounds.above, last)), dtype)
    for infinite, value in zip(must, (np.inf, -np.inf), strict=True):
        lo, hi = (np.where(infinite, lo.dtype.type(value), end) for end in (lo, hi))
    nan = either(bounds.nan, positive & negative)
    return Sets(lo, hi, _maybe(nan), _maybe(either(bounds.only, must[0] & must[1])))


def _without_infinity(dtype: DType, bounds: Bounds, overflows: Mask) -> Sets:
    """Return sets in a dtype without infinity: NaN where a result can, or must, overflow."""
    edge = overflow_threshold(dtype)
    only = (bounds.below > edge) | (bounds.above < -edge)
    below, above = np.clip(bounds.below, -edge, edge), np.clip(bounds.above, -edge, edge)
    return Sets(
        round_to(below, dtype),
        round_to(above, dtype),
        _maybe(either(bounds.nan, overflows, only)),
        _maybe(either(bounds.only, only)),
    )


def _with_overflow(
    dtype: DType, t: Terms, bounds: Bounds, overflows: Mask, vanishes: Mask, zero: Mask
) -> Sets:
    """Return the sets of products; an infinite factor makes it infinite, or NaN with a zero."""
    may = overflows | (np.isinf(t.lo) | np.isinf(t.hi)).any(axis=0)
    must = (np.isinf(t.lo) & (t.lo == t.hi)).any(axis=0)
    below = np.where(must & ~zero, np.inf, bounds.below)
    above = np.where(may & ~zero, np.inf, bounds.above)
    nan = either(bounds.nan, may & vanishes)
    only = either(bounds.only, must & zero)
    return Sets(round_to(below, dtype), round_to(above, dtype), _maybe(nan), _maybe(only))


def _signed(t: Terms, mixed: Mask, magnitude: Sets) -> Sets:
    """Apply signs: negative for an odd number of negative factors, both where a sign is open."""
    odd = np.logical_xor.reduce(np.signbit(t.lo), axis=0)
    either_sign = mixed.any(axis=0)
    lo = np.where(either_sign | odd, -magnitude.hi, magnitude.lo)
    hi = np.where(either_sign | ~odd, magnitude.hi, -magnitude.lo)
    return Sets(lo, hi, magnitude.nan, magnitude.only)


def _product(factors: Array) -> Array:
    """Multiply along the first axis by halves; a separate exponent prevents overflow."""
    m, e = np.frexp(factors)
    e = e.astype(np.int64)
    while len(m) > 1:
        if len(m) % 2:
            m = np.concatenate([m, np.full_like(m[:1], 0.5)])
            e = np.concatenate([e, np.ones_like(e[:1])])
        m, shift = np.frexp(m[0::2] * m[1::2])
        e = e[0::2] + e[1::2] + shift
    limit = 2 * np.finfo(factors.dtype).maxexp
    return np.asarray(np.ldexp(m[0], np.clip(e[0], -limit, limit).astype(np.int32)))


def _edge(dtype: DType) -> Any:
    """Return the least real that rounds to infinity."""
    if dtype.bits < 64:
        return overflow_threshold(dtype)
    largest = np.longdouble(largest_finite(dtype))
    return largest * (1 + np.longdouble(2.0) ** -54)


def _unit(wide: np.dtype[Any]) -> float:
    return float(np.finfo(wide).eps)


def _are_single(t: Terms) -> Mask:
    """Return where all terms of a fold are finite and single values."""
    if t.nan is not None:
        return np.asarray(((t.lo == t.hi) & np.isfinite(t.lo) & ~t.nan).all(axis=0))
    return np.asarray(((t.lo == t.hi) & np.isfinite(t.lo)).all(axis=0))


def _some(mask: Mask | None) -> Mask | None:
    return None if mask is None else np.asarray(mask.any(axis=0))


def _maybe(mask: Mask | None) -> Mask | None:
    return None if mask is None else somewhere(np.asarray(mask))
