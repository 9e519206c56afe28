"""Compute EXP2, LOG2, SIN and POW correctly rounded: by approximation, or by enclosure.

An approximation decides a result if both ends of its error interval round to the same value. The
other elements, one in thousands for float32 and a few in a hundred for float64, are computed
exactly or enclosed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.enclosure import magnitude, nearest_bits, units
from uop.interpreter.numeric.storage import BITS, Array, Mask, from_bits, to_bits
from uop.spec.dtype import DType
from uop.spec.ops.names import Op

# The libraries that numpy calls document errors of a few ulps (2^-52 in float64,
# 2^-63 in the x87 format). These intervals are wider, and leave a few more elements to them.
FLOAT64_ERROR = 2.0**-40
EXTENDED_ERROR = 2.0**-59
HAS_EXTENDED = np.finfo(np.longdouble).nmant in (63, 112)

EVEN = 2.0**62
"""Every float from here on is an even integer."""


def power(x: Array, y: Array) -> Array:
    """Compute np.power, with corrections.

    In the x87 format numpy gives inf for -inf to the -2^63, not 0. For a single exponent of 1/2 it
    takes the square root, which differs at -0 and -inf. For a signalling NaN it gives NaN on some
    processors where a quiet one gives 1.
    """
    x, y = (np.where(np.isnan(operand), np.nan, operand) for operand in (x, y))
    infinite = np.isinf(x)
    if infinite.any():
        y = np.where(infinite, np.clip(y, -EVEN, EVEN), y)
    half = (y == 0.5) & (infinite | (x == 0))
    return np.where(half, np.abs(x), np.power(x, y))


APPROXIMATIONS: dict[Op, Callable[..., Array]] = {
    Op.EXP2: np.exp2,
    Op.LOG2: np.log2,
    Op.SIN: np.sin,
    Op.POW: power,
}


def rounded(op: Op, dtype: DType, *operands: Array) -> Array:
    """Compute the real function of an op, rounded once to nearest even.

    Special cases are those of IEEE 754-2019.
    """
    if dtype.bits * len(operands) > 16:
        return _computed(op, dtype, *operands)
    pattern = to_bits(operands[0])
    for operand in operands[1:]:
        pattern = (pattern.astype(np.uint16) << np.uint16(dtype.bits)) | to_bits(operand)
    return _table(op, dtype, len(operands))[pattern]


@cache
def _table(op: Op, dtype: DType, arity: int) -> Array:
    """Return the results for all operands, indexed by the operands' bits, the first one highest."""
    patterns = np.arange(1 << (dtype.bits * arity), dtype=np.uint32)
    shifts = range(dtype.bits * (arity - 1), -1, -dtype.bits)
    mask, storage = (1 << dtype.bits) - 1, BITS[dtype.itemsize]
    operands = (((patterns >> shift) & mask).astype(storage) for shift in shifts)
    return _computed(op, dtype, *(from_bits(operand, dtype) for operand in operands))


def _computed(op: Op, dtype: DType, *operands: Array) -> Array:
    wide: type[np.floating[Any]] = np.float64 if dtype.bits < 64 else np.longdouble
    if wide is np.longdouble and not HAS_EXTENDED:
        return _by_enclosure(op, dtype, *operands)
    error = wide(FLOAT64_ERROR if dtype.bits < 64 else EXTENDED_ERROR)
    near = np.asarray(APPROXIMATIONS[op](*(operand.astype(wide) for operand in operands)))
    low = to_bits(_narrowed(np.asarray(near * (1 - error)), dtype))
    high = to_bits(_narrowed(np.asarray(near * (1 + error)), dtype))
    undecided = np.not_equal(low, high)
    return from_bits(_refined(op, dtype, near, low, undecided, *operands), dtype)


def _by_enclosure(op: Op, dtype: DType, *operands: Array) -> Array:
    """Compute without a wider format: numpy gives the special cases, enclosures all others."""
    library = np.asarray(APPROXIMATIONS[op](*operands))
    ordinary = ~np.isnan(library)
    for operand in operands:
        ordinary &= np.isfinite(operand) & (operand != 0)
    bits = _refined(op, dtype, library, to_bits(library), ordinary, *operands)
    return from_bits(bits, dtype)


def _refined(
    op: Op, dtype: DType, near: Array, bits: Array, undecided: Mask, *operands: Array
) -> Array:
    if not undecided.any():
        return bits
    exact, form = np.array(bits), dtype.format
    spread = (np.broadcast_to(x.astype(np.float64), exact.shape)[undecided] for x in operands)
    points = list(zip(*(x.tolist() for x in spread), strict=True))
    at = dict(zip(points, units(near[undecided], dtype).tolist(), strict=True))
    magnitudes = {p: nearest_bits(magnitude(op, p, unit), form) for p, unit in at.items()}
    zero, minus = (bits.dtype.type(sign) for sign in (0, form.sign_bit))
    sign = np.where(np.signbit(near[undecided]), minus, zero)
    exact[undecided] = np.array([magnitudes[p] for p in points], bits.dtype) | sign
    return exact


def _narrowed(wide: Array, dtype: DType) -> Array:
    return wide.astype(np.float64) if dtype.bits == 64 else round_to(wide, dtype)
