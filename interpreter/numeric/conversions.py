"""Numbers in numpy: storage dtypes, bits, conversions that round once, index arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uop.interpreter.numeric.storage import BITS, STORAGE, Array, Mask, np_dtype, to_bits
from uop.spec.conditions.clauses import undefined
from uop.spec.dtype import DType, Kind, dtypes

INDEX_RANGE = range(-(1 << 63), 1 << 63)


def round_to(a: Array, dtype: DType) -> Array:
    """A float32 or float64 array rounded once to a float dtype, nearest even."""
    if a.dtype == np.float64 and dtype.bits < 32 and dtype is not dtypes.float16:
        # ml_dtypes goes from float64 through float32 and would round twice.
        a = to_odd_float32(a)
    return a.astype(STORAGE[dtype.name])


def to_odd_float32(a: Array) -> Array:
    """float64 to float32, an inexact result becoming the neighbour with the odd last bit.

    Rounding that once more to nearest even in a format narrower by two bits or more equals rounding
    `a` to it directly.
    """
    near = a.astype(np.float32)
    back = near.astype(np.float64)
    inexact = (back != a) & (a == a)
    if not inexact.any():
        return near
    # Patterns of one sign grow with the magnitude, so one less is the neighbour towards zero.
    toward_zero = to_bits(near) - (np.abs(back) > np.abs(a)).astype(np.uint32)
    return np.where(inexact, toward_zero | np.uint32(1), to_bits(near)).view(np.float32)


def cast(a: Array, source: DType, target: DType) -> Array:
    """CAST: a bit copy to the same dtype; integers wrap, floats are rounded once or truncated.

    Where `cast_unspecified` is set the element is 0.
    """
    if source == target:
        return a
    if target.kind is Kind.BOOL:
        return np.asarray(np.not_equal(a, a.dtype.type(0)))
    if target.is_float:
        return _to_float(a, source, target)
    if source.is_float:
        wide = a.astype(np.float64)
        return np.where(_fits(wide, target), wide, 0.0).astype(np_dtype(target))
    if target.kind is Kind.INDEX and source == dtypes.uint64 and (a > INDEX_RANGE[-1]).any():
        raise undefined("VALUE.u1", f"{int(a.max())}")
    return a.astype(np_dtype(target))


def cast_unspecified(a: Array, source: DType, target: DType) -> Mask | None:
    """Where CAST has no value: NaN, and a float whose integral part the dtype cannot hold."""
    if not source.is_float or not target.is_int:
        return None
    return np.logical_not(_fits(a.astype(np.float64), target))


def bitcast(a: Array, target: DType) -> Array:
    """BITCAST: the bytes, little-endian; the last axis scales by the ratio of item sizes.

    A byte that is no bool reads as true; `bitcast_unspecified` says where.
    """
    if target.kind is Kind.BOOL:
        return np.not_equal(_resized(a, BITS[1]), 0)
    return _resized(a, np_dtype(target))


def bitcast_unspecified(a: Array, target: DType) -> Mask | None:
    """Where BITCAST has no value: bytes other than 0 and 1 read as bool."""
    return np.greater(_resized(a, BITS[1]), 1) if target.kind is Kind.BOOL else None


def index_op(op: Callable[[Any, Any], Any], a: Array, b: Array) -> Array:
    """A sum, difference, product or left shift of index arrays; leaving 64 bits has no meaning.

    These ops take their extremes at the corners of the operands' ranges, so only when a corner
    leaves 64 bits is every element computed exactly.
    """
    if a.size and b.size:
        a_ends, b_ends = (int(a.min()), int(a.max())), (int(b.min()), int(b.max()))
        if any(op(x, y) not in INDEX_RANGE for x in a_ends for y in b_ends):
            # As objects: numpy would make a uint64 of a scalar that int64 cannot hold.
            return _index_array(np.asarray(op(a.astype(object), b.astype(object)), object))
    return np.asarray(op(a, b))


def _index_array(exact: Array) -> Array:
    for value in exact.flat:
        if value not in INDEX_RANGE:
            raise undefined("VALUE.u1", f"{value}")
    return exact.astype(np.int64)


def _fits(wide: Array, target: DType) -> Mask:
    """Where the integral part of a float64 is a value of an integer dtype."""
    low, high = float(target.min), float(target.max + 1)
    # From 2^53 every float64 is integral and min - 1 is none: there the bound is min itself.
    above = wide >= low if target.bits == 64 and target.is_signed else wide > low - 1.0
    return np.logical_and(above, wide < high)


def _to_float(a: Array, source: DType, target: DType) -> Array:
    if source.is_float:
        return round_to(a if source.bits == 64 else a.astype(np.float32), target)
    if target.bits >= 32:
        return a.astype(np_dtype(target))
    if source.bits <= 16:
        return round_to(a.astype(np.float32), target)
    return round_to(_to_odd_53_bits(a).astype(np.float64), target)


def _to_odd_53_bits(a: Array) -> Array:
    """Integers that float64 holds exactly: wider ones are rounded to odd."""
    if a.dtype.itemsize < 8:
        return a
    integer = a.dtype.type
    dropped = a & integer((1 << 11) - 1)
    odd = (a - dropped) | ((dropped != 0).astype(a.dtype) << integer(11))
    high = a >> integer(53)
    return np.where((high == 0) | (high == -1), a, odd)


def _resized(a: Array, storage: np.dtype[Any]) -> Array:
    same_size = a.dtype.itemsize == storage.itemsize
    return (a if same_size else np.ascontiguousarray(a)).view(storage)
