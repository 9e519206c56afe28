"""Decide whether a node has accepted results other than the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.liberties import is_relaxed, reads_copy
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.sets import Sets, points, signalling, somewhere, without
from uop.interpreter.values import Value, either
from uop.spec.dtype import DType
from uop.spec.latitude import Maximum, Profile, Quotient, Reduced, Ulp, Unordered
from uop.spec.ops.names import FLOOR_DIVISIONS, Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def is_reference(s: Sets, value: Value, dtype: DType) -> bool:
    """Return whether sets hold the reference alone, so that it can stand for them."""
    opened = either(value.unspecified, value.invalid)
    if somewhere(without(either(s.any, s.invalid), opened)) is not None:
        return False
    same_bits = order.same_bits(s.lo, np.ascontiguousarray(value.data))
    equal = s.is_point() & same_bits
    if s.nan is not None:
        reference = points(value, dtype.is_float)
        closed = without(reference.exact, s.exact)
        alone = np.False_ if s.only is None else s.only & order.is_nan(value.data)
        alone = alone if s.exact is None else alone & (same_bits | ~s.exact)
        equal = np.where(s.nan, alone if closed is None else alone & ~closed, equal)
    return bool((equal if opened is None else equal | opened).all())


def narrowed(dtype: DType, value: Value, sets: Sets | None) -> Accepted:
    """Return the reference with its sets; without them if they hold nothing else."""
    return Accepted(
        dtype, value, None if sets is None or is_reference(sets, value, dtype) else sets
    )


def as_output(u: UOp, profile: Profile, accepted: Accepted) -> Accepted:
    """Return the accepted results of an output: a copied signalling NaN may become quiet."""
    if profile.snan == "kept" or u.op is Op.BITCAST or not accepted.dtype.is_float:
        return accepted
    if accepted.sets is None and not order.is_signalling(accepted.value.data).any():
        return accepted
    s = accepted.spread
    loud = signalling(s)
    if loud is None:
        return accepted
    quiet = np.where(loud, order.quieted(s.lo), s.hi)
    return Accepted(accepted.dtype, accepted.value, replace(s, hi=quiet))


def widens(u: UOp, profile: Profile, operands: list[Value], value: Value) -> bool:
    """Return whether an op on single operands may return a value other than the reference."""
    if u.op in FLOOR_DIVISIONS and profile.truncates(u.dtype):
        return True
    if profile.fp8_saturate and u.op is Op.CAST and u.dtype.is_float and u.dtype.bits == 8:
        return True
    if not operands or not u.src[0].dtype.is_float:
        return False
    if u.op is Op.BITCAST:
        return reads_copy(u, profile) and bool(order.is_signalling(operands[0].data).any())
    latitude = u.declaration.latitude
    if is_relaxed(profile) and (u.declaration.is_elementwise or isinstance(latitude, Reduced)):
        return True
    if isinstance(latitude, Quotient):
        return True
    if isinstance(latitude, Ulp):
        return 2 * latitude.budget(u.dtype) != 1
    if isinstance(latitude, Maximum):
        nan_or_zero = (value.data != value.data) | (value.data == 0)
        return bool(nan_or_zero.any()) or _has_nan(operands)
    if isinstance(latitude, Unordered):
        return profile.cmp_nan == "either" and _has_nan(operands)
    return isinstance(latitude, Reduced)


def _has_nan(operands: list[Value]) -> bool:
    return any(bool(order.is_nan(v.data).any()) for v in operands)
