"""Every spelled op on OpenCL: integers against exact ones, floats against IEEE arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uop.compiler.runtime.device import Launch
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.targets.cstyle import Operation, c_type, spell
from uop.compiler.targets.opencl import OPENCL
from uop.spec.dtype import DTYPES, INTS, DType, dtypes
from uop.spec.ops.names import Op

Array = NDArray[Any]
RunOps = Callable[..., list[Array]]
LARGE = [dtypes.float32, dtypes.float64]

COMPARE: dict[Op, Callable[..., Array]] = {
    Op.CMPLT: operator.lt,
    Op.CMPNE: operator.ne,
    Op.CMPGT: operator.gt,
    Op.CMPGE: operator.ge,
    Op.CMPLE: operator.le,
    Op.CMPEQ: operator.eq,
}
WRAPPING: dict[Op, Callable[..., Array]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.MAX: np.maximum,
    Op.MIN: np.minimum,
    Op.XOR: operator.xor,
    Op.OR: operator.or_,
    Op.AND: operator.and_,
}
DIVIDING: dict[Op, Callable[..., Array]] = {Op.IDIV: operator.floordiv, Op.MOD: operator.mod}


def wrap(x: Array, dtype: DType) -> Array:
    """Exact integers modulo 2^n, in the dtype."""
    low = x & ((1 << dtype.bits) - 1)
    signed = np.where(low >> (dtype.bits - 1), low - (1 << dtype.bits), low)
    return (signed if dtype.is_signed else low).astype(storage(dtype))


def storage(dtype: DType) -> str:
    return "int64" if dtype is dtypes.index else dtype.name


def pairs(dtype: DType) -> tuple[Array, Array]:
    """All pairs of an 8-bit dtype; of a wider one, pairs of its edges. Exact integers."""
    low, high = int(dtype.min), int(dtype.max)
    if dtype.bits == 8:
        chosen = list(range(low, high + 1))
    else:
        middle = 1 << (dtype.bits // 2)
        near = [c + off for c in (0, low, high, middle, -middle, high // 3) for off in range(-3, 4)]
        chosen = sorted({v for v in near if low <= v <= high})
    a, b = np.meshgrid(np.array(chosen, object), np.array(chosen, object))
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("dtype", [*INTS, dtypes.index], ids=lambda d: d.name)
def test_integers_are_exact_wrap_and_never_trap(run_ops: RunOps, dtype: DType) -> None:
    a, b = pairs(dtype)
    bitwise = {Op.XOR, Op.OR, Op.AND} if dtype is dtypes.index else set()
    exact = {op: f for op, f in WRAPPING.items() if op not in bitwise}
    results = [(op, dtype) for op in (*exact, *DIVIDING)] + [(op, dtypes.bool) for op in COMPARE]
    inputs = [a.astype(storage(dtype)), b.astype(storage(dtype))]
    got = iter(run_ops(results, [dtype, dtype], inputs))
    for f, values in zip(exact.values(), got, strict=False):
        np.testing.assert_array_equal(values, wrap(f(a, b), dtype))
    defined = b != 0
    for f, values in zip(DIVIDING.values(), got, strict=False):
        np.testing.assert_array_equal(values[defined], wrap(f(a[defined], b[defined]), dtype))
    for f, values in zip(COMPARE.values(), got, strict=True):
        np.testing.assert_array_equal(values, f(a, b).astype(np.uint8))


@pytest.mark.parametrize("count", [dtypes.uint8, dtypes.int64], ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", INTS, ids=lambda d: d.name)
def test_shifts(run_ops: RunOps, dtype: DType, count: DType) -> None:
    edges = sorted({int(dtype.min), int(dtype.max), 0, 1, 85} | {int(dtype.min) + 1})
    counts = [c for c in (*range(-1, 66), 200, -(2**31), 2**40) if count.min <= c <= count.max]
    a, n = (x.ravel() for x in np.meshgrid(np.array(edges, object), np.array(counts, object)))
    left, right = run_ops(
        [(Op.SHL, dtype), (Op.SHR, dtype)],
        [dtype, count],
        [a.astype(dtype.name), n.astype(count.name)],
    )
    defined = (n >= 0) & (n < dtype.bits)
    np.testing.assert_array_equal(left[defined], wrap((a << (n % 64))[defined], dtype))
    np.testing.assert_array_equal(right[defined], (a >> (n % 64))[defined].astype(dtype.name))


@pytest.mark.parametrize(
    "dtype", [dtypes.int8, dtypes.int32, dtypes.uint16, dtypes.uint64], ids=lambda d: d.name
)
def test_multiply_add_wraps(run_ops: RunOps, dtype: DType) -> None:
    a, b = pairs(dtype)
    inputs = [a.astype(dtype.name), b.astype(dtype.name)]
    (sums,) = run_ops([(Op.MULACC, dtype)], [dtype] * 3, [*inputs, inputs[0]])
    np.testing.assert_array_equal(sums, wrap(a * b + a, dtype))


def test_bool_is_logical(run_ops: RunOps) -> None:
    a, b = np.array([0, 0, 1, 1], np.uint8), np.array([0, 1, 0, 1], np.uint8)
    ops = (Op.ADD, Op.MUL, Op.MAX, Op.MIN, Op.XOR, Op.OR, Op.AND, Op.CMPLT, Op.CMPNE)
    got = run_ops([(op, dtypes.bool) for op in ops], [dtypes.bool] * 2, [a, b])
    expected = [a | b, a & b, a | b, a & b, a ^ b, a | b, a & b, a < b, a != b]
    np.testing.assert_array_equal(got, expected)
    (inverted,) = run_ops([(Op.NOT, dtypes.bool)], [dtypes.bool], [a])
    np.testing.assert_array_equal(inverted, 1 - a)


def special_floats(dtype: DType) -> Array:
    info = np.finfo(dtype.name)
    magnitudes = [0, info.smallest_subnormal, info.smallest_normal, 0.5, 1 - info.epsneg, 1, 1.5, 2]
    magnitudes += [2.0**info.nmant - 0.5, 2.0**info.nmant, 2.0**info.nmant + 1, 2.0**62, 2.0**64]
    magnitudes += [0.9, 3, 127.5, 255.5, 32767.5, 65535.5, 2.0**31 - 1, 2.0**31, 2.0**32, 2.0**63]
    magnitudes += [info.smallest_normal / 2, info.max, np.inf, np.nan]
    x = np.array(magnitudes, dtype.name)
    return np.concatenate([x, -x])


@pytest.mark.parametrize("dtype", LARGE, ids=lambda d: d.name)
def test_float_arithmetic_rounds_once(run_ops: RunOps, dtype: DType) -> None:
    x = special_floats(dtype)
    a, b = (v.ravel() for v in np.meshgrid(x, x))
    with np.errstate(all="ignore"):
        expected = [a + b, a - b, a * b, a / b, a * b + a]
    ops = (Op.ADD, Op.SUB, Op.MUL, Op.DIV)
    got = run_ops([(op, dtype) for op in ops], [dtype] * 2, [a, b])
    got += run_ops([(Op.MULACC, dtype)], [dtype] * 3, [a, b, a])
    for values, exact in zip(got, expected, strict=True):
        np.testing.assert_array_equal(values, exact)
        ordinary = ~np.isnan(exact)
        np.testing.assert_array_equal(np.signbit(values)[ordinary], np.signbit(exact)[ordinary])


@pytest.mark.parametrize("dtype", LARGE, ids=lambda d: d.name)
def test_multiply_add_is_not_contracted(run_ops: RunOps, dtype: DType) -> None:
    # The product needs one digit more than there is: fused, the sum is not 0.
    digits = dtype.format.precision // 2 + 1
    a = np.full(64, 1 + 2.0**-digits, dtype.name)
    (sums,) = run_ops([(Op.MULACC, dtype)], [dtype] * 3, [a, a, -(a * a)])
    np.testing.assert_array_equal(sums, np.zeros(64))


@pytest.mark.parametrize("dtype", LARGE, ids=lambda d: d.name)
def test_float_comparisons_and_extrema(run_ops: RunOps, dtype: DType) -> None:
    x = special_floats(dtype)
    a, b = (v.ravel() for v in np.meshgrid(x, x))
    results = [*((op, dtypes.bool) for op in COMPARE), (Op.MAX, dtype), (Op.MIN, dtype)]
    got = run_ops(results, [dtype] * 2, [a, b])
    for f, values in zip(COMPARE.values(), got, strict=False):
        np.testing.assert_array_equal(values, f(a, b))
    nan = np.isnan(a) | np.isnan(b)
    for extremum, found in zip((np.maximum, np.minimum), got[-2:], strict=True):
        np.testing.assert_array_equal(found[~nan], extremum(a, b)[~nan])
        either = np.isnan(found) | (found == a) | (found == b)
        assert either.all()
        assert np.isnan(found[np.isnan(a) & np.isnan(b)]).all()


@pytest.mark.parametrize("dtype", LARGE, ids=lambda d: d.name)
def test_unary_floats(run_ops: RunOps, dtype: DType) -> None:
    x = np.concatenate([special_floats(dtype), np.linspace(-300, 300, 1001).astype(dtype.name)])
    with np.errstate(all="ignore"):
        expected = [np.trunc(x), -x, 1 / x]
    got = run_ops([(op, dtype) for op in (Op.TRUNC, Op.NEG, Op.RECIP)], [dtype], [x])
    for values, exact in zip(got, expected, strict=True):
        np.testing.assert_array_equal(values, exact)
        ordinary = ~np.isnan(exact)
        np.testing.assert_array_equal(np.signbit(values)[ordinary], np.signbit(exact)[ordinary])


@pytest.mark.parametrize("dtype", LARGE, ids=lambda d: d.name)
def test_float_to_integer_truncates_and_never_traps(run_ops: RunOps, dtype: DType) -> None:
    limits = [float(int(v) + off) for to in INTS for v in (to.min, to.max) for off in (-1, 0, 1)]
    x = np.array(limits, dtype.name)
    x = np.concatenate([special_floats(dtype), x, np.nextafter(x, -np.inf), np.nextafter(x, 0)])
    got = run_ops([(Op.CAST, to) for to in (*INTS, dtypes.bool)], [dtype], [x.astype(dtype.name)])
    for to, values in zip(INTS, got, strict=False):
        for value, result in zip(x, values, strict=True):
            if np.isfinite(value) and to.min <= int(value) <= to.max:
                assert int(result) == int(value), (value, to)
    np.testing.assert_array_equal(got[-1], x != 0)


@pytest.mark.parametrize("dtype", [*INTS, dtypes.index, dtypes.bool], ids=lambda d: d.name)
def test_integer_casts_and_negation_wrap(run_ops: RunOps, dtype: DType) -> None:
    if dtype is dtypes.bool:
        a = np.array([0, 1] * 32, object)
    else:
        a, _ = pairs(dtype)
    given = a.astype("uint8" if dtype is dtypes.bool else storage(dtype))
    targets = [*INTS, dtypes.index]
    results = [(Op.CAST, to) for to in (*targets, dtypes.bool)]
    results += [(Op.NEG, dtype)] if dtype is not dtypes.bool else []
    got = run_ops(results, [dtype], [given])
    for to, values in zip(targets, got, strict=False):
        np.testing.assert_array_equal(values, wrap(a, to))
    np.testing.assert_array_equal(got[len(targets)], (a != 0).astype(np.uint8))
    for negated in got[len(targets) + 1 :]:
        np.testing.assert_array_equal(negated, wrap(-a, dtype))


def test_float64_to_float32_rounds_once(run_ops: RunOps) -> None:
    bits = np.random.default_rng(0).integers(0, 2**64, 20_000, np.uint64)
    near = (
        np.random.default_rng(1).normal(size=20_000)
        * 2.0 ** np.arange(-155, -125).repeat(667)[:20_000]
    )
    x = np.concatenate([bits.view(np.float64), near, special_floats(dtypes.float64)])
    (got,) = run_ops([(Op.CAST, dtypes.float32)], [dtypes.float64], [x])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, x.astype(np.float32))


SIZES = [
    [d for d in DTYPES.values() if d.itemsize == n and d is not dtypes.index] for n in (1, 2, 4, 8)
]


@pytest.mark.slow
@pytest.mark.parametrize("group", SIZES, ids=["1", "2", "4", "8"])
def test_bitcast_and_where_keep_every_bit(run_ops: RunOps, group: list[DType]) -> None:
    size = group[0].itemsize
    patterns = np.random.default_rng(size).integers(0, 256, 4096 * size, np.uint8)
    for source in group:
        given = patterns % 2 if source is dtypes.bool else patterns
        given = given.view(f"u{size}").copy()
        if source.is_float and source.bits >= 32:
            given[:8] = [source.format.exponent_mask | m for m in (0, 1, 2, 3, 5, 7, 99, 1 << 20)]
        given = given.view(source.name if source in LARGE else given.dtype)
        got = run_ops([(Op.BITCAST, to) for to in group], [source], [given])
        for to, values in zip(group, got, strict=True):
            expected = given.view(f"u{size}")
            expected = expected != 0 if to is dtypes.bool else expected
            np.testing.assert_array_equal(values.view(f"u{size}"), expected)
        gate = patterns[: given.size] % 2
        (chosen,) = run_ops(
            [(Op.WHERE, source)], [dtypes.bool, source, source], [gate, given, given[::-1].copy()]
        )
        expected = np.where(gate, given.view(f"u{size}"), given[::-1].view(f"u{size}"))
        np.testing.assert_array_equal(chosen.view(f"u{size}"), expected)


def test_threefry_vectors(run_ops: RunOps) -> None:
    full = 2**64 - 1
    vectors = [
        (0, 0, 0x99BA4EFE6B200159),
        (1, 0, 0xC0DE3F32508EFB2C),
        (full, full, 0xBB002BE71CB996FC),
        (0x85A308D3243F6A88, 0x0370734413198A2E, 0x483DF7A0C4923A9C),
    ]
    x, key, expected = (np.array(column, np.uint64) for column in zip(*vectors, strict=True))
    (got,) = run_ops([(Op.THREEFRY, dtypes.uint64)], [dtypes.uint64] * 2, [x, key])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("group", [1, 8, 64])
@pytest.mark.parametrize(
    "dtype", [dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64], ids=lambda d: d.name
)
@pytest.mark.parametrize("op", [Op.MAX, Op.MIN], ids=lambda op: op.name)
def test_complements_around_an_extremum(
    opencl: OpenCLDevice, op: Op, dtype: DType, group: int
) -> None:
    """Compilers exchange them, and one loses them where work items are computed one by one."""
    c, extremum = c_type(dtype), WRAPPING[op]
    spelled = spell(Operation(op, dtype, (dtype, dtype), ("x", "y")))
    bodies = [
        f"{c} x = a[i], y = b[i]; {c} m = {spelled}; out[i] = ~m;",
        f"{c} x = a[i], y = b[i]; {c} m = {spelled}; out[i] = -1 - m;",
        f"{c} x = ~a[i], y = ~b[i]; out[i] = {spelled};",
    ]
    # Each alone: what else uses the extremum hides the fault.
    kernels = [
        f"kernel void k{n}(global {c}* a, global {c}* b, global {c}* out) {{\n"
        f"  i64 i = get_global_id(0);\n  {body}\n}}"
        for n, body in enumerate(bodies)
    ]
    numbers = np.arange(64, dtype=storage(dtype))
    a, b = numbers, numbers[::-1].copy()
    launches = [Launch(f"k{n}", (0, 1, 2 + n), (64 // group,), (group,)) for n in range(3)]
    built = opencl.build(OPENCL.source(kernels))
    below, subtracted, above = opencl.run(built, launches, [a, b, *(np.zeros_like(a),) * 3])[2:]
    np.testing.assert_array_equal(below, ~extremum(a, b))
    np.testing.assert_array_equal(subtracted, ~extremum(a, b))
    np.testing.assert_array_equal(above, extremum(~a, ~b))
