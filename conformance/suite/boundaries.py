"""Generate data next to the points where rounding changes direction, and where floats end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from random import Random

from uop.conformance.suite.values import array, bounds
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import FLOATS, DType, dtypes, floor_log2
from uop.spec.ops.names import Op

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
