"""Represent a set of values for each element of an array: intervals, NaNs, or anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.values import Join, Value, either, full, joined_mask

MOST_GAPS = 4
"""A union keeps so many gaps of each element, the widest: a fold of a start and four terms is
exact.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """A range between two members of a set that holds no member; empty if these are neighbours."""

    below: Array
    above: Array


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """A set of values for each element; a mask of None is set nowhere.

    The ordinary values of an element lie from `lo` to `hi` in the total order, but in no one of the
    `gaps`. `nan` adds a NaN. `only` implies `nan`: the set has no ordinary value, and both ends are
    NaN. `exact` implies `only`: the NaN has the bits in `lo`, or those in `hi`. `any` says that the
    spec gives no value, `invalid` that the element is absent; there the other fields have no
    meaning. Sets without their gaps hold more, so a rule may leave them out.
    """

    lo: Array
    hi: Array
    nan: Mask | None = None
    only: Mask | None = None
    exact: Mask | None = None
    any: Mask | None = None
    invalid: Mask | None = None
    gaps: tuple[Gap, ...] = field(default=(), kw_only=True)

    def map(self, move: Callable[[Array], Array]) -> Sets:
        """Apply a movement to every part of the sets."""
        lo = move(self.lo)
        hi = lo if self.hi is self.lo else move(self.hi)
        masks = (None if mask is None else move(mask) for mask in self.masks)
        gaps = tuple(Gap(move(gap.below), move(gap.above)) for gap in self.gaps)
        return Sets(lo, hi, *masks, gaps=gaps)

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
    # In a kernel it may have fewer lanes than the data.
    opened = None if value.unspecified is None else full(value.unspecified, data)
    if nan is None or not np.count_nonzero(nan):
        return Sets(data, data, any=opened, invalid=value.invalid)
    exact = nan if value.free_nan is None else nan & ~value.free_nan
    return Sets(data, data, nan, nan, exact, opened, value.invalid)


def together(operands: Sequence[Sets], join: Join) -> Sets:
    """Join several arrays of sets: apply a join to every part."""
    lo, hi = [s.lo for s in operands], [s.hi for s in operands]
    masks = zip(*(s.masks for s in operands), strict=True)
    gaps = tuple(
        Gap(
            join([end if gap is None else gap.below for gap, end in zip(same, hi, strict=True)]),
            join([end if gap is None else gap.above for gap, end in zip(same, hi, strict=True)]),
        )
        for same in zip_longest(*(s.gaps for s in operands))
    )
    low = join(lo)
    high = low if all(s.hi is s.lo for s in operands) else join(hi)
    return Sets(low, high, *(joined_mask(m, lo, join) for m in masks), gaps=gaps)


def chosen(first: Mask, a: Sets, b: Sets) -> Sets:
    """Return the sets of `a` where the mask is set, those of `b` elsewhere."""
    return together([a, b], lambda parts: np.where(first, *parts))


def joined(a: Sets, b: Sets) -> Sets:
    """Return the least interval around two sets."""
    lo, hi = order.lower(a.lo, b.lo), order.upper(a.hi, b.hi)
    if a.only is not None:
        lo, hi = np.where(a.only, b.lo, lo), np.where(a.only, b.hi, hi)
    if b.only is not None:
        lo, hi = np.where(b.only, a.lo, lo), np.where(b.only, a.hi, hi)
    return Sets(lo, hi, either(a.nan, b.nan), both(a.only, b.only), both(a.exact, b.exact))


def united(*operands: Sets) -> Sets:
    """Return the union of sets, without the masks `any` and `invalid`."""
    first, *others = operands
    parts = [(part, s.only) for s in operands for part in intervals(s)]
    lo, hi = (np.stack([getattr(part, end) for part, _ in parts]) for end in ("lo", "hi"))
    absent = [only for _, only in parts]
    result = union(lo, hi, joined_mask(absent, [part.lo for part, _ in parts], np.stack))
    exact = both(*(s.exact for s in operands))
    if exact is not None:
        for s in others:
            exact = exact & order.same_bits(first.lo, s.lo)
        ends = (np.where(exact, first.lo, end) for end in (result.lo, result.hi))
        result = Sets(*ends, gaps=result.gaps)
    nan, only = either(*(s.nan for s in operands)), both(*(s.only for s in operands))
    return replace(result, nan=nan, only=only, exact=exact)


def union(lo: Array, hi: Array, absent: Mask | None = None) -> Sets:
    """Return the union of the intervals that are present along the first axis.

    Where all are absent it is the first one; where there are more gaps than fit, the narrowest are
    filled.
    """
    lows, highs = order.keys(lo), order.keys(hi)
    if absent is not None:
        info = np.iinfo(lows.dtype)
        absent = np.concatenate([absent[:1] & ~absent.all(axis=0), absent[1:]])
        lows, highs = np.where(absent, info.max, lows), np.where(absent, info.min, highs)
    least, most = lows.min(axis=0), highs.max(axis=0)
    if absent is not None:
        lows, highs = np.where(absent, most, lows), np.where(absent, most, highs)
    ends = order.unkeys(least, lo.dtype), order.unkeys(most, lo.dtype)
    return Sets(*ends, gaps=_gaps_between(lows, highs, lo.dtype))


def intervals(s: Sets) -> list[Sets]:
    """Return the intervals of the sets, lowest first, each with all masks.

    A set with fewer intervals than another repeats its last one.
    """
    if not s.gaps:
        return [s]
    storage = s.lo.dtype
    below = np.sort([order.keys(gap.below) for gap in s.gaps], axis=0)
    above = np.sort([order.keys(gap.above) for gap in s.gaps], axis=0)
    starts, ends = [s.lo], [*(order.unkeys(k, storage) for k in below), s.hi]
    for k in range(len(below)):
        start = order.unkeys(above[k], storage)
        starts.append(np.where(above[k] == below[k], starts[-1], start))
    return [Sets(lo, hi, *s.masks) for lo, hi in zip(starts, ends, strict=True)]


def numbers(s: Sets) -> list[Sets]:
    """Return the intervals of sets of integers; two neighbours are two intervals."""
    parts: list[Sets] = []
    for part in intervals(s):
        two = order.distance(part.lo, part.hi) == 1
        if two.any():
            parts.append(Sets(part.lo, np.where(two, part.lo, part.hi), *s.masks))
            parts.append(Sets(np.where(two, part.hi, part.lo), part.hi, *s.masks))
        else:
            parts.append(part)
    return parts


def in_gap(s: Sets, values: Array) -> Mask:
    """Return where a value lies in a gap of its set."""
    k, result = order.keys(values), np.zeros(s.lo.shape, np.bool_)
    for gap in s.gaps:
        result |= (order.keys(gap.below) < k) & (k < order.keys(gap.above))
    return result


def nan_alone(s: Sets) -> Sets:
    """Return the sets with NaN at both ends where they hold no ordinary value, which
    rules expect.
    """
    if s.only is None:
        return s
    nan = s.lo.dtype.type(np.nan)
    free = s.only if s.exact is None else s.only & ~s.exact
    return replace(s, lo=np.where(free, nan, s.lo), hi=np.where(free, nan, s.hi))


def signalling(s: Sets) -> Mask | None:
    """Return where a set is a signalling NaN, by its bits; None if nowhere."""
    return None if s.exact is None else somewhere(s.exact & order.is_signalling(s.lo))


def both(*masks: Mask | None) -> Mask | None:
    """Return where all masks are set."""
    found = [mask for mask in masks if mask is not None]
    return None if len(found) < len(masks) else np.logical_and.reduce(found)


def without(a: Mask | None, b: Mask | None) -> Mask | None:
    """Return where the first mask is set and the second is not."""
    return a if a is None or b is None else a & ~b


def somewhere(mask: Mask | None) -> Mask | None:
    """Return the mask, or None if it is set nowhere, which keeps later steps fast."""
    return mask if mask is not None and np.count_nonzero(mask) else None


def _gaps_between(lows: Array, highs: Array, storage: np.dtype[Any]) -> tuple[Gap, ...]:
    """Return the widest gaps that intervals leave between them, by the keys of their ends."""
    lowest_first = np.argsort(lows, axis=0)
    lows, highs = (np.take_along_axis(k, lowest_first, 0) for k in (lows, highs))
    reached = np.maximum.accumulate(highs, axis=0)
    below, above = reached[:-1], lows[1:]
    apart = (above > below) & (above - 1 != below)
    count = min(int(np.count_nonzero(apart, axis=0).max(initial=0)), MOST_GAPS)
    if not count:
        return ()
    below, above = (np.where(apart, k, reached[-1]) for k in (below, above))
    values = order.unkeys(below, storage), order.unkeys(above, storage)
    widest = np.argsort(-order.distance(*values), axis=0)[:count]
    below, above = (np.take_along_axis(end, widest, 0) for end in values)
    return tuple(Gap(*ends) for ends in zip(below, above, strict=True))
