"""Compute the accepted results of comparisons and WHERE: where sets overlap, both are accepted."""

from __future__ import annotations

from dataclasses import replace

from uop.interpreter.accepted.rules.table import accepts_floats, accepts_ints
from uop.interpreter.accepted.sets import Sets, both, chosen, united, without
from uop.interpreter.numeric.storage import Mask
from uop.interpreter.values import either
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node


@accepts_floats(Op.CMPLT)
@accepts_ints(Op.CMPLT)
def cmplt(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    return _ordered(a.hi < b.lo, a.lo < b.hi, a, b)


@accepts_floats(Op.CMPGT)
@accepts_ints(Op.CMPGT)
def cmpgt(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    return _ordered(a.lo > b.hi, a.hi > b.lo, a, b)


@accepts_floats(Op.CMPGE, Op.CMPLE)
@accepts_ints(Op.CMPGE, Op.CMPLE)
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


@accepts_floats(Op.CMPEQ)
@accepts_ints(Op.CMPEQ)
def cmpeq(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    one = (a.lo == a.hi) & (b.lo == b.hi)
    return _ordered(one & (a.lo == b.lo), (a.lo <= b.hi) & (b.lo <= a.hi), a, b)


@accepts_floats(Op.CMPNE)
@accepts_ints(Op.CMPNE)
def cmpne(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    equal = cmpeq(u, profile, a, b)
    return Sets(~equal.hi, ~equal.lo)


@accepts_floats(Op.WHERE)
@accepts_ints(Op.WHERE)
def where(u: Node, profile: Profile, p: Sets, a: Sets, b: Sets) -> Sets:
    """Return the selected branch, or the union of both where the condition may be either.

    An element is absent only if it is absent in every branch that may be selected.
    """
    true, false = p.lo, ~p.hi
    if (true | false).all():
        result = chosen(true, a, b)
        return replace(
            result, any=either(p.any, result.any), invalid=either(p.invalid, result.invalid)
        )
    absence = either(without(a.invalid, b.invalid), without(b.invalid, a.invalid))
    mixed = replace(
        united(a, b), any=either(a.any, b.any, absence), invalid=both(a.invalid, b.invalid)
    )
    result = chosen(true, a, chosen(false, b, mixed))
    return replace(result, any=either(p.any, result.any), invalid=either(p.invalid, result.invalid))


def _ordered(certain: Mask, possible: Mask, a: Sets, b: Sets) -> Sets:
    """Return the bools of a comparison that is false for a NaN."""
    nan, only = either(a.nan, b.nan), either(a.only, b.only)
    if nan is not None:
        certain = certain & ~nan
    if only is not None:
        possible = possible & ~only
    return Sets(certain, possible)
