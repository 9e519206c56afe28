"""Special values are what their classes say, by an independent reading of the bits."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from uop.conformance.suite import values
from uop.conformance.suite.choices import words
from uop.interpreter.numeric.storage import np_dtype, to_bits
from uop.spec.dtype import DTYPES, FLOATS, INTS, VALUES, DType, dtypes

EACH = pytest.mark.parametrize("dtype", VALUES, ids=lambda d: d.name)
EACH_FLOAT = pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
EACH_INT = pytest.mark.parametrize("dtype", INTS, ids=lambda d: d.name)


@EACH
def test_specials_are_distinct_patterns_in_storage_dtype(dtype: DType) -> None:
    table = values.specials(dtype)
    assert table.dtype == np_dtype(dtype)
    assert len(set(to_bits(table).tolist())) == len(table)


@EACH_FLOAT
def test_the_classes_of_a_float_hold_what_they_say(dtype: DType) -> None:
    numbers = {
        name: [dtype.decode(b) for b in bits] for name, bits in values.special_bits(dtype).items()
    }
    smallest = float(dtype.format.finite(1))
    assert [math.copysign(1, z) for z in numbers["zeros"]] == [1, -1]
    assert not any(numbers["zeros"])
    assert set(numbers["ones"]) == {1.0, -1.0}
    assert all(map(math.isnan, numbers["nans"]))
    assert {smallest, -smallest} <= set(numbers["subnormals"])
    assert all(0 < abs(x) < 2.0**dtype.format.emin for x in numbers["subnormals"])
    assert set(numbers.get("infinities", ())) == (
        {math.inf, -math.inf} if dtype.format.has_inf else set()
    )
    for name in ("bounds", "halfway", "powers", "ordinary"):
        assert all(map(math.isfinite, numbers[name])), name


def test_float32_bounds_and_ties_by_struct() -> None:
    held = set(to_bits(values.specials(dtypes.float32)).tolist())
    tie_of_bfloat16, tie_of_float16, overflow_of_float16 = 1 + 2**-8, 1 + 2**-11, 65520.0
    for number in (
        3.4028234663852886e38,
        1.1754943508222875e-38,
        tie_of_bfloat16,
        tie_of_float16,
        overflow_of_float16,
        464.0,
        0.5,
        2.5,
        2.0**31,
        -(2.0**63),
    ):
        assert struct.unpack("<I", struct.pack("<f", number))[0] in held, number
    assert {0x7F800001, 0x7FC00000, 0xFFC00000, 0x7FFFFFFF} <= held


@EACH_INT
def test_the_classes_of_an_integer_hold_bounds_and_powers(dtype: DType) -> None:
    held = set(values.specials(dtype).tolist())
    low, high = int(dtype.min), int(dtype.max)
    assert {0, 1, low, high, low + 1, high - 1, 2, 3} <= held
    for k in (1, 4, 7):
        assert {n for n in (2**k - 1, 2**k, 2**k + 1) if n <= high} <= held
    if dtype.bits >= 32:
        assert {2**24 + 1, 2**24 + 3} <= held, "halfway between two float32"
    if dtype.bits == 64:
        assert {2**53 + 1, 2**53 + 3} <= held, "halfway between two float64"


def test_index_data_stays_small() -> None:
    for draw in (values.draw_special, values.draw_bits, values.draw_mixed):
        assert np.abs(draw(dtypes.index, 500, 3)).max() <= values.INDEX_LIMIT


@EACH
def test_draws_are_functions_of_their_key(dtype: DType) -> None:
    for draw in (
        values.draw_special,
        values.draw_ordinary,
        values.draw_positive,
        values.draw_bits,
        values.draw_mixed,
    ):
        one, same, other = (to_bits(draw(dtype, 64, key)) for key in (7, 7, 8))
        assert one.dtype == to_bits(values.specials(dtype)).dtype
        np.testing.assert_array_equal(one, same)
        assert (one != other).any()


@EACH_FLOAT
def test_ordinary_floats_are_moderate(dtype: DType) -> None:
    magnitudes = np.abs(values.draw_ordinary(dtype, 400, 1).astype(np.float64))
    assert magnitudes.min() >= 2.0**-4
    assert magnitudes.max() < 2.0**4


def test_positive_values_are_positive() -> None:
    for dtype in (*FLOATS, *INTS):
        assert (values.draw_positive(dtype, 300, 5) > 0).all(), dtype


def test_within_keeps_both_ends() -> None:
    drawn = values.draw_within(-3, 4)(dtypes.int8, 500, 2)
    assert set(drawn.tolist()) == set(range(-3, 5))


def test_products_hold_every_combination_once() -> None:
    left, right = values.products(np.array([1, 2, 3]), np.array([10, 20]))
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    assert pairs == [(1, 10), (1, 20), (2, 10), (2, 20), (3, 10), (3, 20)]


def test_every_pattern_is_there_once() -> None:
    for name in ("uint8", "fp8e4m3", "bfloat16", "bool"):
        patterns = to_bits(values.every_pattern(DTYPES[name]))
        assert patterns.tolist() == list(range(len(patterns)))


def test_words_are_pinned() -> None:
    """A change here changes every case of every seed."""
    assert [f"{w:016x}" for w in words(1, 2).tolist()] == WORDS_OF_KEY_1


WORDS_OF_KEY_1 = ["f501c98ffdaad99f", "30d6c26882de8500"]
