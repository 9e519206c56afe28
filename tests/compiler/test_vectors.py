"""Vectors in select: expanded values as vectors of the target and scalars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uop.compiler.build import ZERO_FILL
from uop.compiler.pipeline import compile, lower
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.targets.cuda import CUDA
from uop.compiler.targets.opencl import OPENCL
from uop.compiler.targets.prelude import SMALL
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import DTypeArg, FlipArg, PermuteArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param

A, B = param(0, (16, 12), dtypes.float32), param(1, (12, 32), dtypes.float32)


def product(a: UOp = A, b: UOp = B, dtype: DType = dtypes.float32) -> UOp:
    """The matrix product, as its sum over the middle axis."""
    (m, k), n = a.shape, b.shape[1]
    wide = [UOp(Op.CAST, u, arg=DTypeArg(dtype)) if u.dtype is not dtype else u for u in (a, b)]
    left = UOp(Op.EXPAND, UOp(Op.RESHAPE, wide[0], dims((m, k, 1))), dims((m, k, n)))
    right = UOp(Op.EXPAND, UOp(Op.RESHAPE, wide[1], dims((1, k, n))), dims((m, k, n)))
    return UOp(Op.REDUCE, UOp(Op.MUL, left, right), arg=ReduceArg(Op.ADD, (1,)))


def nodes(root: UOp, text: str, stage: str = "select") -> tuple[UOp, ...]:
    return tuple(lower(root, stage, optimizations=[parse_optimizations(text)]).toposort())


def data(u: UOp, seed: int) -> Array:
    """Small integers, whose sums are exact in every order."""
    numbers = np.random.default_rng(seed).integers(-4, 5, u.shape)
    dtype = {dtypes.float32: np.float32, dtypes.int8: np.int8, dtypes.float64: np.float64}
    return numbers.astype(dtype[u.dtype])


TILE = "SPLIT(0, 4, UPCAST); SPLIT(2, 16, UPCAST)"


def test_a_tile_of_a_product_is_a_loop_over_vectors_of_accumulators() -> None:
    found = nodes(product(), TILE)
    vectors = [u for u in found if u.op is Op.MUL and u.dtype is dtypes.float32]
    assert len(vectors) == 4 * 16 // 8
    assert {u.shape for u in vectors} == {(8,)}
    assert sum(u.op is Op.RANGE for u in found) == 1
    # What one side repeats is read once: four scalars of A, two vectors of B.
    reads = [u for u in found if u.op is Op.LOAD and u.src[0].src[0].op is Op.PARAM]
    assert sorted(u.shape for u in reads) == [()] * 4 + [(8,)] * 2


def test_a_product_of_rows_by_rows_has_vectors_along_the_fold() -> None:
    rows = UOp(Op.PERMUTE, param(1, (8, 64), dtypes.float32), arg=PermuteArg((1, 0)))
    found = nodes(
        product(param(0, (8, 64), dtypes.float32), rows),
        "SPLIT(0, 4, UPCAST); SPLIT(2, 2, UPCAST); SPLIT(4, 8, UNROLL)",
    )
    # An accumulator for each of 4 x 2 outputs, and the vectors of 4 and of 2 rows.
    vectors = [u for u in found if u.op is Op.MUL and u.dtype is dtypes.float32]
    assert [u.shape for u in vectors] == [(8,)] * 8
    reads = [u for u in found if u.op is Op.LOAD and u.src[0].src[0].op is Op.PARAM]
    assert [u.shape for u in reads] == [(8,)] * (4 + 2)
    folds = [s for u in vectors for s in u.src if s.op is Op.STACK]
    assert not folds


def test_a_store_to_no_neighbours_is_one_of_scalars() -> None:
    x = param(0, (8, 16), dtypes.float32)
    turned = UOp(Op.PERMUTE, x, arg=PermuteArg((1, 0)))
    stores = [u for u in nodes(turned, "SPLIT(1, 8, UPCAST)") if u.op is Op.STORE]
    assert [u.src[1].shape for u in stores] == [(8,)]
    stores = [u for u in nodes(turned, "SPLIT(0, 8, UPCAST)") if u.op is Op.STORE]
    assert [u.src[1].shape for u in stores] == [()] * 8
    # The elements are read as a vector all the same.
    assert any(u.op is Op.LOAD and u.shape == (8,) for u in nodes(turned, "SPLIT(0, 8, UPCAST)"))


def test_a_target_without_vectors_has_scalars() -> None:
    target = replace(CUDA, vectors=None)
    program = lower(product(), "select", target, [parse_optimizations(TILE)])
    assert all(not u.shape or u.addrspace or u.op is Op.STACK for u in program.toposort())


def test_a_vector_with_closed_gates_is_read_element_by_element(opencl: OpenCLDevice) -> None:
    """Beyond 12 nothing may be read or written."""
    root = UOp(Op.NEG, param(0, (3, 12), dtypes.float32))
    sequence = [parse_optimizations("PADTO(1, 24); SPLIT(1, 8, UPCAST)")]
    compiled = compile(root, optimizations=sequence)
    reads = [u for u in compiled.stages["select"].toposort() if u.op is Op.LOAD]
    assert [u.shape for u in reads] == [(8,)]
    assert len(set(reads[0].src[2].src)) == 8
    assert " ? load_float8(b1 + " in compiled.source
    assert "else { if (" in compiled.source
    x = np.arange(36, dtype=np.float32).reshape(3, 12)
    np.testing.assert_array_equal(np.asarray(compiled.run({0: x}, opencl)), -x)


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.int8, dtypes.uint16, dtypes.int64])
def test_the_largest_elements_fill_a_register(dtype: DType) -> None:
    x = param(0, (64,), dtype)
    found = nodes(UOp(Op.ADD, x, x), "SPLIT(0, 64, UPCAST)")
    widths = {u.shape[0] for u in found if u.op is Op.ADD and u.dtype is dtype}
    assert widths == {min(32 // dtype.itemsize, 16)}


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "text",
    [
        TILE,
        "SPLIT(2, 4, UNROLL)",
        "SPLIT(2, 12, UNROLL)",
        "SPLIT(0, 4, UPCAST); SPLIT(3, 3, UNROLL); SPLIT(2, 8, UPCAST)",
        "SPLIT(2, 4, GROUP_REDUCE); SPLIT(0, 8, UPCAST)",
        "SPLIT(2, 4, GROUP_REDUCE); SPLIT(0, 4, UPCAST); SPLIT(2, 16, UPCAST)",
        "SPLIT(1, 8, LOCAL); SPLIT(0, 2, UPCAST)",
        "PADTO(0, 5); SPLIT(0, 5, UPCAST); PADTO(2, 24); SPLIT(2, 24, UPCAST)",
    ],
)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int8, dtypes.float64])
def test_every_form_of_a_product_is_numpys(opencl: OpenCLDevice, text: str, dtype: DType) -> None:
    a, b = param(0, (16, 12), dtype), param(1, (12, 32), dtype)
    to = dtypes.int32 if dtype is dtypes.int8 else dtype
    arrays = {0: data(a, 1), 1: data(b, 2)}
    expected = arrays[0].astype(np.int64) @ arrays[1].astype(np.int64)
    root, chosen = product(a, b, to), [parse_optimizations(text)]
    for stage in ("expand", "select", "linearize"):
        result = evaluate(lower(root, stage, optimizations=chosen), arrays)
        assert isinstance(result, dict)
        (found,) = result.values()
        np.testing.assert_array_equal(found.reshape(16, 32), expected, stage)
    on_device = compile(root, optimizations=chosen).run(arrays, opencl)
    np.testing.assert_array_equal(np.asarray(on_device).reshape(16, 32), expected)


@pytest.mark.slow
@settings(deadline=None)
@given(st.data())
def test_sums_along_any_axis_in_any_tile(choice: st.DataObject) -> None:
    """A fold of a turned, flipped or padded view, unrolled and expanded at random."""
    x = param(0, (8, 12), dtypes.int32)
    view = choice.draw(st.sampled_from(["", "turned", "flipped"]))
    if view == "turned":
        v = UOp(Op.PERMUTE, x, arg=PermuteArg((1, 0)))
    else:
        v = UOp(Op.FLIP, x, arg=FlipArg((False, True))) if view else x
    axis = choice.draw(st.integers(0, 1))
    other = v.shape[1 - axis]
    root = UOp(Op.REDUCE, UOp(Op.MUL, v, const(3, dtypes.int32)), arg=ReduceArg(Op.ADD, (axis,)))
    up = choice.draw(st.sampled_from([d for d in (1, 2, 4, 8, 12) if other % d == 0]))
    roll = choice.draw(st.sampled_from([d for d in (1, 2, 4, 8, 12) if v.shape[axis] % d == 0]))
    text = f"SPLIT(0, {up}, UPCAST); SPLIT(2, {roll}, UNROLL)"
    array = np.arange(96, dtype=np.int32).reshape(8, 12) - 40
    seen = array.T if view == "turned" else array[:, ::-1] if view else array
    for stage in ("expand", "select"):
        result = evaluate(lower(root, stage, OPENCL, [parse_optimizations(text)]), {0: array})
        assert isinstance(result, dict)
        (found,) = result.values()
        np.testing.assert_array_equal(found, 3 * seen.sum(axis=axis, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_every_small_float_is_cast_in_vectors_as_alone(opencl: OpenCLDevice, dtype: DType) -> None:
    """All bits of a small float to float32; and back with what is just above each, and around the
    middle between it and the next one.
    """
    count = 1 << dtype.bits
    bits = param(0, (count,), dtypes.uint16 if dtype.bits == 16 else dtypes.uint8)
    small = UOp(Op.BITCAST, bits, arg=DTypeArg(dtype))
    wide = UOp(
        Op.BITCAST, UOp(Op.CAST, small, arg=DTypeArg(dtypes.float32)), arg=DTypeArg(dtypes.uint32)
    )
    patterns = np.arange(count, dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    ends = in_vectors_as_alone(opencl, wide, patterns)
    halves = param(0, (count,), dtypes.uint32)
    floats = UOp(Op.BITCAST, halves, arg=DTypeArg(dtypes.float32))
    back = UOp(Op.BITCAST, UOp(Op.CAST, floats, arg=DTypeArg(dtype)), arg=DTypeArg(bits.dtype))
    half = 1 << (22 - dtype.format.fraction_bits)
    for above in (0, 1, half - 1, half, half + 1, 2 * half - 1):
        in_vectors_as_alone(opencl, back, ends + np.uint32(above))


@pytest.mark.slow
@pytest.mark.parametrize("op", [Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT])
def test_a_function_of_nan_is_nan_in_vectors_too(opencl: OpenCLDevice, op: Op) -> None:
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5], np.float32)
    root = UOp(op, param(0, (8,), dtypes.float32))
    found = compile(root, optimizations=[parse_optimizations("SPLIT(0, 8, UPCAST)")])
    assert f"{op.name.lower()}_float8(" in found.source
    expected = compile(root, optimizations=()).run({0: values}, opencl)
    np.testing.assert_array_equal(np.asarray(found.run({0: values}, opencl)), expected)


def in_vectors_as_alone(opencl: OpenCLDevice, root: UOp, inputs: Array) -> Array:
    """The result with vectors, which is that without."""
    found = compile(root, optimizations=[parse_optimizations("SPLIT(0, 8, UPCAST)")])
    assert " = load_" in found.source
    assert ".s" not in found.source
    result = np.asarray(found.run({0: inputs}, opencl))
    alone = np.asarray(compile(root, optimizations=()).run({0: inputs}, opencl))
    np.testing.assert_array_equal(result, alone)
    return result


def test_a_comparison_chooses_in_vectors(opencl: OpenCLDevice) -> None:
    x, y = (param(slot, (16, 16), dtypes.float32) for slot in range(2))
    smaller = UOp(Op.WHERE, UOp(Op.CMPLT, x, y), x, y)
    compiled = compile(smaller, optimizations=[parse_optimizations("SPLIT(1, 8, UPCAST)")])
    assert "convert_uchar8(" in compiled.source
    a, b = (np.random.default_rng(k).standard_normal((16, 16), np.float32) for k in range(2))
    found = np.asarray(compiled.run({0: a, 1: b}, opencl))
    np.testing.assert_array_equal(found, np.minimum(a, b))


def test_conditions_on_indices_choose_in_vectors(opencl: OpenCLDevice) -> None:
    """Each element has a condition of its own, which depends on no memory."""
    ones = UOp(Op.EXPAND, UOp(Op.RESHAPE, const(1, dtypes.int32), dims((1,))), dims((7,)))
    padded = UOp(Op.PAD, ones, dims((2,)), dims((16,)), arg=ZERO_FILL)
    compiled = compile(padded, optimizations=[parse_optimizations("SPLIT(0, 8, UPCAST)")])
    assert "store_int8(" in compiled.source
    expected = [0] * 2 + [1] * 7 + [0] * 7
    assert np.asarray(compiled.run({}, opencl)).tolist() == expected


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
def test_a_sine_beside_that_of_a_large_number(opencl: OpenCLDevice, dtype: DType) -> None:
    values = np.array([1e30, 2.4e-38, 1.0, -0.0, np.nan, 3e5, -1e-3, np.inf])
    x = values.astype(np.float32 if dtype is dtypes.float32 else np.float64)
    root = UOp(Op.SIN, param(0, (8,), dtype))
    wide = compile(root, optimizations=[parse_optimizations("SPLIT(0, 8, UPCAST)")])
    assert "sin_float8(" in wide.source or "sin_double4(" in wide.source
    alone = compile(root, optimizations=()).run({0: x}, opencl)
    np.testing.assert_array_equal(np.asarray(wide.run({0: x}, opencl)), np.asarray(alone))
