"""Compute the accepted results of WMMA: exact products, summed in any order and width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.accepted import sets
from uop.interpreter.accepted.liberties import FP8_UNIT
from uop.interpreter.accepted.rules.budget import largest_finite, overflow_threshold
from uop.interpreter.accepted.rules.floats import has_inf, has_zero
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.kernel.fragments import fragments_of
from uop.interpreter.kernel.lanes import Axis, Warps, lanes_of
from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.rules.codegen import wmma_factors
from uop.interpreter.values import either
from uop.spec.args import WmmaArg, arg_of

if TYPE_CHECKING:
    from uop.spec.uop import UOp

SUM_ERROR = 2.0**-47
"""A bound of the error of a sum of a few dozen float64, relative to the sum of magnitudes."""


def fragments_in_warps(u: UOp, operands: Sequence[Sets], axes: Sequence[Axis]) -> Sets:
    """Return the accepted results of WMMA on the fragments of every warp."""
    lanes = Warps(axes, np.broadcast_shapes(*(lanes_of(s.lo, 1) for s in operands)))
    return wmma_sets(u, *(s.map(lanes.split) for s in operands)).map(lanes.joined)


def wmma_sets(u: UOp, a: Sets, b: Sets, acc: Sets) -> Sets:
    """Return the accepted results of WMMA; the last two axes of a fragment are lane and element.

    These are the floats between RN(sum - E) and RN(sum + E), E = k 2u (|acc| + sum |a b|) with u of
    the accumulator, or 2^-13 for fp8 factors (D-067). An infinity is accepted where the terms of
    its sign can overflow, NaN where both are.
    """
    arg = arg_of(u, WmmaArg)
    maps = fragments_of(arg)
    left, right = _factors(arg, a).map(maps.a.gather), _factors(arg, b).map(maps.b.gather)
    products = _products(left, right).map(lambda x: np.moveaxis(x, -2, -1))
    first = acc.map(lambda x: maps.acc.gather(x)[..., None])
    first = Sets(first.lo.astype(np.float64), first.hi.astype(np.float64), *first.masks)
    terms = sets.together([first, products], lambda parts: np.concatenate(parts, axis=-1))
    return sets.nan_alone(_sums(arg, terms)).map(maps.acc.scatter)


def _factors(arg: WmmaArg, s: Sets) -> Sets:
    """Return the factors with the bits that are read.

    A NaN whose payload lies in the other bits may be read as an infinity.
    """
    lo, hi = wmma_factors(arg, s.lo), wmma_factors(arg, s.hi)
    if s.nan is None or arg.dtype_in.bits != 32:
        return Sets(lo, hi, *s.masks)
    # A copy of a signalling NaN may have become quiet, which sets a bit that is read.
    known = sets.without(s.exact, sets.signalling(s))
    exact = np.False_ if known is None else known
    still = np.isnan(lo)
    lo, hi = (np.where(s.nan & ~exact, end, x) for x, end in ((lo, -np.inf), (hi, np.inf)))
    return Sets(lo, hi, s.nan & (~exact | still), exact & still, None, s.any, s.invalid)


def _products(a: Sets, b: Sets) -> Sets:
    """Multiply every factor of a row with every one of a column, on axes m, k, n."""
    a, b = a.map(lambda x: x[..., :, :, None]), b.map(lambda x: x[..., None, :, :])
    corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    lost = [np.isnan(c) for c in corners]
    zero_inf = (has_zero(a) & has_inf(b)) | (has_inf(a) & has_zero(b))
    only = np.logical_and.reduce(lost)
    # 0 times infinity lies inside: anything is accepted.
    open_ = zero_inf & ~only
    lo = np.where(open_, -np.inf, np.minimum.reduce(corners))
    hi = np.where(open_, np.inf, np.maximum.reduce(corners))
    return Sets(lo, hi, _over(lo, a.nan, b.nan, zero_inf, only), only, any=_over(lo, a.any, b.any))


def _over(like: Array, *masks: Mask | None) -> Mask | None:
    mask = either(*masks)
    return None if mask is None else np.broadcast_to(mask, like.shape)


def _sums(arg: WmmaArg, terms: Sets) -> Sets:
    """Bound the sums along the last axis."""
    dtype = arg.dtype_out
    u = FP8_UNIT if arg.dtype_in.bits == 8 else 2.0**-dtype.format.precision
    share = arg.k * 2 * u
    lo, hi = (np.where(np.isfinite(end), end, 0) for end in (terms.lo, terms.hi))
    low, high, positive, negative, magnitude = (
        _summed(part)
        for part in (
            *(lo, hi, np.maximum(hi, 0), np.minimum(lo, 0)),
            np.maximum(np.abs(lo), np.abs(hi)),
        )
    )
    error = _plus(share * magnitude[0], magnitude[1])
    edge, last = overflow_threshold(dtype), largest_finite(dtype)
    # This is wider than any rounding of these two sums.
    reach = 1 + share + SUM_ERROR
    rises = (positive[0] * reach >= edge) | _some(terms.hi == np.inf)
    falls = (negative[0] * reach <= -edge) | _some(terms.lo == -np.inf)
    below = -_plus(-low[0], _plus(error, low[1]))
    above = _plus(high[0], _plus(error, high[1]))
    below = np.where(falls, -np.inf, np.maximum(below, -last))
    above = np.where(rises, np.inf, np.minimum(above, last))
    # A term that must be infinite makes the sum infinite, unless the other infinity comes too.
    up, down = _some(terms.lo == np.inf), _some(terms.hi == -np.inf)
    below, above = np.where(up, np.inf, below), np.where(down, -np.inf, above)
    ends = round_to(np.minimum(below, above), dtype), round_to(above, dtype)
    # Terms cancel to a zero of either sign.
    ends = (
        np.where(ends[0] == 0, -np.abs(ends[0]), ends[0]),
        np.where(ends[1] == 0, np.abs(ends[1]), ends[1]),
    )
    only = _some(terms.only) | (up & down)
    nan = _some(terms.nan) | (rises & falls) | only
    opened = None if terms.any is None else _some(terms.any)
    return Sets(*ends, sets.somewhere(nan), sets.somewhere(only), any=opened)


def _summed(terms: Array) -> tuple[Array, Array]:
    """Return the sum along the last axis and a bound of its error, 0 if it is exact."""
    total, lost = terms[..., 0], np.zeros(terms.shape[:-1])
    for k in range(1, terms.shape[-1]):
        total, error = _two_sum(total, terms[..., k])
        lost = lost + np.abs(error)
    return total, lost * (1 + SUM_ERROR)


def _plus(a: Array, b: Array) -> Array:
    """Return a sum rounded up."""
    total, error = _two_sum(a, b)
    return np.where(error > 0, np.nextafter(total, np.inf), total)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its exact error (Knuth's TwoSum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _some(mask: Mask | None) -> Mask:
    return np.asarray(False if mask is None else mask.any(axis=-1))
