"""Value classes against what they say, by exact arithmetic on one value after the other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uop.conformance.coverage.value_classes import (
    BIT,
    CLASSES,
    FARTHEST,
    classes_in,
    named,
    possible,
)
from uop.conformance.suite.values import array, special_bits
from uop.spec.dtype import FLOATS, VALUES, DType, Kind, dtypes

EXACT = [d for d in VALUES if d.bits <= 8]
WIDE = [d for d in VALUES if d.bits > 8]


def expected(bits: int, dtype: DType) -> set[str]:
    found = of_float(bits, dtype) if dtype.is_float else of_int(int(dtype.decode(bits)), dtype)
    return found or {"ordinary"}


def of_int(n: int, dtype: DType) -> set[str]:
    if dtype.kind is Kind.BOOL:
        return {"type max" if n else "zero"}
    found = {"zero"} if n == 0 else set()
    found |= {"type max"} if n == dtype.max else set()
    found |= {"type min"} if n == dtype.min < 0 else set()
    found |= {"power"} if abs(n).bit_count() == 1 else set()
    # 1 - 1 is zero alone, and 2^bits is no power that the dtype knows of.
    near = [abs(n) - 1, abs(n) + 1]
    found |= {"beside power"} if n and any(m > 0 and is_power(m, dtype) for m in near) else set()
    found |= (
        {"halfway"}
        if any(abs(n) - (2 << d.format.fraction_bits) in (1, 3) for d in FLOATS)
        else set()
    )
    return found


def is_power(n: int, dtype: DType) -> bool:
    return n.bit_count() == 1 and n.bit_length() <= dtype.bits


def of_float(bits: int, dtype: DType) -> set[str]:
    form = dtype.format
    magnitude = bits & (form.sign_bit - 1)
    if form.is_nan(bits):
        return {"nan"}
    if magnitude == form.inf_bits:
        return {"inf"}
    if magnitude == 0:
        return {"-0" if bits else "zero"}
    x = abs(Fraction(dtype.decode(bits)))
    least = Fraction(2) ** form.emin
    found = {"subnormal"} if x < least else {"smallest normal"} if x == least else set()
    found |= {"largest"} if magnitude == form.max_bits else set()
    found |= {"power"} if x >= least and counts(x) else set()
    if x > least:
        near = [form.finite(magnitude - 1)]
        near += [form.finite(magnitude + 1)] if magnitude < form.max_bits else []
        found |= {"beside power"} if any(map(counts, near)) else set()
    found |= {"halfway"} if x in (Fraction(n, 2) for n in (1, 3, 5, 7)) else set()
    narrower = [d.format.precision for d in FLOATS if d.format.precision < form.precision]
    found |= {"halfway"} if any((x - 1) * 2**p in (1, 3) for p in narrower) else set()
    return found


def counts(x: Fraction) -> bool:
    """A power of two from 2^-64 to 2^64."""
    limit = Fraction(2) ** FARTHEST
    return x.numerator.bit_count() == x.denominator.bit_count() == 1 and 1 / limit <= x <= limit


def found(bits: int, dtype: DType) -> set[str]:
    return set(named(classes_in(array(dtype, [bits]), dtype)))


@pytest.mark.parametrize("dtype", EXACT)
def test_every_pattern_of_a_small_dtype(dtype: DType) -> None:
    patterns = range(2 if dtype is dtypes.bool else 256)
    assert {b: found(b, dtype) for b in patterns} == {b: expected(b, dtype) for b in patterns}


@pytest.mark.parametrize("dtype", WIDE)
def test_special_values_and_their_neighbours(dtype: DType) -> None:
    last = (1 << dtype.bits) - 1
    patterns = {b + n for bits in special_bits(dtype).values() for b in bits for n in (-1, 0, 1)}
    for b in (b for b in patterns if 0 <= b <= last):
        assert found(b, dtype) == expected(b, dtype), hex(b)


@given(st.sampled_from(WIDE), st.data())
def test_any_pattern(dtype: DType, data: st.DataObject) -> None:
    bits = data.draw(st.integers(0, (1 << dtype.bits) - 1))
    assert found(bits, dtype) == expected(bits, dtype)


@pytest.mark.parametrize("dtype", VALUES)
def test_every_possible_class_has_a_special_value(dtype: DType) -> None:
    bits = [b for patterns in special_bits(dtype).values() for b in patterns]
    assert classes_in(array(dtype, bits), dtype) == possible(dtype)


def test_the_classes_of_an_array_are_those_of_its_elements() -> None:
    dtype = dtypes.int16
    table = array(dtype, [0, 3, 17, 0x8000, 0x7FFF, 100])
    each = [classes_in(table[k : k + 1], dtype) for k in range(len(table))]
    assert classes_in(table.reshape(2, 3), dtype) == np.bitwise_or.reduce(each)
    assert classes_in(table.reshape(2, 3)[:, ::2], dtype) == each[0] | each[2] | each[3] | each[5]
    assert classes_in(table[0].reshape(()), dtype) == BIT["zero"]
    assert classes_in(table[:0], dtype) == 0


def test_every_class_is_described() -> None:
    assert set(BIT) == set(CLASSES)
    assert all(CLASSES.values())
