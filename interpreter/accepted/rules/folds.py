"""Set rules of REDUCE: every order, grouping and wider accumulator of the terms."""

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
    """What a REDUCE over axes may return."""
    arg = arg_of(u, ReduceArg)
    flat = t.map(lambda a: terms_first(a, arg.axes))
    if takes(profile):
        flat = read_terms(u, profile, flat)
    return folded(arg.op, u.dtype, profile, flat).map(lambda a: a.reshape(u.shape))


def folded(op: Op, dtype: DType, profile: Profile, flat: Sets) -> Sets:
    """What a fold of the first axis may return: absent ones are skipped, an open one opens it."""
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
    """The terms with the identity in place of what is absent, and how many there are of each."""
    if flat.invalid is None:
        count = np.asarray(len(flat.lo))
        return Terms(flat.lo, flat.hi, flat.nan, flat.only, count)
    absent = flat.invalid
    neutral = identity(op, dtype)
    lo, hi = (np.where(absent, neutral, end) for end in (flat.lo, flat.hi))
    count = len(lo) - absent.sum(axis=0)
    return Terms(lo, hi, without(flat.nan, absent), without(flat.only, absent), count)


def _with_flushed_parts(op: Op, dtype: DType, t: Terms, result: Sets) -> Sets:
    """A fold whose parts may be flushed: a sum loses as many subnormals, a product may be zero."""
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
    """Exact in any order; of sets the folds of their ends, or every value where one may wrap."""
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
    """The largest term, of zeros either one; with a NaN anything up to it, or NaN."""
    lowest = identity(Op.MAX, dtype)
    # Beside a NaN a term may count for nothing; a NaN itself does.
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
