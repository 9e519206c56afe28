"""Matrix instructions: the lane maps, and products of whole matrices through fragments."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from kernels import (
    add,
    argument,
    at,
    below,
    fragment,
    kernel_param,
    load,
    loop,
    program,
    special,
    times,
    vector,
    warp_product,
)

from uop.conformance.suite.levels.kernel.scalar import Listing
from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.fragments import SHAPES, LaneMap, fragments_of
from uop.interpreter.kernel.launch import run_program
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.values import Value
from uop.spec.args import AddrSpace, AxisType, BufferArg, WmmaArg
from uop.spec.dtype import FLOATS, dtypes
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.ops.codegen import WARP, fragment_shapes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

HALF = WmmaArg(16, 8, 16, dtypes.float16, dtypes.float32)


def spelled(arg: WmmaArg) -> str:
    return f"m{arg.m}n{arg.n}k{arg.k}-{arg.dtype_in.name}-{arg.dtype_out.name}"


every_shape = pytest.mark.parametrize("arg", SHAPES, ids=spelled)


@every_shape
def test_lane_maps_are_bijections_onto_the_matrix(arg: WmmaArg) -> None:
    maps, shapes = fragments_of(arg), fragment_shapes(arg)
    assert shapes is not None
    sizes = {"a": (arg.m, arg.k), "b": (arg.k, arg.n), "acc": (arg.m, arg.n)}
    for (name, size), (elements,) in zip(sizes.items(), shapes, strict=True):
        found: LaneMap = getattr(maps, name)
        assert found.lane.shape == found.element.shape == size
        places = set(zip(found.lane.flat, found.element.flat, strict=True))
        assert places == {(lane, e) for lane in range(WARP) for e in range(elements)}
        matrix = np.arange(size[0] * size[1]).reshape(size)
        assert np.array_equal(found.gather(found.scatter(matrix)), matrix)


EXISTING = {
    (16, 8, 16, "float16", "float32"), (16, 8, 16, "float16", "float16"),
    (16, 8, 16, "bfloat16", "float32"),
    (16, 8, 8, "float16", "float32"), (16, 8, 8, "float16", "float16"),
    (16, 8, 8, "float32", "float32"),
    (16, 8, 32, "fp8e4m3", "float32"), (16, 8, 32, "fp8e5m2", "float32"),
}  # fmt: skip
"""The sizes and dtypes of the lane maps, by hand from the tables of PTX."""


def test_these_products_exist_and_no_others() -> None:
    for m, n, k, a, acc in product(*[(8, 16, 32)] * 3, FLOATS, FLOATS):
        arg = WmmaArg(m, n, k, a, acc)
        if (m, n, k, a.name, acc.name) in EXISTING:
            assert fragments_of(arg).a.lane.shape == (m, k)
            continue
        with pytest.raises(UnsupportedError, match="no lane map of WMMA"):
            fragments_of(arg)


KNOWN = {
    # (row, column) of elements 0, 1, ... that lane 13 holds, by hand from the tables of PTX.
    ("a", HALF): [(3, 2), (3, 3), (11, 2), (11, 3), (3, 10), (3, 11), (11, 10), (11, 11)],
    ("b", HALF): [(2, 3), (3, 3), (10, 3), (11, 3)],
    ("acc", HALF): [(3, 2), (3, 3), (11, 2), (11, 3)],
    ("a", WmmaArg(16, 8, 8, dtypes.float32, dtypes.float32)): [(3, 1), (11, 1), (3, 5), (11, 5)],
    ("b", WmmaArg(16, 8, 8, dtypes.float32, dtypes.float32)): [(1, 3), (5, 3)],
    ("b", WmmaArg(16, 8, 32, dtypes.fp8e4m3, dtypes.float32)): [
        (4, 3), (5, 3), (6, 3), (7, 3), (20, 3), (21, 3), (22, 3), (23, 3),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arg"), KNOWN, ids=lambda x: x if isinstance(x, str) else spelled(x)
)
def test_a_lane_holds_what_the_tables_say(name: str, arg: WmmaArg) -> None:
    found: LaneMap = getattr(fragments_of(arg), name)
    held = {
        int(found.element[place]): place
        for place in np.ndindex(found.lane.shape)
        if found.lane[place] == 13
    }
    assert [held[e] for e in range(len(held))] == KNOWN[name, arg]


def multiplied(arg: WmmaArg, a: Array, b: Array, acc: Array) -> Array:
    """The matrices through one instruction, back as a matrix."""
    maps = fragments_of(arg)
    kinds = (arg.dtype_in, arg.dtype_in, arg.dtype_out)
    given = {
        slot: m.scatter(x.astype(np_dtype(dtype))).reshape(-1)
        for slot, m, x, dtype in zip(
            (1, 2, 3), (maps.a, maps.b, maps.acc), (a, b, acc), kinds, strict=True
        )
    }
    result = evaluate(warp_product(arg, special(WARP, "lidx0")), given)
    assert isinstance(result, dict)
    return maps.acc.gather(result[0].reshape(WARP, -1))


@every_shape
def test_products_of_small_integers_are_those_of_the_matrices(arg: WmmaArg) -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 5, (arg.m, arg.k)), random.integers(-4, 5, (arg.k, arg.n))
    acc = random.integers(-99, 100, (arg.m, arg.n))
    assert np.array_equal(multiplied(arg, a, b, acc).astype(np.int64), a @ b + acc)


def rounded(exact: Fraction, like: Array) -> Fraction:
    """The nearest float32 or float16, of an exact value in its normal range."""
    bits = {2: 11, 4: 24}[like.dtype.itemsize]
    if exact == 0:
        return exact
    scale = Fraction(2) ** (abs(exact).numerator.bit_length() - abs(exact).denominator.bit_length())
    while abs(exact) < scale:
        scale /= 2
    while abs(exact) >= 2 * scale:
        scale *= 2
    ulp = scale * 2 / 2**bits
    return round(exact / ulp) * ulp


@every_shape
def test_sums_are_rounded_once_at_each_step_from_left_to_right(arg: WmmaArg) -> None:
    """Against exact fractions; float32 operands lose their last 13 bits first (D-067)."""
    random = np.random.default_rng(1)
    storage = np_dtype(arg.dtype_in)
    a = (random.random((arg.m, arg.k)) - 0.5).astype(storage)
    b = (random.random((arg.k, arg.n)) - 0.5).astype(storage)
    acc = (random.random((arg.m, arg.n)) * 8 + 1).astype(np_dtype(arg.dtype_out))
    found = multiplied(arg, a, b, acc)
    kept = np.uint32(0xFFFFE000)
    if storage == np.float32:
        a, b = ((x.view(np.uint32) & kept).view(np.float32) for x in (a, b))
    for i, j in ((0, 0), (3, 5), (15, 7)):
        total = Fraction(float(acc[i, j]))
        for k in range(arg.k):
            total = rounded(total + Fraction(float(a[i, k])) * Fraction(float(b[k, j])), acc)
        assert Fraction(float(found[i, j])) == total


def test_special_values_go_through() -> None:
    a, b, acc = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
    a[0, 3], b[3, 0] = np.inf, 2.0
    a[1, 3], a[2, 0], b[0, 1], acc[4, 4] = np.nan, 65504.0, 65504.0, -0.0
    found = multiplied(HALF, a, b, acc)
    assert found[0, 0] == np.inf
    assert np.isnan(found[0, 1])
    assert np.isnan(found[1]).all()
    assert found[2, 1] == np.float32(65504.0) ** 2
    assert found[4, 4] == 0


def test_a_gemm_of_tiles_equals_the_integer_product() -> None:
    """32 x 16 x 32, four warps in two workgroups, an accumulator in a loop over tiles of k."""
    m, n, k = 32, 16, 32
    maps, dtype = fragments_of(HALF), dtypes.float16
    group, item = special(2, "gidx0"), special(2 * WARP, "lidx0")
    lane = UOp(Op.MOD, item, index_const(WARP))
    row = times(group, 16)
    column = times(UOp(Op.IDIV, item, index_const(WARP)), 8)
    accumulator = UOp(Op.BUFFER, dims((4,)), arg=BufferArg(0, dtypes.float32, None, AddrSpace.REG))
    every = vector([index_const(e) for e in range(4)])
    listing, tile = Listing(), loop(0, 2, AxisType.REDUCE)
    zero = const(0.0, dtypes.float32)
    listing.do(UOp(Op.STORE, UOp(Op.INDEX, accumulator, every), vector([zero] * 4)))

    def held(found: LaneMap, elements: int, row: UOp, column: UOp, width: int) -> UOp:
        """Places of the elements of a lane, looked up in the lane map as tables of constants."""
        places = []
        for e in range(elements):
            rows, columns = np.zeros(WARP, np.int64), np.zeros(WARP, np.int64)
            for place in np.ndindex(found.lane.shape):
                if found.element[place] == e:
                    rows[found.lane[place]], columns[found.lane[place]] = place
            r, c = (
                UOp(Op.INDEX, vector([index_const(int(x)) for x in t]), lane)
                for t in (rows, columns)
            )
            places.append(add(times(add(row, r), width), add(column, c)))
        return vector(places)

    with listing.each(tile):
        depth = times(tile, 16)
        a = load(kernel_param(1, m * k, dtype), held(maps.a, 8, row, depth, k))
        b = load(kernel_param(2, k * n, dtype), held(maps.b, 4, depth, column, n))
        so_far = UOp(Op.LOAD, UOp(Op.INDEX, listing.now(accumulator), every))
        total = UOp(Op.WMMA, a, b, so_far, arg=HALF)
        listing.do(UOp(Op.STORE, UOp(Op.INDEX, accumulator, every), total))
    total = UOp(Op.LOAD, UOp(Op.INDEX, listing.now(accumulator), every))
    target = UOp(
        Op.INDEX, kernel_param(0, m * n, dtypes.float32), held(maps.acc, 4, row, column, n)
    )
    listing.do(UOp(Op.STORE, target, total))
    random = np.random.default_rng(2)
    a, b = random.integers(-9, 10, (m, k)), random.integers(-9, 10, (k, n))
    root = program(
        listing.body,
        argument(0, m * n, dtypes.float32),
        argument(1, m * k, dtype),
        argument(2, k * n, dtype),
    )
    result = evaluate(
        root, {1: a.astype(np.float16).reshape(-1), 2: b.astype(np.float16).reshape(-1)}
    )
    assert isinstance(result, dict)
    assert np.array_equal(result[0].reshape(m, n).astype(np.int64), a @ b)


def test_a_warp_range_holds_the_fragments_too() -> None:
    lane = loop(0, WARP, AxisType.WARP)
    shapes = fragment_shapes(HALF)
    assert shapes is not None
    operands = [
        fragment(slot, n * WARP, lane, n, d)
        for slot, (n,), d in zip(
            (1, 2, 3), shapes, [dtypes.float16] * 2 + [dtypes.float32], strict=True
        )
    ]
    places = vector([add(times(lane, 4), e) for e in range(4)])
    effect = UOp(
        Op.STORE,
        at(kernel_param(0, 128, dtypes.float32), places),
        UOp(Op.WMMA, *operands, arg=HALF),
    )
    root = program(
        UOp(Op.SINK, UOp(Op.END, effect, lane)),
        *(
            argument(k, n, d)
            for k, (n, d) in enumerate(
                [
                    (128, dtypes.float32),
                    (256, dtypes.float16),
                    (128, dtypes.float16),
                    (128, dtypes.float32),
                ]
            )
        ),
    )
    maps, random = fragments_of(HALF), np.random.default_rng(3)
    a, b = random.integers(-4, 5, (16, 16)), random.integers(-4, 5, (16, 8))
    given = {
        1: maps.a.scatter(a.astype(np.float16)).reshape(-1),
        2: maps.b.scatter(b.astype(np.float16)).reshape(-1),
        3: np.zeros(128, np.float32),
    }
    result = evaluate(root, given)
    assert isinstance(result, dict)
    assert np.array_equal(maps.acc.gather(result[0].reshape(WARP, 4)), a @ b)


def test_an_open_element_opens_its_row_or_column() -> None:
    maps = fragments_of(HALF)
    mask = maps.a.scatter(np.arange(256).reshape(16, 16) == 16 * 5 + 2).reshape(-1)
    root = warp_product(HALF, special(WARP, "lidx0"))
    arguments = root.src[0].src[1:]
    given = {
        arguments[1]: Value(np.zeros(256, np.float16), None, mask),
        arguments[2]: Value(np.zeros(128, np.float16)),
        arguments[3]: Value(np.zeros(128, np.float32)),
    }
    found = run_program(root, given, None)[0].unspecified
    assert found is not None
    matrix = maps.acc.gather(found.reshape(WARP, 4))
    assert matrix[5].all()
    assert not np.delete(matrix, 5, axis=0).any()


def test_a_part_of_a_warp_has_no_product() -> None:
    shapes = [np.zeros(n, d) for n, d in ((256, np.float16), (128, np.float16), (128, np.float32))]
    given = dict(enumerate(shapes, 1))
    lane = special(WARP, "lidx0")
    with pytest.raises(UndefinedError, match=r"WMMA\.u1(.|\n)*16 of 32"):
        evaluate(warp_product(HALF, lane, below(lane, 16)), given)
    with pytest.raises(UndefinedError, match=r"WMMA\.u2"):
        evaluate(warp_product(HALF, special(WARP // 2, "lidx0")), given)
    with pytest.raises(UndefinedError, match=r"WMMA\.u2"):
        evaluate(warp_product(HALF, special(WARP, "gidx0")), given)


def test_shapes_without_a_lane_map_are_unsupported() -> None:
    for arg in (
        WmmaArg(16, 16, 16, dtypes.float16, dtypes.float32),
        WmmaArg(16, 8, 16, dtypes.bfloat16, dtypes.float16),
    ):
        with pytest.raises(UnsupportedError, match="no lane map of WMMA m16"):
            fragments_of(arg)
