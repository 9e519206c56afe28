"""Compute the accepted results of REDUCE, for every order, grouping and wider accumulator.

Where a profile regroups sums and products, a tree of them is a REDUCE of its leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.accepted import order, sets
from uop.interpreter.accepted.liberties import flushed, is_relaxed, read_terms, within
from uop.interpreter.accepted.rules.budget import wide_storage
from uop.interpreter.accepted.rules.float_folds import Terms, product_of, sum_of
from uop.interpreter.accepted.rules.floats import either_zero, negative
from uop.interpreter.accepted.rules.integers import SAFE, unless_wrapped
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.numeric.storage import PART, Mask
from uop.interpreter.rules.reduce import fold, identity, terms_first
from uop.interpreter.values import either
from uop.spec.args import ReduceArg, arg_of
from uop.spec.dtype import DType, Kind
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def reduce(u: Node, profile: Profile, t: Sets) -> Sets:
    """Return the accepted results of a REDUCE over axes."""
    arg = arg_of(u, ReduceArg)
    flat = t.map(lambda a: terms_first(a, arg.axes))
    if is_relaxed(profile):
        flat = read_terms(u, profile, flat)
    return folded(arg.op, u.dtype, profile, flat).map(lambda a: a.reshape(u.shape))


def folded(op: Op, dtype: DType, profile: Profile, flat: Sets) -> Sets:
    """Return the accepted results of a fold along the first axis.

    Absent terms are skipped; one unspecified term makes the result unspecified. A large computation
    is done in parts, each for some of the results.
    """
    count, *shape = flat.lo.shape
    if flat.lo.size <= PART or prod(shape) == 1:
        return _folded(op, dtype, profile, flat)
    rows = flat.map(lambda a: a.reshape(count, -1))
    step = max(PART // count, 1)
    cuts = [slice(start, start + step) for start in range(0, prod(shape), step)]
    done = [_folded(op, dtype, profile, rows.map(itemgetter((slice(None), cut)))) for cut in cuts]
    return sets.together(done, np.concatenate).map(lambda a: a.reshape(shape))


def _folded(op: Op, dtype: DType, profile: Profile, flat: Sets) -> Sets:
    if len(flat.lo) == 0:
        nothing = np.broadcast_to(identity(op, dtype), flat.lo.shape[1:])
        return Sets(nothing, nothing)
    opened = sets.without(flat.any, flat.invalid)
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
        any=None if opened is None else sets.somewhere(np.asarray(opened.any(axis=0))),
        gaps=result.gaps,
    )
    return sets.nan_alone(result)


def _without_absent(op: Op, dtype: DType, flat: Sets) -> Terms:
    """Replace absent terms by the identity, and count the present ones of each fold."""
    s, count = flat, np.asarray(len(flat.lo))
    if flat.invalid is not None:
        neutral = np.full_like(flat.lo, identity(op, dtype))
        present = replace(flat, any=None, invalid=None)
        s = sets.chosen(flat.invalid, Sets(neutral, neutral), present)
        count = len(flat.lo) - flat.invalid.sum(axis=0)
    return Terms(s.lo, s.hi, s.nan, s.only, count, sets.signalling(s), s.gaps)


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
    infinite = sets.somewhere(vanishes & (np.isinf(lo) | np.isinf(hi)))
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
    if op is Op.MAX and t.gaps:
        return _largest(dtype, t, None, None)
    if op is Op.MAX or dtype.kind is Kind.BOOL:
        return Sets(lo, hi)
    fits = np.logical_and.reduce(t.lo == t.hi, axis=0)
    if op is Op.ADD:
        ends = [end.sum(axis=0, dtype=np.float64) for end in (t.lo, t.hi)]
        least, largest = max(float(dtype.min), -SAFE), min(float(dtype.max), SAFE)
        fits = fits | ((ends[0] >= least) & (ends[1] <= largest))
    return unless_wrapped(dtype, fits, lo, hi)


def _float_maximum(op: Op, dtype: DType, profile: Profile, t: Terms) -> Sets:
    """Return the largest term; of equal zeros either one is accepted.

    `profile.max_nan` decides about a NaN: the result is NaN, the largest other term, or NaN and any
    term, since the other terms may be lost before the NaN is. A fold may start from the identity.
    """
    if t.nan is None:
        return _largest(dtype, t, None, None)
    if profile.max_nan == "propagate":
        only = None if t.only is None else _some(t.only)
        return replace(_largest(dtype, t, t.only, None), nan=_some(t.nan), only=only)
    every, open_ = np.asarray(t.nan.all(axis=0)), _some(t.nan)
    droppable = t.nan
    if profile.max_nan == "number":
        open_ = np.zeros_like(every) if t.signalling is None else _some(t.signalling)
    nothing = every | open_
    return replace(_largest(dtype, t, droppable | open_, nothing), nan=nothing)


def _largest(dtype: DType, t: Terms, droppable: Mask | None, nothing: Mask | None) -> Sets:
    """Return the largest of the terms that are not NaN; some of these may be left out.

    Where `nothing` is set all may be left out, which gives the identity.
    """
    if not t.gaps and droppable is None:
        return _largest_of_intervals(t)
    lowest = identity(Op.MAX, dtype)
    floor = t.lo if droppable is None else np.where(droppable, lowest, t.lo)
    least = order.unkeys(order.keys(floor).max(axis=0), t.lo.dtype)
    least = np.where(least == 0, -np.abs(least), least)
    parts = sets.intervals(Sets(t.lo, t.hi, gaps=t.gaps))
    lo, hi = (np.concatenate([getattr(s, end) for s in parts]) for end in ("lo", "hi"))
    absent = np.asarray(order.keys(hi) < order.keys(least))
    if t.only is not None:
        absent = absent | np.concatenate([t.only] * len(parts))
    lo = order.upper(lo, least)
    if nothing is not None:
        start = np.broadcast_to(lowest, (1, *least.shape))
        lo, hi = np.concatenate([lo, start]), np.concatenate([hi, start])
        absent = np.concatenate([absent, ~nothing[None]])
    return sets.union(lo, hi, absent)


def _largest_of_intervals(t: Terms) -> Sets:
    lo, hi = (order.unkeys(order.keys(end).max(axis=0), t.lo.dtype) for end in (t.lo, t.hi))
    minus, plus = order.contains_negative_zero, order.contains_positive_zero
    return either_zero(_some(minus(t.lo, t.hi)) & _some(plus(t.lo, t.hi)), lo, hi)


def _some(mask: Mask) -> Mask:
    return np.asarray(mask.any(axis=0))


FLOAT_FOLDS: dict[Op, Callable[[Op, DType, Profile, Terms], Sets]] = {
    Op.ADD: lambda op, dtype, profile, t: sum_of(dtype, t),
    Op.MUL: lambda op, dtype, profile, t: product_of(dtype, t),
    Op.MAX: _float_maximum,
}


KINDS = {Op.ADD: Op.ADD, Op.SUB: Op.ADD, Op.MUL: Op.MUL}
"""The op of the tree that a node belongs to: a difference is a sum with a negated operand."""

AtResult = Callable[[int, Sets], Sets]
"""Aligns the sets of the operand of a number with the result."""


class Trees:
    """The leaves of the maximal trees of one op, over values that are used once."""

    def __init__(self, root: UOp, profile: Profile) -> None:
        self._profile = profile
        nodes: list[Node] = list(root.toposort()) if profile.reassociate else []
        # A LINEAR lists its nodes, which is not a use of them.
        self._uses = Counter(s for u in nodes if u.op is not Op.LINEAR for s in u.src)
        self._leaves: dict[Node, list[Sets]] = {}

    def regrouped(self, u: Node, operands: list[Sets], result: Sets, at_result: AtResult) -> Sets:
        """Return the result of an op joined with the results of its regrouped tree."""
        if KINDS.get(u.op) not in self._profile.reassociate or not u.dtype.is_float:
            return result
        leaves: list[Sets] = []
        for k, (s, operand) in enumerate(zip(u.src, operands, strict=True)):
            continues = self._uses[s] == 1 and KINDS.get(s.op) is KINDS[u.op]
            inside = self._leaves.get(s, []) if continues else []
            own = [at_result(k, leaf) for leaf in inside or [operand]]
            leaves += map(negative, own) if u.op is Op.SUB and k else own
        self._leaves[u] = leaves
        if len(leaves) < 3:
            return result
        shape = result.lo.shape or (1,)
        spread = [s.map(lambda a: np.broadcast_to(a, shape)) for s in leaves]
        terms = sets.together(spread, np.stack)
        sums = folded(KINDS[u.op], u.dtype, self._profile, terms)
        sums = sums.map(lambda a: a.reshape(result.lo.shape))
        return replace(
            sets.united(result, sums), any=either(result.any, sums.any), invalid=result.invalid
        )
