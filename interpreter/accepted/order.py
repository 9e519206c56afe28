"""Map the values of a dtype to integers in their total order, -inf < ... < -0 < +0 < ... < inf."""

from __future__ import annotations

from typing import Any

import numpy as np

from uop.interpreter.numeric.storage import BITS, STORED, Array, Mask

SIGNED: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.int8),
    2: np.dtype(np.int16),
    4: np.dtype(np.int32),
    8: np.dtype(np.int64),
}
MIRRORS: dict[np.dtype[Any], tuple[Any, Any]] = {
    d: (d.type(8 * d.itemsize - 1), d.type(np.iinfo(d).max)) for d in SIGNED.values()
}


def is_float(storage: np.dtype[Any]) -> bool:
    """Return whether a storage dtype is a float, those of ml_dtypes included."""
    return storage.kind in "fV"


def keys(a: Array) -> Array:
    """Return an integer key per element, which grows with the value; neighbours differ by one.

    The key of a NaN lies below that of -inf or above that of inf.
    """
    if a.dtype == np.bool_:
        return a.view(np.uint8)
    if not is_float(a.dtype):
        return a
    return _mirrored(a.view(SIGNED[a.dtype.itemsize]))


def unkeys(k: Array, storage: np.dtype[Any]) -> Array:
    """Return the values with these keys."""
    if storage == np.bool_ or not is_float(storage):
        return k.view(storage)
    return _mirrored(k).view(storage)


def lower(a: Array, b: Array) -> Array:
    """Return the lower of two values in the total order."""
    return unkeys(np.minimum(keys(a), keys(b)), a.dtype)


def upper(a: Array, b: Array) -> Array:
    """Return the upper of two values in the total order."""
    return unkeys(np.maximum(keys(a), keys(b)), a.dtype)


def distance(lo: Array, hi: Array) -> Array:
    """Return the number of values from `lo` up to `hi`, as float64."""
    k_lo, k_hi = keys(lo), keys(hi)
    unsigned = BITS[lo.dtype.itemsize]
    # Modulo 2^n the difference is right even where it leaves the signed range.
    return np.asarray((k_hi.view(unsigned) - k_lo.view(unsigned)).astype(np.float64))


def same_bits(a: Array, b: Array) -> Mask:
    """Return where two arrays of one dtype have the same bits."""
    bits = BITS[a.dtype.itemsize]
    return np.asarray(a.view(bits) == b.view(bits))


def is_nan(a: Array) -> Mask:
    """Return where an array holds a NaN; nowhere for integers and bools."""
    if not is_float(a.dtype):
        return np.zeros(a.shape, np.bool_)
    if a.dtype.itemsize >= 4:
        return np.isnan(a)
    # By bits: ml_dtypes compares through float32, which warns of a signalling NaN.
    form = STORED[a.dtype].format
    last = form.exponent_mask if form.has_inf else form.max_bits
    magnitude = a.view(BITS[a.dtype.itemsize]) & (form.sign_bit - 1)
    return np.asarray(magnitude > last)


def is_signalling(a: Array) -> Mask:
    """Return where an array holds a signalling NaN, which lacks the bit of the quiet ones."""
    bits = BITS[a.dtype.itemsize]
    return np.asarray(is_nan(a) & ((a.view(bits) & _quiet_bit(a.dtype)) == 0))


def quieted(a: Array) -> Array:
    """Return the quiet forms of NaNs, with their signs and payloads."""
    return np.asarray(a.view(BITS[a.dtype.itemsize]) | _quiet_bit(a.dtype)).view(a.dtype)


def _quiet_bit(storage: np.dtype[Any]) -> Any:
    """Return the first bit of the fraction; each NaN of a dtype without infinity has it."""
    form = STORED[storage].format
    return BITS[storage.itemsize].type(1 << (form.fraction_bits - 1))


def contains_negative_zero(lo: Array, hi: Array) -> Mask:
    return np.asarray((keys(lo) <= -1) & (keys(hi) >= -1))


def contains_positive_zero(lo: Array, hi: Array) -> Mask:
    return np.asarray((keys(lo) <= 0) & (keys(hi) >= 0))


def _mirrored(bits: Array) -> Array:
    """Convert sign-magnitude to two's complement or back; -0 is -1."""
    shift, magnitude = MIRRORS[bits.dtype]
    return np.asarray(bits ^ ((bits >> shift) & magnitude))
