"""EXP2 LOG2 SIN SQRT POW executed on OpenCL: error in ULP against arb, exact special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from numpy.typing import NDArray

from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op

Array = NDArray[Any]
RunOps = Callable[..., list[Array]]
Exact = Callable[..., arb]

LARGE = [dtypes.float32, dtypes.float64]
INF, NAN = math.inf, math.nan
SAMPLES = 256


def exact_pow(x: arb, y: arb) -> arb:
    return abs(x) ** y * (-1 if x < 0 and y.floor() / 2 != (y / 2).floor() else 1)


EXACT: dict[Op, Exact] = {
    Op.EXP2: lambda x: arb(2) ** x,
    Op.LOG2: lambda x: x.log() / arb(2).log(),
    Op.SIN: lambda x: x.sin(),
    Op.SQRT: lambda x: x.sqrt(),
    Op.POW: exact_pow,
}
BUDGET = {Op.EXP2: 3, Op.LOG2: 3, Op.SIN: 4, Op.SQRT: 3, Op.POW: 16}


def within_budget(dtype: DType, y: arb, v: float, k: float) -> bool:
    """|v - y| <= k ulp(y); an infinity where y comes within k ulp of the overflow threshold."""
    form = dtype.format
    largest = arb(float(form.finite(form.max_bits)))
    mantissa, exponent = y.mid().man_exp() if y.mid() != 0 else (0, 0)
    floor_log2 = int(exponent) + abs(int(mantissa)).bit_length() - 1 if mantissa else form.emin
    ulp = arb(2) ** (max(floor_log2, form.emin) - form.precision + 1)
    if math.isinf(v):
        top = arb(2) ** (1 - form.emin - form.precision + 1)
        return bool(abs(y) + k * ulp >= largest + top / 2) and (v > 0) == bool(y > 0)
    return bool(abs(arb(v) - y) <= k * ulp)


def samples(op: Op, dtype: DType) -> list[Array]:
    rng = np.random.default_rng(7)
    form = dtype.format
    bits = rng.integers(0, 1 << (dtype.bits - 1), SAMPLES, np.uint64)
    wide = bits.astype(f"u{dtype.itemsize}").view(dtype.name)
    wide = wide[np.isfinite(wide)]
    subnormal = rng.integers(1, 1 << form.fraction_bits, SAMPLES // 4, np.uint64)
    tiny = subnormal.astype(f"u{dtype.itemsize}").view(dtype.name)
    lowest, highest = form.emin - form.precision - 2, 2 - form.emin
    near_one = 1 + rng.normal(size=SAMPLES) / 64
    if op is Op.EXP2:
        x = [rng.uniform(lowest, highest, SAMPLES), rng.uniform(lowest, form.emin, SAMPLES // 4)]
        return [np.concatenate([*x, rng.uniform(-2, 2, SAMPLES), np.arange(lowest, highest, 1.0)])]
    if op is Op.SIN:
        near = [rng.uniform(-10, 10, SAMPLES), np.pi * np.arange(-99, 100)]
        return [np.concatenate([wide, -wide, tiny, *near])]
    if op is Op.POW:
        base = np.concatenate([wide, tiny, near_one, rng.uniform(0, 3, SAMPLES)])
        result = rng.uniform(lowest, highest, base.size)
        power = result / np.log2(np.where(base == 1, 2, base).astype(np.float64))
        whole = rng.integers(-40, 40, SAMPLES).astype(np.float64)
        return [
            np.concatenate([base, -rng.integers(1, 99, SAMPLES).astype(np.float64)]),
            np.concatenate([np.clip(power, -(2**20), 2**20), whole]),
        ]
    return [np.concatenate([wide, tiny, near_one])]


@pytest.mark.parametrize("dtype", LARGE, ids=lambda d: d.name)
@pytest.mark.parametrize("op", EXACT, ids=lambda op: op.name)
def test_error_is_within_the_budget(run_ops: RunOps, op: Op, dtype: DType) -> None:
    inputs = [x.astype(dtype.name) for x in samples(op, dtype)]
    (got,) = run_ops([(op, dtype)], [dtype] * len(inputs), inputs)
    budget = 0.5 if (op, dtype) == (Op.SQRT, dtypes.float64) else BUDGET[op]
    precision = ctx.prec
    # A float64 argument of SIN can have 1,024 digits before the point.
    ctx.prec = 1300 if op is Op.SIN else 200
    try:
        for *operands, value in zip(*inputs, got, strict=True):
            y = EXACT[op](*(arb(float(x)) for x in operands))
            assert within_budget(dtype, y, float(value), budget), (operands, value)
    finally:
        ctx.prec = precision


UNARY_SPECIALS = {
    Op.EXP2: {0.0: 1.0, -INF: 0.0, INF: INF, 1e30: INF, -1e30: 0.0, NAN: NAN},
    Op.LOG2: {1.0: 0.0, 0.0: -INF, INF: INF, -1.0: NAN, -INF: NAN, NAN: NAN},
    Op.SIN: {0.0: 0.0, INF: NAN, -INF: NAN, NAN: NAN},
    Op.SQRT: {0.0: 0.0, INF: INF, -1.0: NAN, -INF: NAN, NAN: NAN},
}
OF_NEGATIVE_ZERO = {Op.EXP2: 1.0, Op.LOG2: -INF, Op.SIN: -0.0, Op.SQRT: -0.0}


def assert_exactly(got: Array, expected: Array) -> None:
    np.testing.assert_array_equal(got, expected)
    ordinary = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[ordinary], np.signbit(expected)[ordinary])


@pytest.mark.parametrize("dtype", LARGE, ids=lambda d: d.name)
@pytest.mark.parametrize("op", UNARY_SPECIALS, ids=lambda op: op.name)
def test_special_values(run_ops: RunOps, op: Op, dtype: DType) -> None:
    table = [*UNARY_SPECIALS[op].items(), (-0.0, OF_NEGATIVE_ZERO[op])]
    x, expected = (np.array(column, dtype.name) for column in zip(*table, strict=True))
    # 64 of each: a vector loop and its remainder.
    (got,) = run_ops([(op, dtype)], [dtype], [np.tile(x, 64)])
    assert_exactly(got, np.tile(expected, 64))


def power(x: float, y: float) -> float:
    """IEEE 754 9.2.1 on operands whose power is a special value or exact."""
    if x == 1 or y == 0:
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return NAN
    odd = not math.isinf(y) and y % 2 == 1
    if math.isinf(y):
        return 1.0 if x == -1 else INF if (abs(x) > 1) == (y > 0) else 0.0
    if x == 0 or math.isinf(x):
        grows = (x == 0) == (y < 0)
        return math.copysign(INF if grows else 0.0, x if odd else 1.0)
    return NAN if x < 0 and y != int(y) else x**y


@pytest.mark.parametrize("dtype", LARGE, ids=lambda d: d.name)
def test_power_of_special_values(run_ops: RunOps, dtype: DType) -> None:
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, INF]
    values += [-v for v in values] + [NAN]
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    exact = np.array([power(a, b) for a, b in zip(x, y, strict=True)])
    special = ~np.isfinite(exact) | np.isin(np.abs(exact), [0, 1])
    (got,) = run_ops([(Op.POW, dtype)], [dtype] * 2, [x.astype(dtype.name), y.astype(dtype.name)])
    assert_exactly(got[special], exact[special].astype(dtype.name))
