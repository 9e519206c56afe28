"""Decide the ends of folds by exact integers, where an approximation does not round for certain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from uop.interpreter.accepted.sets import Sets
from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.enclosure import Magnitude, nearest_bits
from uop.interpreter.numeric.storage import Array, Mask, to_bits
from uop.spec.dtype import DType, FloatFormat

LONGEST = 256
"""The most terms of a fold that is decided; a longer one keeps its outward ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """Folds of single terms along the first axis: their counts, and where all terms are finite."""

    terms: Array
    count: Array
    where: Mask


Limits = Callable[[Array, int, int], tuple[int, int, int]]
"""From finite terms, their number of roundings and p: integers low, high and unit.

The result of the fold lies between low 2^unit and high 2^unit.
"""


def decided(
    dtype: DType, folds: Folded, outward: Sets, below: Array, above: Array, limits: Limits
) -> Sets:
    """Return the sets with exact ends, where bounds that surely lie inside round to other ends.

    `outward` holds the sets so far, `below` and `above` the inner bounds; `limits` computes the
    exact ones.
    """
    if len(folds.terms) > LONGEST or not folds.where.any():
        return outward
    shape = outward.lo.shape
    lo, hi = (np.array(end).reshape(-1) for end in (outward.lo, outward.hi))
    doubt = (lo != round_to(below, dtype).reshape(-1)) | (hi != round_to(above, dtype).reshape(-1))
    doubt &= folds.where.reshape(-1) & np.isfinite(lo) & np.isfinite(hi)
    if not doubt.any():
        return outward
    columns = folds.terms.reshape(len(folds.terms), -1).astype(np.float64)
    counts = np.broadcast_to(folds.count, shape).reshape(-1)
    lo_bits, hi_bits = to_bits(lo), to_bits(hi)
    for k in np.flatnonzero(doubt).tolist():
        *ends, unit = limits(columns[:, k], max(int(counts[k]) - 1, 0), dtype.format.precision)
        bits = [_rounded(end, unit, dtype.format) for end in ends]
        if not any(map(dtype.format.is_nan, bits)):
            lo_bits[k], hi_bits[k] = bits
    return replace(outward, lo=lo.reshape(shape), hi=hi.reshape(shape))


def sum_limits(terms: Array, roundings: int, p: int) -> tuple[int, int, int]:
    """Bound a sum by `roundings` times 2^-p the sum of magnitudes around the exact one."""
    significands, exponents = _integers(terms)
    unit = min((e for m, e in zip(significands, exponents, strict=True) if m), default=0)
    whole = [m << max(e - unit, 0) for m, e in zip(significands, exponents, strict=True)]
    total, error = sum(whole) << p, roundings * sum(map(abs, whole))
    return total - error, total + error, unit - p


def product_limits(factors: Array, roundings: int, p: int) -> tuple[int, int, int]:
    """Bound the magnitude of a product by the factors 2 - (1 + 2^-p)^roundings and its growth.

    The growth is (1 + 2^-p)^roundings; the lower factor is at least 0.
    """
    significands, exponents = _integers(np.abs(factors))
    product, one = prod(significands), 1 << (p * roundings)
    growth = ((1 << p) + 1) ** roundings
    return product * max(2 * one - growth, 0), product * growth, sum(exponents) - p * roundings


def _integers(x: Array) -> tuple[list[int], list[int]]:
    """Return the significands and exponents of floats as integers."""
    significand, exponent = np.frexp(x)
    return np.ldexp(significand, 53).astype(np.int64).tolist(), (exponent - 53).tolist()


def _rounded(whole: int, unit: int, form: FloatFormat) -> int:
    """Return the bits of `whole` times 2^unit, rounded to nearest even."""
    if whole == 0:
        return 0
    finer = 2 * form.precision
    bits = nearest_bits(Magnitude(abs(whole) << finer, unit - finer, exact=True), form)
    return bits | form.sign_bit if whole < 0 else bits
