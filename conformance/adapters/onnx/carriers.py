"""In which other dtypes an op on a dtype can be computed without a change of its results."""

from __future__ import annotations

from functools import cache

from uop.spec.dtype import INTS, DType, Kind, dtypes


@cache
def wrapping(dtype: DType) -> tuple[DType, ...]:
    """The integers that hold the low bits of an integer: a CAST there and back wraps."""
    fits = [d for d in INTS if d.bits >= dtype.bits]
    return tuple(sorted(fits, key=lambda d: (d.bits, d.is_signed is not dtype.is_signed)))


@cache
def containing(dtype: DType) -> tuple[DType, ...]:
    """The integers that hold every value of an integer or bool."""
    if dtype is dtypes.bool:
        return tuple(sorted(INTS, key=lambda d: (d.bits, d.is_signed)))
    same = [d for d in INTS if d.is_signed is dtype.is_signed and d.bits > dtype.bits]
    more = [d for d in INTS if d.is_signed and not dtype.is_signed and d.bits > dtype.bits]
    return tuple(sorted([*same, *more], key=lambda d: d.bits))


def wider(dtype: DType) -> tuple[DType, ...]:
    """float32 for a narrow float: it has more than twice the precision, so that a result which is
    rounded there and again is the one that is rounded once.
    """
    return (dtypes.float32,) if dtype.is_float and dtype.bits < 32 else ()


def unsigned(dtype: DType) -> DType:
    """The unsigned integer of the size of a dtype; a bool is a byte."""
    bits = 8 * dtype.itemsize
    return next(d for d in INTS if d.kind is Kind.UINT and d.bits == bits)
