"""Encode and decode of every dtype against struct, ml_dtypes and hand-made vectors."""

from __future__ import annotations

import copy
import math
import pickle
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uop.spec.dtype import (
    DTYPES,
    FLOATS,
    INTS,
    NUMBERS,
    VALUES,
    DType,
    FloatFormat,
    Kind,
    dtypes,
    floor_log2,
)

STRUCT_CODES = {"float16": "eH", "float32": "fI", "float64": "dQ"}
NARROW = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "fp8e4m3": ml_dtypes.float8_e4m3fn,
    "fp8e5m2": ml_dtypes.float8_e5m2,
}


def same(a: float, b: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b and math.copysign(1, a) == math.copysign(1, b)


def test_the_names_are_those_of_the_language() -> None:
    integers = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    floats = ["float16", "bfloat16", "float32", "float64", "fp8e4m3", "fp8e5m2"]
    assert list(DTYPES) == ["bool", *integers, *floats, "index", "void"]


def test_groups_of_dtypes_keep_their_order() -> None:
    names = list(DTYPES)
    assert [d.name for d in VALUES] == names[:-1]
    assert [d.name for d in NUMBERS] == names[1:-1]
    assert [d.name for d in (*INTS, *FLOATS)] == names[1:-2]
    assert (len(INTS), INTS[0], INTS[:2]) == (8, dtypes.int8, (dtypes.int8, dtypes.int16))
    assert (dtypes.bool in VALUES, dtypes.void in VALUES, "int8" in VALUES) == (True, False, False)


@pytest.mark.parametrize("name", NARROW)
def test_decode_of_every_narrow_float_agrees_with_its_storage(name: str) -> None:
    dtype = DTYPES[name]
    patterns = np.arange(1 << dtype.bits, dtype=f"u{dtype.itemsize}")
    with np.errstate(all="ignore"):
        stored = patterns.view(NARROW[name]).astype(np.float64).tolist()
    assert all(same(dtype.decode(bits), stored[bits]) for bits in range(1 << dtype.bits))


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 16], ids=repr)
def test_encode_inverts_decode_of_every_narrow_float(dtype: DType) -> None:
    form = dtype.format
    assert all(dtype.encode(dtype.decode(bits)) == bits for bits in range(form.max_bits + 1))
    for bits in (*range(0, form.max_bits, 37), form.max_bits, form.inf_bits or 0):
        assert dtype.encode(dtype.decode(bits | form.sign_bit)) == bits | form.sign_bit


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 16], ids=repr)
def test_halfway_values_go_to_the_even_pattern_and_others_to_the_nearer(dtype: DType) -> None:
    form = dtype.format
    little = Fraction(1, 1 << 200)
    for low in range(0, form.max_bits, 1 if dtype.bits == 8 else 37):
        middle = (form.finite(low) + form.finite(low + 1)) / 2
        assert dtype.encode(middle) == low + low % 2
        assert dtype.encode(-middle) == (low + low % 2) | form.sign_bit
        assert dtype.encode(middle - little) == low
        assert dtype.encode(middle + little) == low + 1


@pytest.mark.parametrize("name", STRUCT_CODES)
@given(data=st.data())
def test_wide_floats_agree_with_struct(name: str, data: st.DataObject) -> None:
    dtype, (real, unsigned) = DTYPES[name], STRUCT_CODES[name]
    bits = data.draw(st.integers(0, (1 << dtype.bits) - 1))
    (value,) = struct.unpack(real, struct.pack(unsigned, bits))
    assert same(dtype.decode(bits), value)
    if not math.isnan(value):
        assert dtype.encode(value) == bits


@given(st.floats(allow_nan=False))
def test_rounding_a_float64_to_float32_agrees_with_the_hardware(value: float) -> None:
    with np.errstate(all="ignore"):
        expected = np.float64(value).astype(np.float32).view(np.uint32)
    assert dtypes.float32.encode(value) == expected


@pytest.mark.parametrize(
    ("dtype", "value", "bits"),
    [
        (dtypes.bool, True, 1),
        (dtypes.int8, -1, 0xFF),
        (dtypes.int64, -(1 << 63), 1 << 63),
        (dtypes.index, -1, (1 << 64) - 1),
        (dtypes.uint8, 255, 0xFF),
        (dtypes.float32, -0.0, 0x80000000),
        (dtypes.float32, math.nan, 0x7FC00000),
        (dtypes.float16, 65519, 0x7BFF),
        (dtypes.float16, 65520, 0x7C00),
        (dtypes.float16, -65520, 0xFC00),
        (dtypes.float16, Fraction(1, 1 << 25), 0),
        (dtypes.float16, Fraction(1, 1 << 25) + Fraction(1, 1 << 99), 1),
        (dtypes.bfloat16, 1 + 2**-8 + 2**-40, 0x3F81),
        (dtypes.fp8e4m3, 464, 0x7E),
        (dtypes.fp8e4m3, 465, 0x7F),
        (dtypes.fp8e4m3, -math.inf, 0xFF),
        (dtypes.fp8e5m2, 61439, 0x7B),
        (dtypes.fp8e5m2, 61440, 0x7C),
        (dtypes.float64, (1 << 53) + 1, 0x4340000000000000),
        (dtypes.float64, Fraction(1, 10), 0x3FB999999999999A),
    ],
)
def test_encode_vectors(dtype: DType, value: bool | int | float | Fraction, bits: int) -> None:
    assert dtype.encode(value) == bits


@pytest.mark.parametrize("dtype", [*INTS, dtypes.bool, dtypes.index], ids=repr)
def test_integers_encode_within_their_range_only(dtype: DType) -> None:
    for value in {int(dtype.min), int(dtype.min) + 1, 0, 1, int(dtype.max)}:
        assert dtype.decode(dtype.encode(value)) == value
    for value in (int(dtype.min) - 1, int(dtype.max) + 1, 0.5, math.nan, math.inf):
        with pytest.raises(ValueError, match=dtype.name):
            dtype.encode(value)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=repr)
def test_a_pattern_too_wide_is_refused(dtype: DType) -> None:
    for bits in (1 << dtype.bits, -1):
        with pytest.raises(ValueError, match=f"no bit pattern of {dtype.name}"):
            dtype.decode(bits)


def test_a_name_belongs_to_one_dtype() -> None:
    with pytest.raises(ValueError, match="there is a dtype float32"):
        DType("float32", Kind.FLOAT, 32, FloatFormat(8, 23))
    assert DTYPES["float32"] is dtypes.float32


def test_void_has_no_values() -> None:
    with pytest.raises(ValueError, match="void"):
        dtypes.void.encode(0)
    for end in ("min", "max"):
        with pytest.raises(TypeError, match="void"):
            getattr(dtypes.void, end)


def test_the_format_of_an_integer_is_refused() -> None:
    with pytest.raises(TypeError, match="int32"):
        _ = dtypes.int32.format


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (dtypes.int8, -128, 127),
        (dtypes.uint16, 0, 65535),
        (dtypes.float16, -math.inf, math.inf),
        (dtypes.fp8e4m3, -448.0, 448.0),
        (dtypes.bool, False, True),
        (dtypes.index, -(1 << 63), (1 << 63) - 1),
    ],
)
def test_ranges(dtype: DType, low: float, high: float) -> None:
    assert (dtype.min, dtype.max) == (low, high)


@given(st.integers(-300, 300), st.integers(1, 1 << 60), st.integers(1, 1 << 60))
def test_floor_log2(shift: int, numerator: int, denominator: int) -> None:
    x = Fraction(numerator, denominator) * Fraction(2) ** shift
    assert Fraction(2) ** floor_log2(x) <= x < Fraction(2) ** (floor_log2(x) + 1)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_a_copy_of_a_dtype_is_the_dtype(dtype: DType) -> None:
    """There is one of each, also behind a pickle."""
    assert copy.deepcopy(dtype) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
