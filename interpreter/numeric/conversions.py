"""Convert between dtypes in numpy: one rounding, CAST, BITCAST, and index arithmetic in 64 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uop.interpreter.numeric.storage import BITS, STORAGE, Array, Mask, np_dtype, to_bits
from uop.spec.conditions.clauses import undefined
from uop.spec.dtype import DType, Kind, dtypes

INDEX_RANGE = range(-(1 << 63), 1 << 63)


def round_to(a: Array, dtype: DType) -> Array:
    """Round a float32 or float64 array to a float dtype once, to nearest even."""
    if a.dtype == np.float64 and dtype.bits < 32 and dtype is not dtypes.float16:
        # ml_dtypes converts float64 through float32, which would round twice.
        a = to_odd_float32(a)
    return a.astype(STORAGE[dtype.name])


def to_odd_float32(a: Array) -> Array:
    """Round float64 to float32; an inexact result becomes the neighbour with the odd last bit.

    Rounding that to nearest even, in a format narrower by two bits or more, equals rounding `a` to
    the format directly.
    """
    near = a.astype(np.float32)
    back = near.astype(np.float64)
    inexact = (back != a) & (a == a)
    if not inexact.any():
        return near
    # Among numbers of one sign the bits grow with the magnitude: one less is closer to zero.
    toward_zero = to_bits(near) - (np.abs(back) > np.abs(a)).astype(np.uint32)
    return np.where(inexact, toward_zero | np.uint32(1), to_bits(near)).view(np.float32)


def cast(a: Array, source: DType, target: DType) -> Array:
    """Compute CAST: integers wrap, floats are rounded once or truncated.

    A CAST to the same dtype copies the bits. An element is 0 where `cast_unspecified` is true.
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
    """Return where CAST has no value: for a NaN or a float outside the integer dtype."""
    if not source.is_float or not target.is_int:
        return None
    return np.logical_not(_fits(a.astype(np.float64), target))


def bitcast(a: Array, target: DType) -> Array:
    """Compute BITCAST: the bytes, little-endian; the last axis scales by the ratio of item sizes.

    A byte other than 0 and 1 reads as true in a bool; `bitcast_unspecified` returns where.
    """
    if target.kind is Kind.BOOL:
        return np.not_equal(_resized(a, BITS[1]), 0)
    return _resized(a, np_dtype(target))


def bitcast_unspecified(a: Array, target: DType) -> Mask | None:
    """Return where BITCAST has no value: bytes other than 0 and 1 as bool; None if nowhere."""
    return np.greater(_resized(a, BITS[1]), 1) if target.kind is Kind.BOOL else None


def index_op(op: Callable[[Any, Any], Any], a: Array, b: Array) -> Array:
    """Compute a sum, difference, product or left shift of index arrays.

    These ops have their extremes at the corners of the operands' ranges, so elements are computed
    exactly only if a corner leaves 64 bits. Raises UndefinedError if a result does.
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
    """Return where the integral part of a float64 is a value of an integer dtype."""
    low, high = float(target.min), float(target.max + 1)
    # From 2^53 on every float64 is integral and min - 1 is not a float64: min itself is the bound.
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
    """Round integers to odd, to 53 bits, so that float64 holds them exactly."""
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
