"""Computes the value classes of an array in one pass over its bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache, reduce
from operator import or_

import numpy as np

from uop.interpreter.numeric.storage import BITS, STORED, Array, to_bits
from uop.spec.dtype import FLOATS, DType, Kind

CLASSES = {
    "zero": "0, of a float +0",
    "-0": "the negative zero of a float",
    "subnormal": "below the smallest normal value of a float",
    "smallest normal": "of a float, of either sign",
    "ordinary": "in no other class",
    "power": "2^k of either sign, of a float with k from -64 to 64",
    "beside power": "next to a power: 2^k +- 1, of a float its neighbours",
    "halfway": "between two integers below 4, or just above 2^k between two values of a float",
    "largest": "the largest finite value of a float, of either sign",
    "inf": "of either sign",
    "nan": "any NaN",
    "type min": "the least value of a signed int",
    "type max": "the largest value of an int; true",
}
"""The classes with descriptions; a value may be in several."""
BIT = {name: 1 << k for k, name in enumerate(CLASSES)}
"""The bit of each class in a set of classes."""
SPECIAL = sum(
    BIT[name] for name in ("-0", "subnormal", "largest", "inf", "nan", "type min", "type max")
)
"""The classes of values that programs in practice seldom have."""
FARTHEST = 64
"""The class of powers covers 2^-64 to 2^64."""
SMALL = 16
"""Dtypes of at most this many bits have a table of all bit patterns."""
MOST = 1 << 14
HALVES = tuple(Fraction(2 * n + 1, 2) for n in range(4))

Range = tuple[str, int, int]
"""A class and its first and last bit pattern."""


def classes_in(a: Array, dtype: DType) -> int:
    """The classes of the elements of an array in storage dtype, as a bit mask (`BIT`).

    For dtypes of more than 16 bits only the first 16,384 elements are read.
    """
    read = a if dtype.bits <= SMALL else a.reshape(-1)[:MOST]
    return int(np.bitwise_or.reduce(classes_of(read, dtype).reshape(-1), initial=0))


def special_in(arrays: Iterable[Array]) -> int:
    """The special classes of the elements of some arrays, as a bit mask."""
    return reduce(or_, (classes_in(a, STORED[a.dtype]) for a in arrays), 0) & SPECIAL


def classes_of(a: Array, dtype: DType) -> Array:
    """The classes of each element of an array in storage dtype, as bit masks."""
    bits = to_bits(a)
    if dtype.bits <= SMALL:
        return _by_pattern(dtype)[bits]
    starts, sets = _table(dtype)
    return sets[np.searchsorted(starts, bits, "right") - 1]


@cache
def possible(dtype: DType) -> int:
    """The classes that data of a dtype can have. Indices never reach the limits of 64 bits."""
    every = int(np.bitwise_or.reduce(_table(dtype)[1]))
    if dtype.kind is Kind.INDEX:
        return every & ~(BIT["type min"] | BIT["type max"])
    return every


def named(classes: int) -> list[str]:
    """The names of a set of classes."""
    return [name for name, bit in BIT.items() if classes & bit]


@cache
def _by_pattern(dtype: DType) -> Array:
    """The classes of each bit pattern of a small dtype."""
    starts, sets = _table(dtype)
    patterns = np.arange(1 << 8 * dtype.itemsize)
    return sets[np.searchsorted(starts, patterns, "right") - 1]


@cache
def _table(dtype: DType) -> tuple[Array, Array]:
    """The starts of runs of bit patterns with equal classes, ascending, and the classes."""
    ranges = list(_of_float(dtype) if dtype.is_float else _of_int(dtype))
    last = 1 if dtype.kind is Kind.BOOL else (1 << dtype.bits) - 1
    bounds = {0} | {b for _, low, high in ranges for b in (low, high + 1) if b <= last}
    starts = np.array(sorted(bounds), BITS[dtype.itemsize])
    sets = np.zeros(len(starts), np.int16)
    for name, low, high in ranges:
        # Use the dtype of `starts`: with Python ints searchsorted would convert the values.
        first, behind = np.searchsorted(starts, np.array([low, high], starts.dtype), "right")
        sets[first - 1 : behind] |= BIT[name]
    sets[sets == 0] = BIT["ordinary"]
    return starts, sets


def _of_float(dtype: DType) -> Iterator[Range]:
    form = dtype.format
    yield "zero", 0, 0
    yield "-0", form.sign_bit, form.sign_bit
    for name, low, high in _magnitudes(dtype):
        for sign in (0, form.sign_bit):
            yield name, low | sign, high | sign


def _magnitudes(dtype: DType) -> Iterator[Range]:
    """The classes of floats, by their bits without the sign."""
    form = dtype.format
    normal = 1 << form.fraction_bits
    yield "subnormal", 1, normal - 1
    yield "smallest normal", normal, normal
    yield "largest", form.max_bits, form.max_bits
    if form.inf_bits is not None:
        yield "inf", form.inf_bits, form.inf_bits
        yield "nan", form.inf_bits + 1, form.sign_bit - 1
    else:
        yield "nan", form.nan_bits, form.nan_bits
    for k in range(max(form.emin, -FARTHEST), FARTHEST + 1):
        bits = (k + form.bias) * normal
        if bits > form.max_bits:
            break
        yield "power", bits, bits
        for beside in (bits - 1, bits + 1):
            if normal < beside <= form.max_bits:
                yield "beside power", beside, beside
    narrower = [d.format.precision for d in FLOATS if d.format.precision < form.precision]
    above = [1 + Fraction(n, 1 << p) for p in narrower for n in (1, 3)]
    for value in (*HALVES, *above):
        bits = dtype.encode(value)
        if dtype.decode(bits) == value:
            yield "halfway", bits, bits


def _of_int(dtype: DType) -> Iterator[Range]:
    for name, value in _numbers(dtype):
        if dtype.min <= value <= dtype.max:
            bits = value & ((1 << dtype.bits) - 1)
            yield name, bits, bits


def _numbers(dtype: DType) -> Iterator[tuple[str, int]]:
    """The classes of integers, by value; some values may be outside the dtype."""
    yield "zero", 0
    yield "type max", int(dtype.max)
    if dtype.kind is Kind.BOOL:
        return
    if dtype.min < 0:
        yield "type min", int(dtype.min)
    for sign in (1, -1):
        for k in range(dtype.bits):
            yield "power", sign << k
            yield from (("beside power", sign * (1 << k) + n) for n in (-1, 1) if k or n == sign)
        for form in FLOATS:
            middle = 1 << form.format.precision
            yield from (("halfway", sign * (middle + n)) for n in (1, 3))
