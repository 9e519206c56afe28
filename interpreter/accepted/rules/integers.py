"""Compute the accepted results of int, index and bool ops from the corners of the sets.

If a result may wrap, every value of the dtype is accepted.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from uop.interpreter.accepted.rules.table import accepts_ints
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.rules.table import RULES
from uop.spec.dtype import DType, Kind
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node

# Corners are estimated in float64, exactly below 2^53. The limit leaves room for their error.
SAFE = 2.0**62
ESTIMATES = {Op.ADD: np.add, Op.SUB: np.subtract, Op.MUL: np.multiply, Op.SHL: np.ldexp}


@accepts_ints(Op.MAX, Op.TRUNC, Op.NOT)
def monotone(u: Node, profile: Profile, *operands: Sets) -> Sets:
    """Return the results at the corners; a set of bools has no values but its corners."""
    lo, hi = corners(u, *operands)
    return Sets(lo, hi)


@accepts_ints(Op.XOR, Op.OR, Op.AND, Op.THREEFRY)
def bitwise(u: Node, profile: Profile, *operands: Sets) -> Sets:
    """Return the exact result of single operands, else anything: bits are not monotone.

    A XOR with all ones reverses the order.
    """
    lo, hi = corners(u, *operands)
    if u.dtype.kind is Kind.BOOL:
        return Sets(lo, hi)
    known = _single(*operands)
    if u.op is Op.XOR:
        ones = lo.dtype.type(u.dtype.max if lo.dtype.kind == "u" else -1)
        for s in operands:
            known = known | (_single(s) & (s.lo == ones))
    return Sets(lo, hi, any=~known)


@accepts_ints(Op.ADD, Op.SUB, Op.MUL)
def wrapping(u: Node, profile: Profile, *operands: Sets) -> Sets:
    """Return the corners of an op that is linear in each operand, or anything if one may wrap."""
    lo, hi = corners(u, *operands)
    if u.dtype.kind is Kind.BOOL:
        return Sets(lo, hi)
    return unless_wrapped(u.dtype, _fits(u.op, u.dtype, *operands) | _single(*operands), lo, hi)


@accepts_ints(Op.NEG)
def neg(u: Node, profile: Profile, a: Sets) -> Sets:
    lo, hi = corners(u, a)
    zero = Sets(np.zeros_like(a.lo), np.zeros_like(a.lo))
    return unless_wrapped(u.dtype, _fits(Op.SUB, u.dtype, zero, a) | _single(a), lo, hi)


@accepts_ints(Op.MULACC)
def mulacc(u: Node, profile: Profile, a: Sets, b: Sets, c: Sets) -> Sets:
    """Return the exact results of single operands and bools, else every value."""
    lo, hi = corners(u, a, b, c)
    if u.dtype.kind is Kind.BOOL:
        return Sets(lo, hi)
    return unless_wrapped(u.dtype, _single(a, b, c), lo, hi)


@accepts_ints(Op.IDIV)
def idiv(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    """Return the quotients at the corners, on both sides of a zero divisor.

    Only MIN by -1 wraps.
    """
    zero = (b.lo <= 0) & (b.hi >= 0)
    quotients = [_quotient(u, profile, x, y) for x, y in product((a.lo, a.hi), (b.lo, b.hi))]
    lo, hi = np.minimum.reduce(quotients), np.maximum.reduce(quotients)
    if not u.dtype.is_signed:
        return Sets(lo, hi, any=zero)
    wraps = (a.lo == u.dtype.min) & (b.lo <= -1) & (b.hi >= -1) & ~_single(a, b)
    return unless_wrapped(u.dtype, ~wraps, lo, hi, any=zero)


@accepts_ints(Op.MOD)
def mod(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    """Return all values between zero and the divisor; exact ends if the quotient is one number."""
    zero = (b.lo <= 0) & (b.hi >= 0)
    ends = [_remainder(u, profile, x, b.lo) for x in (a.lo, a.hi)]
    if profile.truncates(u.dtype):
        return unless_wrapped(u.dtype, _single(a, b), ends[0], ends[1], any=zero)
    one = _single(b) & (np.floor_divide(a.lo, b.lo) == np.floor_divide(a.hi, b.lo))
    nothing = np.zeros_like(b.lo)
    lo = np.where(one, ends[0], np.where(b.lo > 0, nothing, b.lo + 1))
    hi = np.where(one, ends[1], np.where(b.lo > 0, b.hi - 1, nothing))
    return Sets(lo, hi, any=zero)


@accepts_ints(Op.SHL, Op.SHR)
def shift(u: Node, profile: Profile, a: Sets, b: Sets) -> Sets:
    """Return the product, or floored quotient, with a power of two; anything for a bad count."""
    outside = (b.lo < 0) | (b.hi >= u.dtype.bits)
    lo, hi = corners(u, a, b)
    if u.op is Op.SHR:
        return Sets(lo, hi, any=outside)
    count_lo, count_hi = (np.clip(end, 0, u.dtype.bits).astype(np.int64) for end in (b.lo, b.hi))
    fits = _fits(Op.SHL, u.dtype, a, Sets(count_lo, count_hi)) | _single(a, b)
    return unless_wrapped(u.dtype, fits, lo, hi, any=outside)


def corners(u: Node, *operands: Sets) -> tuple[Array, Array]:
    """Return the least and the largest result of the op at the ends of the operands."""
    results = [
        np.asarray(RULES[u.op](u, *ends)) for ends in product(*((s.lo, s.hi) for s in operands))
    ]
    return np.minimum.reduce(results), np.maximum.reduce(results)


def _single(*operands: Sets) -> Mask:
    return np.asarray(np.logical_and.reduce([s.lo == s.hi for s in operands]))


def _fits(op: Op, dtype: DType, a: Sets, b: Sets) -> Mask:
    """Return where no corner of the op leaves the dtype."""
    estimate = ESTIMATES[op]
    results = [
        estimate(x.astype(np.float64), y if op is Op.SHL else y.astype(np.float64))
        for x, y in product((a.lo, a.hi), (b.lo, b.hi))
    ]
    least, largest = max(float(dtype.min), -SAFE), min(float(dtype.max), SAFE)
    fits = [(result >= least) & (result <= largest) for result in results]
    return np.asarray(np.logical_and.reduce(fits))


def unless_wrapped(
    dtype: DType, fits: Mask, lo: Array, hi: Array, *, any: Mask | None = None
) -> Sets:
    """Return the interval, or every value of the dtype where a result may have wrapped."""
    if fits.all():
        return Sets(lo, hi, any=any)
    least, largest = lo.dtype.type(dtype.min), lo.dtype.type(dtype.max)
    return Sets(np.where(fits, lo, least), np.where(fits, hi, largest), any=any)


def _quotient(u: Node, profile: Profile, a: Array, b: Array) -> Array:
    floored = np.floor_divide(a, b)
    if not profile.truncates(u.dtype):
        return floored
    towards_zero = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
    return np.asarray(floored + towards_zero.astype(floored.dtype))


def _remainder(u: Node, profile: Profile, a: Array, b: Array) -> Array:
    floored = np.remainder(a, b)
    if not profile.truncates(u.dtype):
        return floored
    return np.where((floored != 0) & ((a < 0) != (b < 0)), floored - b, floored)
