"""Small floats held as their bits: every cast, executed, against the exact encode and decode."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uop.spec.dtype import DTYPES, FLOATS, DType, dtypes
from uop.spec.ops.names import Op

SMALL = [dtype for dtype in FLOATS if dtype.bits < 32]
Array = NDArray[Any]
RunOps = Callable[..., list[Array]]


def patterns(dtype: DType) -> Array:
    return np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits == 16 else np.uint8)


def values(dtype: DType) -> Array:
    """Every value of a small dtype."""
    return np.array([dtype.decode(int(bits)) for bits in patterns(dtype)], np.float64)


def ties(dtype: DType) -> Array:
    """Every value, every midpoint of neighbours (and the one after the largest), and both zeros."""
    form = dtype.format
    positive = np.array([float(form.finite(m)) for m in range(form.max_bits + 1)])
    beyond = positive[-1] + (positive[-1] - positive[-2])
    middles = (np.append(positive, beyond)[1:] + positive) / 2
    magnitudes = np.concatenate([positive, middles, [beyond, 4 * beyond, math.inf, math.nan]])
    return np.concatenate([magnitudes, -magnitudes])


def around(x: Array) -> Array:
    """Each value of x with its neighbours in x's own dtype."""
    up, down = x.dtype.type(np.inf), x.dtype.type(-np.inf)
    return np.concatenate([x, np.nextafter(x, up), np.nextafter(x, down)])


def same_bits_or_both_nan(dtype: DType, got: Array, expected: Array) -> None:
    nan = np.array([dtype.format.is_nan(int(b)) for b in got])
    expected_nan = np.array([dtype.format.is_nan(int(b)) for b in expected])
    np.testing.assert_array_equal(nan, expected_nan)
    np.testing.assert_array_equal(got[~nan], expected[~nan])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_every_pattern_widens_exactly(run_ops: RunOps, dtype: DType) -> None:
    targets = [dtypes.float32, dtypes.float64, *SMALL, dtypes.int32, dtypes.uint8, dtypes.bool]
    results = run_ops([(Op.CAST, to) for to in targets], [dtype], [patterns(dtype)])
    exact = values(dtype)
    for got in results[:2]:
        np.testing.assert_array_equal(got, exact)
        np.testing.assert_array_equal(np.signbit(got), patterns(dtype) >> (dtype.bits - 1))
    every = 1 if dtype.bits == 8 else 7
    for to, got in zip(SMALL, results[2:6], strict=True):
        expected = np.array([to.encode(float(x)) for x in exact[::every]], got.dtype)
        same_bits_or_both_nan(to, got[::every], expected)
    for got, low, high in ((results[6], -(2**31), 2**31), (results[7], 0, 256)):
        fits = (np.trunc(exact) >= low) & (np.trunc(exact) < high)
        np.testing.assert_array_equal(got[fits], np.trunc(exact[fits]))
    np.testing.assert_array_equal(results[8], exact != 0)


@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_a_cast_to_itself_keeps_every_nan(run_ops: RunOps, dtype: DType) -> None:
    (got,) = run_ops([(Op.CAST, dtype)], [dtype], [patterns(dtype)])
    np.testing.assert_array_equal(got, patterns(dtype))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
@pytest.mark.parametrize("source", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
def test_ties_and_their_neighbours_round_once(run_ops: RunOps, source: DType, dtype: DType) -> None:
    chosen = ties(dtype)[:: 1 + (dtype.bits == 16) * 12]
    x = around(chosen.astype(np.float32 if source is dtypes.float32 else np.float64))
    # A float64 a hair off a tie rounds to the tie as float32: the trap of rounding twice.
    (got,) = run_ops([(Op.CAST, dtype)], [source], [x])
    same_bits_or_both_nan(dtype, got, np.array([dtype.encode(float(v)) for v in x], got.dtype))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "source", ["int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
)
def test_integers_round_once(run_ops: RunOps, source: str) -> None:
    of = DTYPES[source]
    x = integers_near_ties(of)
    results = run_ops([(Op.CAST, to) for to in FLOATS], [of], [x])
    for to, got in zip(FLOATS, results, strict=True):
        bits = got.view(f"u{got.dtype.itemsize}")
        same_bits_or_both_nan(to, bits, np.array([to.encode(int(v)) for v in x], bits.dtype))


def integers_near_ties(dtype: DType) -> Array:
    """Odd multiples of half a last digit of each float's precision, off by -1, 0, 1."""
    found = {int(dtype.min), int(dtype.max), 0, 1, 447, 448, 463, 464, 465, 65519, 65520}
    for bits in range(1, dtype.bits):
        for precision in (3, 4, 8, 11, 24, 53):
            step = 1 << max(bits - precision, 0)
            found |= {
                (1 << bits) + odd * step // 2 + off for odd in (1, 3, 5) for off in (-1, 0, 1)
            }
    both = found | {-v for v in found}
    return np.array(sorted(v for v in both if dtype.min <= v <= dtype.max), dtype.name)
