"""Represent the accepted results of one node: the reference, and wider sets where there are any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.liberties import is_relaxed, reads_copy
from uop.interpreter.accepted.sets import (
    Sets,
    in_gap,
    intervals,
    points,
    signalling,
    somewhere,
    without,
)
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.values import Value, either, full
from uop.spec import latitude as lat
from uop.spec.dtype import DType, Kind
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.text.codec import encode_scalar
from uop.spec.text.literal import print_literal

if TYPE_CHECKING:
    from uop.spec.uop import UOp

CONSTRAINED_SHARE = 16
"""A set is constrained if it holds at most 1/16 of the bit patterns of its dtype."""


class NaN(IntEnum):
    """Whether a NaN is accepted; EXACT means only a NaN with the bits of the reference."""

    NO = 0
    MAY = 1
    MUST = 2
    EXACT = 3


@dataclass(frozen=True, slots=True, eq=False)
class Accepted:
    """The accepted results of each element of a node.

    Without `sets` only the reference is accepted. Any result is accepted for an element that is
    absent or unspecified in the reference.
    """

    dtype: DType
    value: Value
    sets: Sets | None = None

    @property
    def spread(self) -> Sets:
        """Return the sets; without any, sets that hold the reference alone."""
        return points(self.value, self.dtype.is_float) if self.sets is None else self.sets

    @property
    def lo(self) -> Array:
        return self.spread.lo

    @property
    def hi(self) -> Array:
        return self.spread.hi

    @property
    def nan(self) -> Array:
        """Return a `NaN` code for each element."""
        s = self.spread
        code = np.zeros(s.lo.shape, np.uint8)
        for mask in (s.nan, s.only, s.exact):
            if mask is not None:
                code = code + mask
        return code

    @property
    def any(self) -> Mask:
        """Return where every value of the dtype is accepted because the spec defines none."""
        s = self.spread
        return full(either(s.any, s.invalid), s.lo)

    def contains(self, actual: Array) -> Mask:
        """Return where a result is accepted; it has the node's shape and storage dtype."""
        s = self.spread
        k = order.keys(actual)
        inside = (order.keys(s.lo) <= k) & (k <= order.keys(s.hi))
        if s.gaps:
            inside = inside & ~in_gap(s, actual)
        if self.dtype.is_float:
            inside = self._with_nan(s, actual, inside)
        opened = either(s.any, s.invalid)
        return np.asarray(inside if opened is None else inside | opened)

    def _with_nan(self, s: Sets, actual: Array, inside: Mask) -> Mask:
        nan = order.is_nan(actual)
        if s.nan is None:
            return inside & ~nan
        accepted = s.nan
        if s.exact is not None:
            same = order.same_bits(actual, s.lo) | order.same_bits(actual, s.hi)
            accepted = accepted & (~s.exact | same)
        ordinary = inside if s.only is None else inside & ~s.only
        return np.where(nan, accepted, ordinary)

    @property
    def single(self) -> Mask:
        """Return where one value is accepted; NaN counts as one."""
        return self.spread.is_point() & ~self.any

    @property
    def patterns(self) -> Array:
        """Return the number of accepted bit patterns, as float64."""
        s = self.spread
        count = order.distance(s.lo, s.hi) + 1
        for gap in s.gaps:
            count = count - np.maximum(order.distance(gap.below, gap.above) - 1, 0)
        if self.dtype.is_float:
            nans = float(_nan_patterns(self.dtype))
            if s.only is not None:
                count = np.where(s.only, 0, count)
            if s.nan is not None:
                count = count + np.where(s.nan, nans, 0)
            if s.exact is not None:
                count = np.where(s.exact, 1 + ~order.same_bits(s.lo, s.hi), count)
        return np.where(self.any, 2.0**self.dtype.bits, count)

    @property
    def constrained(self) -> Mask:
        """Return where at most 1/16 of all patterns (of bool: one) is accepted.

        There a wrong result is likely noticed.
        """
        most = 1 if self.dtype.kind is Kind.BOOL else 2.0**self.dtype.bits / CONSTRAINED_SHARE
        return np.asarray(self.patterns <= most)

    def distance(self, actual: Array) -> Array:
        """Count the values from the reference to a result; inf where only one of them is NaN.

        It is 0 where anything is accepted, and between NaNs.
        """
        reference = self.value.data
        apart = order.distance(order.lower(reference, actual), order.upper(reference, actual))
        if self.dtype.is_float:
            x, y = order.is_nan(reference), order.is_nan(actual)
            apart = np.where(x & y, 0, np.where(x | y, np.inf, apart))
        return np.where(self.any, 0, apart)

    def describe(self, index: int) -> str:
        """Describe the accepted set of one element, by its flat index, for a reader."""
        s = self.spread.map(lambda a: a.reshape(-1)[index : index + 1])
        if s.invalid is not None and s.invalid[0]:
            return "anything (the element is absent)"
        if s.any is not None and s.any[0]:
            return "anything (the spec gives no value)"
        if s.exact is not None and s.exact[0]:
            return " or ".join(dict.fromkeys(_spelled(end, self.dtype) for end in (s.lo, s.hi)))
        if s.only is not None and s.only[0]:
            return "NaN"
        parts = [_described(part, self.dtype) for part in intervals(s)]
        nan = ["NaN"] if s.nan is not None and s.nan[0] else []
        return " or ".join([*dict.fromkeys(parts), *nan])


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


def as_output(u: UOp, profile: lat.Profile, accepted: Accepted) -> Accepted:
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


def widens(u: UOp, profile: lat.Profile, operands: list[Value], value: Value) -> bool:
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
    if is_relaxed(profile) and (u.declaration.is_elementwise or isinstance(latitude, lat.Reduced)):
        return True
    if isinstance(latitude, lat.Quotient):
        return True
    if isinstance(latitude, lat.Ulp):
        return 2 * latitude.budget(u.dtype) != 1
    if isinstance(latitude, lat.Maximum):
        nan_or_zero = (value.data != value.data) | (value.data == 0)
        return bool(nan_or_zero.any()) or _has_nan(operands)
    if isinstance(latitude, lat.Unordered):
        return profile.cmp_nan == "either" and _has_nan(operands)
    return isinstance(latitude, lat.Reduced)


def _described(s: Sets, dtype: DType) -> str:
    """Describe an interval: one value, two neighbours, or the ends."""
    lo, hi = _spelled(s.lo, dtype), _spelled(s.hi, dtype)
    are_neighbours = float(order.distance(s.lo, s.hi)[0]) == 1
    return lo if lo == hi else f"{lo} or {hi}" if are_neighbours else f"{lo} to {hi}"


def _spelled(one: Array, dtype: DType) -> str:
    """Return one value as a `.uop` file spells it."""
    return print_literal(encode_scalar(int.from_bytes(one.tobytes(), "little"), dtype))


def _nan_patterns(dtype: DType) -> int:
    form = dtype.format
    return 2 * form.fraction_mask if form.has_inf else 2


def _has_nan(operands: list[Value]) -> bool:
    return any(bool(order.is_nan(v.data).any()) for v in operands)
