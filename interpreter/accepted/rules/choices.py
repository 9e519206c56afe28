"""Compute the accepted results of comparisons, WHERE, CAST and BITCAST."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uop.interpreter.accepted import order, sets
from uop.interpreter.accepted.liberties import reads_copy
from uop.interpreter.accepted.rules.budget import largest_finite, overflow_threshold
from uop.interpreter.accepted.rules.floats import computed, has_zero
from uop.interpreter.accepted.rules.integers import unless_wrapped
from uop.interpreter.accepted.rules.table import accepts
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.numeric import conversions
from uop.interpreter.numeric.storage import Array, Mask, np_dtype
from uop.interpreter.tensor.masks import over_bytes
from uop.interpreter.values import either
from uop.spec.dtype import DType, Kind
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node


@accepts(Op.CMPLT)
def cmplt(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    return _ordered(a.hi < b.lo, a.lo < b.hi, a, b)


@accepts(Op.CMPGT)
def cmpgt(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    return _ordered(a.lo > b.hi, a.hi > b.lo, a, b)


@accepts(Op.CMPGE, Op.CMPLE)
def cmpge(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    """Return a >= b or a <= b.

    With a NaN it is false, or either bool unless the profile follows IEEE 754.
    """
    if u.op is Op.CMPLE:
        a, b = b, a
    result = _ordered(a.lo >= b.hi, a.hi >= b.lo, a, b)
    nan = either(a.nan, b.nan)
    if nan is None or profile.cmp_nan == "ieee":
        return result
    return Sets(result.lo, result.hi | nan)


@accepts(Op.CMPEQ)
def cmpeq(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    one = (a.lo == a.hi) & (b.lo == b.hi)
    return _ordered(one & (a.lo == b.lo), (a.lo <= b.hi) & (b.lo <= a.hi), a, b)


@accepts(Op.CMPNE)
def cmpne(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    equal = cmpeq(u, profile, a, b)
    return Sets(~equal.hi, ~equal.lo)


@accepts(Op.WHERE)
def where(u: Node, profile: Profile, p: Sets, a: Sets, b: Sets) -> Sets:
    """Return the selected branch, or the union of both where the condition may be either.

    An element is absent only if it is absent in every branch that may be selected.
    """
    true, false = p.lo, ~p.hi
    if (true | false).all():
        result = sets.chosen(true, a, b)
    else:
        absence = either(sets.without(a.invalid, b.invalid), sets.without(b.invalid, a.invalid))
        opened, invalid = either(a.any, b.any, absence), sets.both(a.invalid, b.invalid)
        mixed = replace(sets.united(a, b), any=opened, invalid=invalid)
        result = sets.chosen(true, a, sets.chosen(false, b, mixed))
    return replace(result, any=either(p.any, result.any), invalid=either(p.invalid, result.invalid))


def _ordered(certain: Mask, possible: Mask, a: Sets, b: Sets) -> Sets:
    """Return the bools of a comparison that is false for a NaN."""
    nan, only = either(a.nan, b.nan), either(a.only, b.only)
    if nan is not None:
        certain = certain & ~nan
    if only is not None:
        possible = possible & ~only
    return Sets(certain, possible)


@accepts(Op.CAST)
def cast(u: Node, profile: Profile, a: Sets) -> Sets:
    source, target = u.src[0].dtype, u.dtype
    if source is target:
        return a
    if target.kind is Kind.BOOL:
        return _to_bool(a)
    if target.is_float:
        return _to_float(profile, a, source, target)
    lo, hi = conversions.cast(a.lo, source, target), conversions.cast(a.hi, source, target)
    if source.is_float:
        # An integer dtype that holds both ends holds all between. Any other result is unspecified.
        ends = (conversions.cast_unspecified(end, source, target) for end in (a.lo, a.hi))
        return Sets(lo, hi, any=either(a.nan, *ends))
    fits = (a.lo == a.hi) | (_inside(a.lo, target) & _inside(a.hi, target))
    return unless_wrapped(target, fits, lo, hi)


@accepts(Op.BITCAST)
def bitcast(u: Node, profile: Profile, a: Sets) -> Sets:
    """Return the bits of a single value; anything for a larger set or a NaN with open bits.

    A copy of a signalling NaN has its bits or those of its quiet form.
    """
    result = _bits(u, a)
    loud = sets.signalling(a) if reads_copy(u, profile) else None
    if loud is None:
        return result
    if u.dtype.itemsize > u.src[0].dtype.itemsize:
        loud = over_bytes(loud, u.src[0].dtype.itemsize, u.dtype.itemsize)
        return replace(result, any=either(result.any, loud))
    quiet = _bits(u, replace(a, lo=np.where(loud, order.quieted(a.lo), a.lo)))
    return replace(sets.united(result, quiet), any=result.any, invalid=result.invalid)


def _bits(u: Node, a: Sets) -> Sets:
    opaque = either(~a.is_point(), sets.without(a.nan, a.exact), a.any)
    size = u.src[0].dtype.itemsize
    not_bool = conversions.bitcast_unspecified(a.lo, u.dtype)
    bits = conversions.bitcast(a.lo, u.dtype)
    nan = np.asarray(bits != bits) if u.dtype.is_float else None
    invalid = over_bytes(a.invalid, size, u.dtype.itemsize)
    opened = either(over_bytes(opaque, size, u.dtype.itemsize), not_bool)
    return Sets(bits, bits, nan, nan, nan, opened, invalid)


def _to_bool(a: Sets) -> Sets:
    """Return whether a value differs from zero; a NaN does."""
    zero = has_zero(a)
    nonzero = (a.lo != 0) | (a.hi != 0)
    if a.nan is None:
        return Sets(~zero, nonzero)
    only = np.False_ if a.only is None else a.only
    return Sets(~zero | only, nonzero | a.nan)


def _to_float(profile: Profile, a: Sets, source: DType, target: DType) -> Sets:
    """Round both ends once, which is monotone.

    A value that overflows a dtype without infinity becomes NaN, or saturates under `fp8_saturate`.
    """
    saturates = profile.fp8_saturate and target.bits == 8
    if saturates or not target.format.has_inf:
        edge = largest_finite(target) if saturates else overflow_threshold(target)
        if source.is_float:
            a = computed(a)
        if float(source.max) > edge:
            a = _clipped(a, edge, saturates)
    lo, hi = (
        end.astype(np_dtype(target))
        if end.dtype == np.float32
        else conversions.cast(end, source, target)
        for end in (a.lo, a.hi)
    )
    return Sets(lo, hi, a.nan, a.only)


def _clipped(a: Sets, edge: float, saturates: bool) -> Sets:
    upper = a.lo.dtype.type(edge)
    unsigned = a.lo.dtype.kind == "u"
    lower = a.lo.dtype.type(0) if unsigned else -upper
    lo, hi = np.clip(a.lo, lower, upper), np.clip(a.hi, lower, upper)
    if saturates:
        return Sets(lo, hi, a.nan, a.only)
    nan = either(a.nan, sets.somewhere((a.lo < lower) | (a.hi > upper)))
    return Sets(lo, hi, nan, either(a.only, sets.somewhere((a.lo > upper) | (a.hi < lower))))


def _inside(a: Array, dtype: DType) -> Mask:
    """Return which integers a dtype holds; numpy compares integers of two dtypes by value."""
    # Against scalars of the dtype: with a Python integer numpy would compare a bool as int64.
    low, high = (np_dtype(dtype).type(int(end)) for end in (dtype.min, dtype.max))
    return np.asarray((a >= low) & (a <= high))
