"""Set rules of REDUCE: every order, grouping and wider accumulator of the terms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.float_folds import Terms, product_of, sum_of
from uop.interpreter.accepted.integers import SAFE, unless_wrapped
from uop.interpreter.accepted.sets import Sets, nan_alone, somewhere, without
from uop.interpreter.rules.reduce import fold, identity
from uop.interpreter.values import Array, Mask
from uop.spec.args import ReduceArg
from uop.spec.dtype import Kind
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node


def reduce(u: Node, profile: Profile, t: Sets) -> Sets:
    """What a REDUCE over axes may return: absent terms are skipped, one open term opens it."""
    arg = cast(ReduceArg, u.arg)
    flat = t.map(lambda a: terms_first(a, arg.axes))
    if len(flat.lo) == 0:
        nothing = np.broadcast_to(identity(arg.op, u.dtype), u.shape)
        return Sets(nothing, nothing)
    opened = without(flat.any, flat.invalid)
    terms = _without_absent(u, flat)
    rule = FLOAT_FOLDS[arg.op] if u.dtype.is_float else _integer_fold
    result = rule(u, profile, terms)
    result = Sets(
        result.lo,
        result.hi,
        result.nan,
        result.only,
        any=None if opened is None else somewhere(np.asarray(opened.any(axis=0))),
    )
    return nan_alone(result).map(lambda a: a.reshape(u.shape))


def terms_first(a: Array, axes: tuple[int, ...]) -> Array:
    """One leading axis of all terms, in any order; then the axes that stay."""
    others = [axis for axis in range(a.ndim) if axis not in axes]
    kept = [a.shape[axis] for axis in others]
    count = math.prod(a.shape[axis] for axis in axes)
    return a.transpose((*axes, *others)).reshape(count, *kept)


def _without_absent(u: Node, flat: Sets) -> Terms:
    """The terms with the identity in place of what is absent, and how many there are of each."""
    if flat.invalid is None:
        count = np.asarray(len(flat.lo))
        return Terms(flat.lo, flat.hi, flat.nan, flat.only, count)
    absent = flat.invalid
    neutral = identity(cast(ReduceArg, u.arg).op, u.dtype)
    lo, hi = (np.where(absent, neutral, end) for end in (flat.lo, flat.hi))
    count = len(lo) - absent.sum(axis=0)
    return Terms(lo, hi, without(flat.nan, absent), without(flat.only, absent), count)


def _integer_fold(u: Node, profile: Profile, t: Terms) -> Sets:
    """Exact in any order; of sets the folds of their ends, or every value where one may wrap."""
    op = cast(ReduceArg, u.arg).op
    lo, hi = fold(op, u.dtype, t.lo), fold(op, u.dtype, t.hi)
    if op is Op.MAX or u.dtype.kind is Kind.BOOL:
        return Sets(lo, hi)
    fits = np.logical_and.reduce(t.lo == t.hi, axis=0)
    if op is Op.ADD:
        ends = [end.sum(axis=0, dtype=np.float64) for end in (t.lo, t.hi)]
        least, largest = max(float(u.dtype.min), -SAFE), min(float(u.dtype.max), SAFE)
        fits = fits | ((ends[0] >= least) & (ends[1] <= largest))
    return unless_wrapped(u.dtype, fits, lo, hi)


def _float_sum(u: Node, profile: Profile, t: Terms) -> Sets:
    return sum_of(u.dtype, t)


def _float_product(u: Node, profile: Profile, t: Terms) -> Sets:
    return product_of(u.dtype, t)


def _float_maximum(u: Node, profile: Profile, t: Terms) -> Sets:
    """The largest term, of zeros either one; with a NaN anything up to it, or NaN."""
    lowest = identity(Op.MAX, u.dtype)
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


FloatFold = Callable[[Node, Profile, Terms], Sets]
FLOAT_FOLDS: dict[Op, FloatFold] = {
    Op.ADD: _float_sum,
    Op.MUL: _float_product,
    Op.MAX: _float_maximum,
}
