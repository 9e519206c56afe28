"""Represent a set of values for each element of an array: an interval, NaNs, or anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.values import Join, Value, either, full, joined_mask


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """A set of values for each element; a mask of None is set nowhere.

    The ordinary values of an element lie from `lo` to `hi` in the total order. `nan` adds a NaN.
    `only` implies `nan`: the set has no ordinary value, and both ends are NaN. `exact` implies
    `only`: the NaN has the bits in `lo`. `any` says that the spec gives no value, `invalid` that
    the element is absent; there the other fields have no meaning.
    """

    lo: Array
    hi: Array
    nan: Mask | None = None
    only: Mask | None = None
    exact: Mask | None = None
    any: Mask | None = None
    invalid: Mask | None = None

    def map(self, move: Callable[[Array], Array]) -> Sets:
        """Apply a movement to every part of the sets."""
        lo = move(self.lo)
        hi = lo if self.hi is self.lo else move(self.hi)
        return Sets(lo, hi, *(None if mask is None else move(mask) for mask in self.masks))

    @property
    def masks(self) -> tuple[Mask | None, ...]:
        return self.nan, self.only, self.exact, self.any, self.invalid

    def is_point(self) -> Mask:
        """Return where a set is one ordinary value, or NaN alone."""
        point = order.same_bits(self.lo, self.hi)
        if self.nan is None:
            return point
        return np.where(self.nan, full(self.only, point), point)


def points(value: Value, is_float: bool) -> Sets:
    """Return the sets that hold exactly the elements of a value."""
    data = value.data
    nan = order.is_nan(data) if is_float else None
    if nan is None or not np.count_nonzero(nan):
        return Sets(data, data, any=value.unspecified, invalid=value.invalid)
    exact = nan if value.free_nan is None else nan & ~value.free_nan
    return Sets(data, data, nan, nan, exact, value.unspecified, value.invalid)


def together(operands: Sequence[Sets], join: Join) -> Sets:
    """Join several arrays of sets: apply a join to every part."""
    lo = [s.lo for s in operands]
    masks = zip(*(s.masks for s in operands), strict=True)
    return Sets(
        join(lo), join([s.hi for s in operands]), *(joined_mask(m, lo, join) for m in masks)
    )


def joined(a: Sets, b: Sets) -> Sets:
    """Return the union of two sets, as an interval."""
    lo, hi = order.lower(a.lo, b.lo), order.upper(a.hi, b.hi)
    if a.only is not None:
        lo, hi = np.where(a.only, b.lo, lo), np.where(a.only, b.hi, hi)
    if b.only is not None:
        lo, hi = np.where(b.only, a.lo, lo), np.where(b.only, a.hi, hi)
    return Sets(lo, hi, either(a.nan, b.nan), both(a.only, b.only), both(a.exact, b.exact))


def nan_alone(s: Sets) -> Sets:
    """Return the sets with NaN at both ends where they hold no ordinary value, as rules expect."""
    if s.only is None:
        return s
    nan = s.lo.dtype.type(np.nan)
    free = s.only if s.exact is None else s.only & ~s.exact
    return replace(s, lo=np.where(free, nan, s.lo), hi=np.where(free, nan, s.hi))


def both(a: Mask | None, b: Mask | None) -> Mask | None:
    """Return where both masks are set."""
    return None if a is None or b is None else a & b


def without(a: Mask | None, b: Mask | None) -> Mask | None:
    """Return where the first mask is set and the second is not."""
    return a if a is None or b is None else a & ~b


def somewhere(mask: Mask | None) -> Mask | None:
    """Return the mask, or None if it is set nowhere, which keeps later steps fast."""
    return mask if mask is not None and np.count_nonzero(mask) else None
