"""Compute the accepted results of the float ops that round once, from the ends of the sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.liberties import between
from uop.interpreter.accepted.rules.budget import in_range
from uop.interpreter.accepted.rules.table import accepts_floats
from uop.interpreter.accepted.sets import Sets, both, signalling, united
from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.values import either
from uop.spec.dtype import DType
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node


@accepts_floats(Op.ADD)
def add(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    """Add the ends: a sum grows with both operands, also in the total order."""
    a, b = computed(a), computed(b)
    lo, hi = a.lo + b.lo, a.hi + b.hi
    nan, only = either(a.nan, b.nan), either(a.only, b.only)
    opposite = ((a.hi == np.inf) & (b.lo == -np.inf)) | ((a.lo == -np.inf) & (b.hi == np.inf))
    if opposite.any():
        nan = either(nan, opposite)
        lost_lo, lost_hi = order.is_nan(lo), order.is_nan(hi)
        only = either(only, lost_lo & lost_hi)
        # An end is inf - inf, so one operand is an infinity alone: all other sums with it equal it.
        lo, hi = np.where(lost_lo, hi, lo), np.where(lost_hi, lo, hi)
    return stored(Sets(lo, hi, nan, only), u.dtype)


@accepts_floats(Op.SUB)
def sub(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    return add(u, profile, a, negative(b))


@accepts_floats(Op.NEG)
def neg(u: Node, profile: Profile, a: Sets) -> Sets:
    return negative(a)


def negative(a: Sets) -> Sets:
    return Sets(np.negative(a.hi), np.negative(a.lo), a.nan, a.only)


@accepts_floats(Op.MUL)
def mul(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    return stored(product(computed(a), computed(b)), u.dtype)


def product(a: Sets, b: Sets) -> Sets:
    """Multiply at the corners: products are monotone in each operand.

    0 times inf is NaN: at such a corner the neighbours of both operands are used instead.
    """
    nan, only = either(a.nan, b.nan), either(a.only, b.only)
    corners = [a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi]
    zero_inf = (has_zero(a) & has_inf(b)) | (has_inf(a) & has_zero(b))
    if not zero_inf.any():
        k = [order.keys(corner) for corner in corners]
        lo = np.minimum(np.minimum(k[0], k[1]), np.minimum(k[2], k[3]))
        hi = np.maximum(np.maximum(k[0], k[1]), np.maximum(k[2], k[3]))
        return Sets(order.unkeys(lo, a.lo.dtype), order.unkeys(hi, a.lo.dtype), nan, only)
    x, y = (a.lo, a.hi, *inner(a)), (b.lo, b.hi, *inner(b))
    hull, lost = hull_of([i * j for i in x for j in y])
    return Sets(hull.lo, hull.hi, either(nan, zero_inf), either(only, lost))


@accepts_floats(Op.MULACC)
def mulacc(u: Node, profile: Profile, a: Sets, b: Sets, c: Sets) -> Sets:
    """Return a * b + c; the profile decides whether the product is rounded before the sum."""
    product = between(u.dtype, profile, a, b, mul(u, profile, a, b))
    return add(u, profile, product, c)


@accepts_floats(Op.MAX)
def maximum(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    lo, hi = order.upper(a.lo, b.lo), order.upper(a.hi, b.hi)
    minus, plus = order.contains_negative_zero, order.contains_positive_zero
    zeros = (minus(a.lo, a.hi) & plus(b.lo, b.hi)) | (plus(a.lo, a.hi) & minus(b.lo, b.hi))
    numbers = either_zero(zeros, lo, hi)
    nan, only = either(a.nan, b.nan), either(a.only, b.only)
    if nan is None or profile.max_nan == "propagate":
        return Sets(numbers.lo, numbers.hi, nan, only)
    if profile.max_nan == "number":
        # IEEE 754-2008 and C give NaN for a signalling one.
        nan = either(both(a.nan, b.nan), signalling(a), signalling(b))
    # Where one operand is NaN the other one is accepted.
    numbers = replace(numbers, only=only)
    other = (_instead_of_nan(y, x.nan) for x, y in ((a, b), (b, a)) if x.nan is not None)
    return replace(united(numbers, *other), nan=nan)


def either_zero(zeros: Mask, lo: Array, hi: Array) -> Sets:
    """Return a maximum, whose zero has either sign where operands have zeros of both."""
    if not zeros.any():
        return Sets(lo, hi)
    return Sets(
        np.where(zeros & (lo == 0), -np.abs(lo), lo), np.where(zeros & (hi == 0), np.abs(hi), hi)
    )


def _instead_of_nan(number: Sets, other: Mask) -> Sets:
    """Return an operand of a MAX where the other one may be NaN, else no ordinary value."""
    return Sets(number.lo, number.hi, None, either(number.only, ~other))


@accepts_floats(Op.TRUNC)
def trunc(u: Node, profile: Profile, a: Sets) -> Sets:
    return Sets(np.trunc(a.lo), np.trunc(a.hi), a.nan, a.only)


def computed(a: Sets) -> Sets:
    """Return the sets in a dtype of at least 32 bits; `stored` rounds the result of the
    computation.
    """
    if a.lo.dtype.itemsize >= 4:
        return a
    return Sets(a.lo.astype(np.float32), a.hi.astype(np.float32), a.nan, a.only)


def stored(s: Sets, dtype: DType) -> Sets:
    """Round the sets to the dtype once; overflow of a dtype without infinity gives NaN."""
    if s.lo.dtype.itemsize * 8 == dtype.bits:
        return s
    s = in_range(s, dtype)
    return Sets(round_to(s.lo, dtype), round_to(s.hi, dtype), s.nan, s.only)


def hull_of(values: list[Array]) -> tuple[Sets, Mask]:
    """Return the least interval around the values that are not NaN, and where all are NaN."""
    lost = [order.is_nan(value) for value in values]
    k = [order.keys(value) for value in values]
    info = np.iinfo(k[0].dtype)
    lo = np.minimum.reduce([np.where(n, info.max, i) for n, i in zip(lost, k, strict=True)])
    hi = np.maximum.reduce([np.where(n, info.min, i) for n, i in zip(lost, k, strict=True)])
    storage = values[0].dtype
    return Sets(order.unkeys(lo, storage), order.unkeys(hi, storage)), np.logical_and.reduce(lost)


def has_zero(a: Sets) -> Mask:
    return np.asarray((a.lo <= 0) & (a.hi >= 0))


def has_inf(a: Sets) -> Mask:
    return np.asarray(np.isinf(a.lo) | np.isinf(a.hi))


def inner(a: Sets) -> tuple[Array, Array]:
    """Return the values next to the ends inside the set; of a single value the ends themselves."""
    more = order.keys(a.lo) < order.keys(a.hi)
    k = more.astype(order.keys(a.lo).dtype)
    storage = a.lo.dtype
    inner_lo = order.unkeys(order.keys(a.lo) + k, storage)
    inner_hi = order.unkeys(order.keys(a.hi) - k, storage)
    return inner_lo, inner_hi
