"""Conversions between dtypes against the spec's exact encode and decode, and against struct."""

from __future__ import annotations

import math
import operator
import struct
import warnings
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import exact
from oracles.rules import array, open_elements, run, values

from uop.interpreter.numeric import conversions as numeric
from uop.interpreter.numeric.storage import add_storage
from uop.spec.dtype import DTYPES, FLOATS, INTS, DType, Kind, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op

STORED = [d for d in DTYPES.values() if d.kind is not Kind.VOID]
NARROW = [d for d in FLOATS if d.bits <= 16]


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def samples(dtype: DType) -> list[int]:
    """Bit patterns: specials, halfway values of narrower dtypes, powers of two, a few others."""
    if dtype.kind is Kind.BOOL:
        return [0, 1]
    if dtype.bits == 8:
        return list(range(256))
    spread = {(i * 0x9E3779B97F4A7C15 >> 7) % (1 << dtype.bits) for i in range(60)}
    if dtype.is_float:
        return sorted(spread | set(exact.specials(dtype)) | set(halfway(dtype)))
    bases = {1 << k for k in range(dtype.bits + 1)}
    bases |= {m << k for m in (257, 259, 4097, 4099, 0x1000001, 0x1000003) for k in range(0, 40, 3)}
    bases |= {(1 << 53) + 1, (1 << 54) + 2, (1 << 54) + 6}
    numbers = {sign * (base + d) for base in bases for d in (-1, 0, 1) for sign in (1, -1)}
    return sorted(spread | {dtype.encode(v) for v in numbers if dtype.min <= v <= dtype.max})


def halfway(wide: DType) -> Iterator[int]:
    """Values of a wide float at and beside the middle of two neighbours of each narrower one."""
    for narrow in FLOATS:
        if narrow.format.precision < wide.format.precision:
            top = narrow.format.max_bits
            for low in (0, 1, 2, 1 << narrow.format.fraction_bits, narrow.encode(1.0), top - 1):
                middle = (narrow.format.finite(low) + narrow.format.finite(low + 1)) / 2
                yield from (max(wide.encode(middle) + d, 0) for d in (-1, 0, 1))
            step = narrow.format.finite(top) - narrow.format.finite(top - 1)
            overflow = wide.encode(narrow.format.finite(top) + step / 2)
            yield from (overflow + d for d in (-1, 0, 1))


def cast_exactly(value: bool | int | float, target: DType) -> int | None:
    """The bits of CAST, or None where there is no value or the bits of a NaN are open."""
    if target.kind is Kind.BOOL:
        return int(value != 0)
    if target.is_float:
        return exact.rounded(target, float(value) if isinstance(value, bool) else value)
    if isinstance(value, float):
        inside = math.isfinite(value) and target.min <= math.trunc(value) <= target.max
        return target.encode(math.trunc(value)) if inside else None
    return target.encode(exact.wrapped(target, int(value)))


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
def test_storage_decodes_as_the_spec_does(dtype: DType) -> None:
    patterns = list(range(1 << dtype.bits))
    expected = np.array(values(dtype, patterns))
    np.testing.assert_array_equal(array(dtype, patterns).astype(np.float64), expected)


@pytest.mark.parametrize("dtype", STORED, ids=repr)
def test_storage_has_the_size_and_kind_of_the_dtype(dtype: DType) -> None:
    storage = numeric.np_dtype(dtype)
    assert storage.itemsize == dtype.itemsize
    patterns = [0, 1] if dtype.kind is Kind.BOOL else [0, 1, (1 << dtype.bits) - 1]
    assert numeric.to_bits(array(dtype, patterns)).tolist() == patterns


@pytest.mark.parametrize(
    ("source", "target"),
    [p for p in product(STORED, STORED) if not (p[0].is_float and p[1] is dtypes.index)],
    ids=repr,
)
def test_cast(source: DType, target: DType) -> None:
    patterns = samples(source)
    if source is dtypes.uint64 and target is dtypes.index:
        patterns = [p for p in patterns if p < 1 << 63]
    a = array(source, patterns)
    result = run(Op.CAST, source, a, to=target)
    assert result.dtype == numeric.np_dtype(target)
    got = numeric.to_bits(result).tolist()
    if source == target:
        assert got == patterns
        return
    undefined = open_elements(Op.CAST, source, a, to=target)
    assert (undefined is not None) == (source.is_float and target.is_int)
    for i, value in enumerate(values(source, patterns)):
        expected = cast_exactly(value, target)
        if target.is_float:
            assert exact.any_nan(target, got[i]) == expected, value
        elif undefined is not None and undefined[i]:
            assert expected is None, value
        else:
            assert got[i] == expected, value


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("source", "target"),
    [p for p in product(NARROW, NARROW) if p[0].bits == 16 and p[0] != p[1]],
    ids=repr,
)
def test_cast_of_every_16_bit_float_to_the_narrow_ones(source: DType, target: DType) -> None:
    positive = list(range(1 << 15))
    expected = [exact.rounded(target, value) for value in values(source, positive)]
    opposite = [None if bits is None else bits ^ target.format.sign_bit for bits in expected]
    for sign, results in ((0, expected), (1 << 15, opposite)):
        a = array(source, [sign | bits for bits in positive])
        got = numeric.to_bits(run(Op.CAST, source, a, to=target)).tolist()
        assert [exact.any_nan(target, bits) for bits in got] == results


@pytest.mark.parametrize(
    ("source", "value", "target", "bits"),
    [
        (dtypes.float64, 1 + 2**-8 + 2**-40, dtypes.bfloat16, 0x3F81),
        (dtypes.float64, 1 + 2**-11 + 2**-40, dtypes.float16, 0x3C01),
        (dtypes.float64, 3.3e38, dtypes.bfloat16, 0x7F78),
        (dtypes.float64, 1e39, dtypes.bfloat16, 0x7F80),
        (dtypes.float64, 464.0, dtypes.fp8e4m3, 0x7E),
        (dtypes.float64, 464.00000001, dtypes.fp8e4m3, 0x7F),
        (dtypes.int64, (1 << 40) + (1 << 32) + 1, dtypes.bfloat16, 0x5381),
        (dtypes.uint64, (1 << 63) + (1 << 39) + 1, dtypes.float32, 0x5F000001),
        (dtypes.int32, (1 << 24) + (1 << 16) + 1, dtypes.bfloat16, 0x4B81),
        (dtypes.int32, 65520, dtypes.float16, 0x7C00),
        (dtypes.float32, -0.9, dtypes.uint8, 0),
        (dtypes.int16, -1, dtypes.uint64, (1 << 64) - 1),
    ],
)
def test_cast_vectors(source: DType, value: float, target: DType, bits: int) -> None:
    a = array(source, [source.encode(value)])
    assert numeric.to_bits(run(Op.CAST, source, a, to=target)).tolist() == [bits]


def test_cast_of_an_unsigned_integer_beyond_index_has_no_meaning() -> None:
    with pytest.raises(UndefinedError, match="64 bits"):
        run(Op.CAST, dtypes.uint64, np.array([1 << 63], np.uint64), to=dtypes.index)


@pytest.mark.parametrize("target", FLOATS, ids=repr)
@settings(max_examples=60, deadline=None)
@given(wide=st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=30))
def test_round_to_of_any_float64(target: DType, wide: list[int]) -> None:
    got = numeric.to_bits(numeric.round_to(array(dtypes.float64, wide), target)).tolist()
    expected = [exact.rounded(target, value) for value in values(dtypes.float64, wide)]
    assert [exact.any_nan(target, bits) for bits in got] == expected


@pytest.mark.parametrize("target", NARROW, ids=repr)
def test_round_to_beside_every_halfway_value(target: DType) -> None:
    form = target.format
    step = 1 if target.bits == 8 else 23
    lows = list(range(0, form.max_bits, step))
    middles = np.array([float((form.finite(i) + form.finite(i + 1)) / 2) for i in lows])
    for wide, bits in (
        (np.nextafter(middles, -np.inf), lows),
        (middles, [i + i % 2 for i in lows]),
        (np.nextafter(middles, np.inf), [i + 1 for i in lows]),
    ):
        assert numeric.to_bits(numeric.round_to(wide, target)).tolist() == bits
        negative = [b | form.sign_bit for b in bits]
        assert numeric.to_bits(numeric.round_to(-wide, target)).tolist() == negative


@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=30))
def test_odd_rounding_to_float32(wide: list[int]) -> None:
    odd = numeric.to_odd_float32(array(dtypes.float64, wide))
    for value, got, bits in zip(
        values(dtypes.float64, wide), odd.tolist(), numeric.to_bits(odd).tolist(), strict=True
    ):
        assert got == value or bits % 2 == 1
        assert (
            math.isnan(value) or abs(Fraction(got) - Fraction(value)) < spacing(got) or got == value
        )


def spacing(value: float) -> float:
    if math.isinf(value):
        return 0.0
    return float(np.spacing(np.float32(abs(value)))) if abs(value) < 3.4e38 else math.inf


STRUCT = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip


@pytest.mark.parametrize(("source", "target"), list(product(STRUCT, STRUCT)))
def test_bitcast_reads_little_endian_bytes(source: str, target: str) -> None:
    raw = bytes(range(1, 49))
    a = np.array(struct.unpack(f"<{48 // DTYPES[source].itemsize}{STRUCT[source]}", raw))
    a = a.astype(numeric.np_dtype(DTYPES[source])).reshape(2, -1)
    result = run(Op.BITCAST, DTYPES[source], a, to=DTYPES[target])
    expected = struct.unpack(f"<{48 // DTYPES[target].itemsize}{STRUCT[target]}", raw)
    assert result.shape == (2, 24 // DTYPES[target].itemsize)
    assert tuple(result.ravel().tolist()) == expected


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_bitcast_keeps_nan_payloads(dtype: DType) -> None:
    patterns = exact.specials(dtype)
    integers = DTYPES[f"uint{dtype.bits}"]
    there = run(Op.BITCAST, dtype, array(dtype, patterns), to=integers)
    assert there.tolist() == patterns
    back = run(Op.BITCAST, integers, there, to=dtype)
    assert numeric.to_bits(back).tolist() == patterns


def test_bitcast_of_views_scalars_and_nothing() -> None:
    a = np.arange(8, dtype=np.int32).reshape(2, 4)[:, ::2]
    assert run(Op.BITCAST, dtypes.int32, a, to=dtypes.int16).tolist() == [
        [0, 0, 2, 0],
        [4, 0, 6, 0],
    ]
    one = np.array(1.0, np.float32)
    assert run(Op.BITCAST, dtypes.float32, one, to=dtypes.uint32).tolist() == 0x3F800000
    assert run(Op.BITCAST, dtypes.int8, np.zeros((3, 0), np.int8), to=dtypes.int64).shape == (3, 0)
    assert run(Op.BITCAST, dtypes.int8, np.zeros((0, 16), np.int8), to=dtypes.int64).shape == (0, 2)
    assert run(Op.BITCAST, dtypes.int64, np.zeros((0, 2), np.int64), to=dtypes.int8).shape == (
        0,
        16,
    )


def test_bitcast_to_bool_has_no_value_for_other_bytes() -> None:
    a = np.array([0, 1, 2, 255], np.uint8)
    assert run(Op.BITCAST, dtypes.uint8, a, to=dtypes.bool).tolist()[:2] == [False, True]
    undefined = open_elements(Op.BITCAST, dtypes.uint8, a, to=dtypes.bool)
    assert undefined is not None
    assert undefined.tolist() == [False, False, True, True]
    assert open_elements(Op.BITCAST, dtypes.uint8, a, to=dtypes.int8) is None


@pytest.mark.parametrize("source", [*INTS, dtypes.index], ids=repr)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_cast_of_any_integer_to_every_float(source: DType, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(int(source.min), int(source.max)), min_size=1))
    a = np.array(numbers, numeric.np_dtype(source))
    for target in FLOATS:
        got = numeric.to_bits(run(Op.CAST, source, a, to=target)).tolist()
        assert got == [target.encode(number) for number in numbers]


def test_a_storage_has_the_size_of_its_dtype() -> None:
    with pytest.raises(ValueError, match="float32 has 32 bits"):
        add_storage(dtypes.float32, np.float64)
    assert numeric.np_dtype(dtypes.float32) == np.float32


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("apart", [1, 1 << 62])
def test_an_index_that_leaves_64_bits_has_no_meaning(shape: tuple[int, ...], apart: int) -> None:
    """Also where the exact value is one of uint64."""
    most = np.full(shape, dtypes.index.max, np.int64)
    for op, a, b in ((operator.add, most, apart), (operator.sub, -most, apart + 1)):
        with pytest.raises(UndefinedError, match=r"VALUE\.u1"):
            numeric.index_op(op, a, np.full(shape, b, np.int64))
