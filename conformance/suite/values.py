"""Generate input data: the special values of each dtype by class, and random arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from random import Random

import numpy as np

from uop.conformance.suite.choices import Choices, Words, words
from uop.interpreter.numeric.storage import BITS, Array, from_bits, np_dtype
from uop.spec.dtype import FLOATS, DType, FloatFormat, Kind, dtypes, floor_log2
from uop.spec.ops.names import Op
from uop.spec.registry import Shape

INDEX_LIMIT = 1 << 20
"""The bound of index data, so that sums and products of a few stay inside 64 bits."""


@cache
def specials(dtype: DType) -> Array:
    """Return every special value once, class after class, as a read-only array."""
    table = array(dtype, (b for bits in special_bits(dtype).values() for b in bits))
    table.flags.writeable = False
    return table


def sharpest(dtype: DType, most: int | None) -> Array:
    """Return the first `most` of each class: few enough for all pairs (8) or all triples (2).

    None is all of them.
    """
    return array(dtype, (b for bits in special_bits(dtype).values() for b in bits[:most]))


CROSSED = (
    *(("zeros", 2), ("ones", 2), ("nans", 1), ("infinities", 1), ("halfway", 1)),
    *(("subnormals", 1), ("bounds", 2), ("stripes", 1), ("powers", 1), ("ordinary", 2)),
)
"""The classes of crossed values, and how many of each at most."""
MOST_CROSSED = 8


def crossed(dtype: DType) -> list[Array]:
    """Return two columns that hold all pairs of a few special values."""
    classes = special_bits(dtype)
    few = [b for name, most in CROSSED for b in classes.get(name, ())[:most]][:MOST_CROSSED]
    return products(*2 * [array(dtype, few)])


@cache
def special_bits(dtype: DType) -> dict[str, tuple[int, ...]]:
    """Return the bit patterns of the special values by class; no pattern is in two classes."""
    if dtype.kind is Kind.BOOL:
        classes = {"zeros": [0], "ones": [1]}
    elif dtype.is_float:
        classes = _float_classes(dtype)
    else:
        classes = _integer_classes(dtype)
    seen: set[int] = set()
    distinct: dict[str, tuple[int, ...]] = {}
    for name, patterns in classes.items():
        added = tuple(dict.fromkeys(b for b in patterns if b not in seen))
        seen.update(added)
        if added:
            distinct[name] = added
    return distinct


def array(dtype: DType, bits: Iterable[int]) -> Array:
    """Return an array in storage dtype of these bit patterns."""
    return from_bits(np.array(list(bits), dtype=BITS[dtype.itemsize]), dtype)


def products(*columns: Array) -> list[Array]:
    """Return one array per column, together every combination once, the last column fastest."""
    grids = np.meshgrid(*(np.arange(len(c)) for c in columns), indexing="ij")
    return [c[grid.reshape(-1)] for c, grid in zip(columns, grids, strict=True)]


def every_pattern(dtype: DType) -> Array:
    """Return all values of a dtype of at most 16 bits, in the order of their bits."""
    return array(dtype, range(2 if dtype.kind is Kind.BOOL else 1 << dtype.bits))


Draw = Callable[[DType, int, int], Array]
"""Returns n random values from (dtype, n, key); the same key gives the same values."""


def sample(draw: Draw, dtype: DType, shape: Shape | int, choices: Choices) -> Array:
    """Return a random array of a shape, or of so many elements."""
    shape = (shape,) if isinstance(shape, int) else shape
    return draw(dtype, prod(shape), choices.data_key()).reshape(shape)


def draw_special(dtype: DType, n: int, key: int) -> Array:
    """Return special values only."""
    table = specials(dtype)
    return table[_positions(words(key, n), len(table))]


def draw_ordinary(dtype: DType, n: int, key: int) -> Array:
    """Return moderate values of both signs; half of the floats have few bits, for ties."""
    return _ordinary(dtype, words(key, n))


def draw_positive(dtype: DType, n: int, key: int) -> Array:
    """Return ordinary values above zero."""
    data = np.abs(_ordinary(dtype, words(key, n)))
    return (
        data if dtype.is_float or dtype.kind is Kind.BOOL else np.maximum(data, data.dtype.type(1))
    )


def draw_bits(dtype: DType, n: int, key: int) -> Array:
    """Return any bit patterns, all equally often."""
    if dtype.kind in (Kind.BOOL, Kind.INDEX):
        return _ordinary(dtype, words(key, n))
    return from_bits(words(key, n).astype(BITS[dtype.itemsize]), dtype)


def draw_mixed(dtype: DType, n: int, key: int) -> Array:
    """Return ordinary values, one in four of any bits and one in eight special."""
    raw = words(key, 2 * n)
    ordinary, kind = _ordinary(dtype, raw[:n]), raw[n:] & np.uint64(7)
    if dtype.kind is Kind.BOOL:
        return ordinary
    table = specials(dtype)
    special = table[_positions(raw[:n], len(table))]
    any_bits = raw[:n].astype(BITS[dtype.itemsize]).view(ordinary.dtype)
    if dtype.kind is Kind.INDEX:
        any_bits = ordinary
    return np.where(kind == 0, special, np.where(kind < 3, any_bits, ordinary))


def draw_within(low: int, high: int) -> Draw:
    """Return a draw of integers of low..high, both included."""

    def draw(dtype: DType, n: int, key: int) -> Array:
        steps = (words(key, n) >> np.uint64(11)) % np.uint64(high - low + 1)
        return (steps.astype(np.int64) + low).astype(np_dtype(dtype))

    return draw


def _positions(raw: Words, size: int) -> Array:
    return ((raw >> np.uint64(32)) % np.uint64(size)).astype(np.intp)


def _ordinary(dtype: DType, raw: Words) -> Array:
    if dtype.kind is Kind.BOOL:
        return (raw & np.uint64(1)).astype(np.bool_)
    if dtype.is_float:
        return _ordinary_floats(dtype, raw)
    low = -32 if dtype.is_signed else 0
    return ((raw >> np.uint64(57)).astype(np.int64) + low).astype(np_dtype(dtype))


def _ordinary_floats(dtype: DType, raw: Words) -> Array:
    """Return floats of exponents -4..3, as far as there are; half have a fraction of two bits."""
    form = dtype.format
    u = np.uint64
    sign = (raw & u(1)) << u(dtype.bits - 1)
    field = np.maximum(((raw >> u(1)) & u(7)) + u(form.bias), u(4)) - u(4)
    exponent = field << u(form.fraction_bits)
    fraction = (raw >> u(8)) & u(form.fraction_mask)
    top = u(form.fraction_mask & ~(form.fraction_mask >> 2))
    fraction = np.where((raw >> u(4)) & u(1) == 0, fraction & top, fraction)
    return from_bits((sign | exponent | fraction).astype(BITS[dtype.itemsize]), dtype)


# The classes.


def bounds(dtype: DType) -> tuple[int, int]:
    """Return the lowest and the highest integer that data of a dtype has."""
    if dtype.kind is Kind.INDEX:
        return -INDEX_LIMIT, INDEX_LIMIT
    return int(dtype.min), int(dtype.max)


def _integer_classes(dtype: DType) -> dict[str, list[int]]:
    low, high = bounds(dtype)
    exponents = [k for k in (1, 2, 4, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63) if k < dtype.bits]
    powers = [s * ((1 << k) + d) for k in exponents for s, d in product((1, -1), (-1, 0, 1))]
    # Integers halfway between two floats of p significant bits, below an odd and an even one.
    ties = [s * ((1 << p) + d) for p in (4, 8, 11, 24, 53) for s, d in product((1, -1), (1, 3))]
    stripes = [0x5555555555555555, 0xAAAAAAAAAAAAAAAA]
    mask = (1 << dtype.bits) - 1
    classes = {
        "zeros": [0],
        "ones": [1, -1],
        "bounds": [low, high, low + 1, high - 1],
        "ordinary": [3, 10, -7, 100, -100],
        "halfway": ties,
        "powers": powers,
    }
    bits = {name: [v & mask for v in vs if low <= v <= high] for name, vs in classes.items()}
    if dtype.kind is not Kind.INDEX:
        bits["stripes"] = [s & mask for s in stripes]
    return bits


def _float_classes(dtype: DType) -> dict[str, list[int]]:
    form = dtype.format
    least_normal = 1 << form.fraction_bits
    positive = {
        "zeros": [0],
        "ones": [dtype.encode(1)],
        "infinities": [] if form.inf_bits is None else [form.inf_bits],
        "nans": _nans(form),
        "bounds": [form.max_bits, least_normal, form.max_bits - 1, least_normal + 1],
        "subnormals": [1, least_normal - 1, 2, least_normal >> 1],
        "halfway": _exact(dtype, _float_ties(dtype)),
        "powers": [
            ((k + form.bias) << form.fraction_bits) + step
            for k in _float_exponents(form)
            for step in (0, -1, 1)
        ],
        "ordinary": [
            dtype.encode(v) for v in (Fraction(3), Fraction(1, 3), Fraction(31, 10), Fraction(10))
        ],
    }
    return {
        name: [b | sign for b in bits for sign in (0, form.sign_bit)]
        for name, bits in positive.items()
    }


def _nans(form: FloatFormat) -> list[int]:
    """Return the default NaN, the least payload (signalling), and the largest."""
    if not form.has_inf:
        return [form.nan_bits]
    infinity = form.exponent_mask
    return [form.nan_bits, infinity | 1, infinity | form.fraction_mask]


def _float_exponents(form: FloatFormat) -> list[int]:
    """Return the exponents where halves, the significand or an integer dtype end, and others."""
    wanted = (-1, 1, form.precision - 1, form.precision, 7, 8, 15, 16, 31, 32, 63, 64)
    highest = form.max_bits >> form.fraction_bits
    return [k for k in wanted if k + form.bias < highest]


def _float_ties(dtype: DType) -> list[Fraction]:
    """Return halves, which TRUNC and CAST drop, and ties between values of narrower floats."""
    ties = [Fraction(1, 2), Fraction(3, 2), Fraction(5, 2), Fraction(9, 10)]
    for narrow in FLOATS:
        form = narrow.format
        if form.fraction_bits >= dtype.format.fraction_bits:
            continue
        step = Fraction(2) ** -form.fraction_bits
        largest = form.finite(form.max_bits)
        last = largest - form.finite(form.max_bits - 1)
        least = form.finite(1)
        ties += [1 + step / 2, 1 + step * 3 / 2, largest + last / 2, least / 2, least * 3 / 2]
    return ties


def _exact(dtype: DType, values: Iterable[Fraction]) -> list[int]:
    """Return the bits of those values that the dtype holds, and of 9/10 rounded."""
    rounded = [(v, dtype.encode(v)) for v in values]
    return [b for v, b in rounded if v == Fraction(9, 10) or dtype.decode(b) == v]


# Boundaries: where rounding changes direction, and where floats end.


PAIRS = 64
"""The pairs of operands whose results are close to a boundary."""


@cache
def around_ties(source: DType, target: DType) -> Array:
    """Return values halfway between two of a float dtype, their neighbours, and values between.

    A conversion that rounds twice, first to another float, takes one of those for the middle. The
    result is empty where the target is no float, or as fine as the source.
    """
    ties = _ties(source, target) if target.is_float and source is not dtypes.bool else ()
    return array(source, dict.fromkeys(bits for tie in ties for bits in _next_to(source, tie)))


def _ties(source: DType, target: DType) -> Iterator[Fraction]:
    """Yield ties below odd and even significands, small and large, and where floats end."""
    form = target.format
    highest = form.max_bits >> form.fraction_bits
    ends = (p for d in FLOATS for p in (d.format.precision, d.format.precision + 1))
    for power in sorted({0, 5, *ends, source.bits - 2, source.bits - 1}):
        if power + form.bias <= highest:
            step = Fraction(2) ** (power - form.fraction_bits)
            yield from (2**power + step / 2, 2**power + step * 3 / 2)
    largest = form.finite(form.max_bits)
    yield largest + (largest - form.finite(form.max_bits - 1)) / 2
    yield from (form.finite(1) / 2, form.finite(1) * 3 / 2)


def _next_to(dtype: DType, tie: Fraction) -> Iterator[int]:
    """Yield the bits of a value, its neighbours and their negatives; none between values."""
    if dtype.is_float:
        form, bits = dtype.format, dtype.encode(tie)
        if bits <= form.max_bits and form.finite(bits) == tie:
            for b in (bits, bits - 1, min(bits + 1, form.max_bits)):
                yield from (b, b | form.sign_bit)
    elif tie.denominator == 1:
        low, high = bounds(dtype)
        # A bit that is neither the last one nor next to the tie.
        between = 1 << int(tie).bit_length() // 2
        steps = (-between, -1, 0, 1, between)
        near = (sign * (tie + step) for step in steps for sign in (1, -1))
        yield from (dtype.encode(value) for value in near if low <= value <= high)


@cache
def close_to_bounds(op: Op, dtype: DType) -> tuple[Array, Array]:
    """Return operands whose exact result is close to the end of the floats, above or below it."""
    form, random = dtype.format, Random(f"{op.name} {dtype.name}")
    largest, least_normal = form.finite(form.max_bits), form.finite(1 << form.fraction_bits)
    beyond = largest + (largest - form.finite(form.max_bits - 1)) / 2
    edges = (beyond, beyond, least_normal, form.finite(1) / 2, form.finite(1) * 3 / 2)
    pairs: list[tuple[int, int]] = []
    for k in range(PAIRS):
        edge = edges[k % len(edges)]
        near = edge * (1 + Fraction(random.randrange(-99, 100), 200 << form.fraction_bits))
        # A sum is near the end with the largest value, a product or quotient with about its root.
        part = 1 + Fraction(random.getrandbits(53), 1 << 53)
        wanted = (
            min(largest, near)
            if op in (Op.ADD, Op.SUB)
            else part * Fraction(2) ** (floor_log2(near) // 2)
        )
        first = form.finite(dtype.encode(wanted))
        pairs.append((dtype.encode(first), dtype.encode(SECOND[op](near, first))))
    left, right = zip(*pairs, strict=True)
    return array(dtype, left), array(dtype, right)


SECOND: dict[Op, Callable[[Fraction, Fraction], Fraction]] = {
    Op.ADD: lambda bound, first: bound - first,
    Op.SUB: lambda bound, first: first - bound,
    Op.MUL: lambda bound, first: bound / first,
    Op.DIV: lambda bound, first: first / bound,
}
"""The operand, by op, that gives the bound together with the first one."""
