"""Flushing: what is tiny before the rounding may be a zero of either sign, and nothing else may.

OpenCL C, 7.5.3: a result that is subnormal before the rounding may be flushed, and then the sign of
the zero is undefined. The oracle is exact: fractions.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.storage import Array, from_bits, np_dtype
from uop.spec.args import DTypeArg, ReduceArg
from uop.spec.dtype import FLOATS, DType, dtypes
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

N = 4000


def flushing(dtype: DType) -> Profile:
    return Profile(ftz=frozenset({dtype}))


def only(root: UOp, inputs: dict[int, Array], profile: Profile) -> Accepted:
    (accepted,) = accept(root, inputs, profile)
    return accepted


def least(dtype: DType) -> Fraction:
    return Fraction(2) ** dtype.format.emin


def fractions(a: Array) -> list[Fraction]:
    return [Fraction(float(x)) for x in a]


def pairs(dtype: DType, random: np.random.Generator, *, quotient: bool) -> tuple[Array, Array]:
    """Normal values whose product, or quotient, is the least normal value or close to it."""
    form = dtype.format
    x = random.integers(1 << form.fraction_bits, 2 << form.fraction_bits, N)
    x[::5] = 1 << form.fraction_bits
    # The other factor is near 2 / x, the divisor near x.
    other = x if quotient else np.asarray([(2 << 2 * form.fraction_bits) // v for v in x.tolist()])
    y = np.clip(other + random.integers(-1, 3, N), 1 << form.fraction_bits, None)
    low = form.emin // 2
    high = low - form.emin if quotient else form.emin - low - 1
    scale = np.asarray(
        [np.ldexp(1.0, low - form.fraction_bits), np.ldexp(1.0, high - form.fraction_bits)]
    )
    sign = random.choice([-1.0, 1.0], (2, N))
    a, b = (s * v * k for s, v, k in zip(sign, (x, y), scale, strict=True))
    return a.astype(np_dtype(dtype)), b.astype(np_dtype(dtype))


@pytest.mark.parametrize("op", [Op.MUL, Op.DIV], ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_what_is_tiny_before_the_rounding_may_be_zero(dtype: DType, op: Op) -> None:
    random = np.random.default_rng([dtype.bits, len(op.name)])
    a, b = pairs(dtype, random, quotient=op is Op.DIV)
    accepted = only(
        UOp(op, param(0, (N,), dtype), param(1, (N,), dtype)), {0: a, 1: b}, flushing(dtype)
    )
    zero = np.zeros(N, a.dtype)
    flushed = [accepted.contains(end) for end in (zero, -zero)]
    exact = [
        x * y if op is Op.MUL else x / y for x, y in zip(fractions(a), fractions(b), strict=True)
    ]
    tiny = np.asarray([abs(v) < least(dtype) for v in exact])
    assert tiny.any()
    assert not tiny.all()
    for found in flushed:
        assert found[tiny].all()
    if op is Op.MUL:
        # A quotient may be any within a budget, which reaches the subnormals; a product may not.
        assert not (flushed[0] | flushed[1])[~tiny].any()
    assert accepted.contains(accepted.value.data).all()


@pytest.mark.parametrize("target", [d for d in FLOATS if d.bits < 64], ids=lambda d: d.name)
def test_a_cast_flushes_what_is_tiny_before_it(target: DType) -> None:
    random = np.random.default_rng(target.bits)
    x = float(least(target)) * (1 + random.normal(size=N) * 2.0 ** -random.integers(1, 30, N))
    x[::9] = float(least(target))
    cast = UOp(Op.CAST, param(0, (N,), dtypes.float64), arg=DTypeArg(target))
    accepted = only(cast, {0: x}, flushing(target))
    tiny = np.abs(x) < float(least(target))
    for zero in (np.zeros(N, np_dtype(target)), -np.zeros(N, np_dtype(target))):
        np.testing.assert_array_equal(accepted.contains(zero), tiny)


def test_the_example_of_a_processor_that_flushes_first() -> None:
    """0x1.fffffeebddcp-127 rounds to 2^-126; x86 gives 0."""
    f32 = dtypes.float32
    a, b = (np.asarray([float.fromhex(x)], np.float32) for x in ("0x1.3d33ep-64", "0x1.9d3652p-63"))
    root = UOp(Op.MUL, param(0, (1,), f32), param(1, (1,), f32))
    accepted = only(root, {0: a, 1: b}, flushing(f32))
    assert accepted.describe(0) == "-0x0p+0 or 0x0p+0 or 0x1p-126"
    assert only(root, {0: a, 1: b}, STRICT).describe(0) == "0x1p-126"
    fused = UOp(Op.MULACC, *(param(k, (1,), f32) for k in range(3)))
    summed = only(fused, {0: a, 1: b, 2: np.full(1, 2.0**-126, np.float32)}, flushing(f32))
    for value in (2.0**-126, 2.0**-125):
        assert summed.contains(np.full(1, value, np.float32)).all()


@pytest.mark.parametrize("dtype", [dtypes.fp8e5m2, dtypes.fp8e4m3], ids=lambda d: d.name)
@pytest.mark.parametrize("op", [Op.ADD, Op.SUB, Op.MUL, Op.MAX], ids=lambda op: op.name)
def test_flushing_gives_the_value_or_a_zero(op: Op, dtype: DType) -> None:
    """All pairs of bytes: operands and results that are tiny, each as it is or as a zero."""
    bits = np.arange(256, dtype=np.uint8)
    x, y = (np.ravel(g) for g in np.meshgrid(*[from_bits(bits, dtype)] * 2))
    with np.errstate(all="ignore"):
        finite = np.isfinite(x.astype(np.float64)) & np.isfinite(y.astype(np.float64))
    x, y = x[finite], y[finite]
    root = UOp(op, param(0, x.shape, dtype), param(1, x.shape, dtype))
    accepted = only(root, {0: x, 1: y}, flushing(dtype))
    edge = float(least(dtype))
    wanted = np.zeros((256, len(x)), np.bool_)
    for a in _reads(x.astype(np.float64), edge):
        for b in _reads(y.astype(np.float64), edge):
            for result in _results(op, dtype, a, b, edge):
                wanted[result.view(np.uint8), np.arange(len(x))] = True
    found = np.asarray([accepted.contains(np.full(x.shape, v)) for v in from_bits(bits, dtype)])
    nan = np.isnan(from_bits(bits, dtype).astype(np.float64))
    np.testing.assert_array_equal(found[nan].any(axis=0), wanted[nan].any(axis=0))
    assert found[wanted].all()
    # The zeros and the least subnormal are neighbours, which count as an interval.
    least_subnormal = float(dtype.format.finite(1))
    apart = (np.abs(x) != least_subnormal) & (np.abs(y) != least_subnormal)
    np.testing.assert_array_equal(found[~nan][:, apart], wanted[~nan][:, apart])


def _reads(x: Array, edge: float) -> list[Array]:
    tiny = (np.abs(x) < edge) & (x != 0)
    return [x, np.where(tiny, 0.0, x), np.where(tiny, -0.0, x)]


MEANT = {Op.ADD: np.add, Op.SUB: np.subtract, Op.MUL: np.multiply, Op.MAX: np.maximum}


def _results(op: Op, dtype: DType, a: Array, b: Array, edge: float) -> list[Array]:
    """The exact result rounded once, or a zero; of a maximum of equal zeros either operand."""
    exact = MEANT[op](a, b)
    wide = [exact]
    if op is Op.MAX:
        wide += [np.where(a == b, a, exact), np.where(a == b, b, exact)]
    tiny = (np.abs(exact) < edge) & (exact != 0)
    wide += [np.where(tiny, zero, exact) for zero in (0.0, -0.0)]
    with np.errstate(all="ignore"):
        return [v.astype(np_dtype(dtype)) for v in wide]


def test_a_fold_of_flushed_terms_may_be_either_zero() -> None:
    x = np.full((1, 2), 2.0**-140, np.float32)
    root = UOp(Op.REDUCE, param(0, x.shape, dtypes.float32), arg=ReduceArg(Op.MAX, (1,)))
    accepted = only(root, {0: x}, flushing(dtypes.float32))
    assert accepted.describe(0) == "-0x0p+0 or 0x0p+0 or 0x1p-140"
