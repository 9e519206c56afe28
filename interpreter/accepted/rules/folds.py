"""Compute the accepted results of REDUCE, for every order, grouping and wider accumulator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.liberties import flushed, read_terms, takes, within
from uop.interpreter.accepted.rules.budget import wide_storage
from uop.interpreter.accepted.rules.float_folds import Terms, product_of, sum_of
from uop.interpreter.accepted.rules.integers import SAFE, unless_wrapped
from uop.interpreter.accepted.sets import Sets, nan_alone, somewhere, without
from uop.interpreter.numeric.storage import Mask
from uop.interpreter.rules.reduce import fold, identity, terms_first
from uop.interpreter.values import either
from uop.spec.args import ReduceArg, arg_of
from uop.spec.dtype import DType, Kind
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node


def reduce(u: Node, profile: Profile, t: Sets) -> Sets:
    """Return the accepted results of a REDUCE over axes."""
    arg = arg_of(u, ReduceArg)
    flat = t.map(lambda a: terms_first(a, arg.axes))
    if takes(profile):
        flat = read_terms(u, profile, flat)
    return folded(arg.op, u.dtype, profile, flat).map(lambda a: a.reshape(u.shape))


def folded(op: Op, dtype: DType, profile: Profile, flat: Sets) -> Sets:
    """Return the accepted results of a fold along the first axis.

    Absent terms are skipped; one unspecified term makes the result unspecified.
    """
    if len(flat.lo) == 0:
        nothing = np.broadcast_to(identity(op, dtype), flat.lo.shape[1:])
        return Sets(nothing, nothing)
    opened = without(flat.any, flat.invalid)
    flushes = dtype in profile.ftz
    terms = _without_absent(op, dtype, flushed(flat, dtype) if flushes else flat)
    rule = FLOAT_FOLDS[op] if dtype.is_float else _integer_fold
    result = rule(op, dtype, profile, terms)
    if flushes:
        result = flushed(_with_flushed_parts(op, dtype, terms, result), dtype)
    result = Sets(
        result.lo,
        result.hi,
        result.nan,
        result.only,
        any=None if opened is None else somewhere(np.asarray(opened.any(axis=0))),
    )
    return nan_alone(result)


def _without_absent(op: Op, dtype: DType, flat: Sets) -> Terms:
    """Replace absent terms by the identity, and count the present ones of each fold."""
    if flat.invalid is None:
        count = np.asarray(len(flat.lo))
        return Terms(flat.lo, flat.hi, flat.nan, flat.only, count)
    absent = flat.invalid
    neutral = identity(op, dtype)
    lo, hi = (np.where(absent, neutral, end) for end in (flat.lo, flat.hi))
    count = len(lo) - absent.sum(axis=0)
    return Terms(lo, hi, without(flat.nan, absent), without(flat.only, absent), count)


def _with_flushed_parts(op: Op, dtype: DType, t: Terms, result: Sets) -> Sets:
    """Widen a fold for partial results that may be flushed.

    A sum loses at most one subnormal per term. A product may become zero.
    """
    wide = wide_storage(dtype)
    least = 2.0**dtype.format.emin
    lo, hi = result.lo.astype(wide), result.hi.astype(wide)
    if op is Op.ADD:
        lost = t.count * least
        return within(result, lo - lost, hi + lost, dtype)
    if op is not Op.MUL:
        return result
    smallest = np.minimum(np.abs(t.lo.astype(wide)), np.abs(t.hi.astype(wide)))
    smallest = np.where(np.signbit(t.lo) != np.signbit(t.hi), 0, smallest)
    vanishes = (np.minimum(smallest, 1).prod(axis=0) < 2 * least) & (t.count > 1)
    infinite = somewhere(vanishes & (np.isinf(lo) | np.isinf(hi)))
    zero = np.zeros_like(result.lo)
    return Sets(
        np.where(vanishes, order.lower(result.lo, -zero), result.lo),
        np.where(vanishes, order.upper(result.hi, zero), result.hi),
        either(result.nan, infinite),
        result.only,
    )


def _integer_fold(op: Op, dtype: DType, profile: Profile, t: Terms) -> Sets:
    """Fold integers, exactly in any order; every value is accepted where a result may wrap."""
    lo, hi = fold(op, dtype, t.lo), fold(op, dtype, t.hi)
    if op is Op.MAX or dtype.kind is Kind.BOOL:
        return Sets(lo, hi)
    fits = np.logical_and.reduce(t.lo == t.hi, axis=0)
    if op is Op.ADD:
        ends = [end.sum(axis=0, dtype=np.float64) for end in (t.lo, t.hi)]
        least, largest = max(float(dtype.min), -SAFE), min(float(dtype.max), SAFE)
        fits = fits | ((ends[0] >= least) & (ends[1] <= largest))
    return unless_wrapped(dtype, fits, lo, hi)


def _float_sum(op: Op, dtype: DType, profile: Profile, t: Terms) -> Sets:
    return sum_of(dtype, t)


def _float_product(op: Op, dtype: DType, profile: Profile, t: Terms) -> Sets:
    return product_of(dtype, t)


def _float_maximum(op: Op, dtype: DType, profile: Profile, t: Terms) -> Sets:
    """Return the largest term; of equal zeros either one is accepted.

    What a NaN gives follows `profile.max_nan`: NaN, the largest other term, or anything up to it
    and NaN.
    """
    lowest = identity(Op.MAX, dtype)
    # A term that is only NaN counts for nothing; under "number" one that may be NaN may, too.
    droppable = t.nan if profile.max_nan == "number" else t.only
    lo = order.keys(t.lo if droppable is None else np.where(droppable, lowest, t.lo))
    hi = order.keys(t.hi if t.only is None else np.where(t.only, lowest, t.hi))
    result = [order.unkeys(k.max(axis=0), t.lo.dtype) for k in (lo, hi)]
    zeros = _some(order.contains_negative_zero(t.lo, t.hi)) & _some(
        order.contains_positive_zero(t.lo, t.hi)
    )
    lo_zero, hi_zero = (zeros & (end == 0) for end in result)
    lo = np.where(lo_zero, -np.abs(result[0]), result[0])
    hi = np.where(hi_zero, np.abs(result[1]), result[1])
    if t.nan is None:
        return Sets(lo, hi)
    if profile.max_nan == "propagate":
        return Sets(lo, hi, _some(t.nan), None if t.only is None else _some(t.only))
    if profile.max_nan == "number":
        return Sets(lo, hi, np.asarray(t.nan.all(axis=0)))
    nan = _some(t.nan)
    return Sets(np.where(nan, lowest, lo), hi, nan)


def _some(mask: Mask) -> Mask:
    return np.asarray(mask.any(axis=0))


FloatFold = Callable[[Op, DType, Profile, Terms], Sets]
FLOAT_FOLDS: dict[Op, FloatFold] = {
    Op.ADD: _float_sum,
    Op.MUL: _float_product,
    Op.MAX: _float_maximum,
}
