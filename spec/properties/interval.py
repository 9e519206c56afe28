"""Intervals: the type of the derived property min_max, and the arithmetic of its rules.

Law: every ordinary element of every value lies in its interval. A rule without a better bound
gives the range of the dtype (D-059).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from uop.spec.dtype import DType, Kind, Scalar


@dataclass(frozen=True, slots=True)
class Interval:
    """min <= x <= max for every ordinary element x that is not NaN; no NaN unless may_be_nan."""

    min: Scalar
    max: Scalar
    may_be_nan: bool = False

    @property
    def is_single(self) -> bool:
        return self.min == self.max and not self.may_be_nan

    def join(self, other: Interval) -> Interval:
        """The smallest interval that contains both."""
        return Interval(
            min(self.min, other.min), max(self.max, other.max), self.may_be_nan or other.may_be_nan
        )


def dtype_range(dtype: DType) -> Interval | None:
    """The interval of all values of a dtype; None for void."""
    return None if dtype.kind is Kind.VOID else full(dtype)


@cache
def full(dtype: DType) -> Interval:
    """`dtype_range` of a dtype other than void."""
    return Interval(dtype.min, dtype.max, dtype.is_float)


def around(values: Sequence[Scalar]) -> Interval:
    return Interval(min(values), max(values))


def exact_or_range(dtype: DType, low: int, high: int) -> Interval:
    """Integer bounds if the dtype holds both; else the range of the dtype, since results wrap."""
    if dtype.min <= low and high <= dtype.max:
        return Interval(low, high)
    return full(dtype)


def monotone_float(
    dtype: DType,
    operands: tuple[Interval, Interval],
    corners: Iterable[tuple[Scalar, Scalar]],
    combine: Callable[[Fraction, Fraction], Fraction],
) -> Interval:
    """Bounds of a float op that is monotone in each operand: the rounded results at the corners.

    Rounding is monotone, so the rounded corners bound every rounded result. If a corner is not
    finite, or an operand or a result may be NaN, the range of the dtype.
    """
    if any(x.may_be_nan for x in operands):
        return full(dtype)
    rounded = []
    for a, b in corners:
        if not (math.isfinite(a) and math.isfinite(b)):
            return full(dtype)
        rounded.append(dtype.decode(dtype.encode(combine(Fraction(a), Fraction(b)))))
    if any(math.isnan(x) for x in rounded):
        return full(dtype)
    return around(rounded)
