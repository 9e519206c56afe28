"""What the bestiary asks of its nodes: which RANGEs they close, and whether lanes go through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bestiary_lines import read
from kernels import (
    add,
    argument,
    at,
    fragment,
    kernel_param,
    matrices,
    program,
    special,
    times,
    vector,
)

from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.fragments import fragments_of
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import (
    AddrSpace,
    AxisType,
    BufferArg,
    DTypeArg,
    LanesArg,
    ParamArg,
    PtrAddArg,
    RangeArg,
    ReduceArg,
    Unit,
    WmmaArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.editions import parse, print_program
from uop.spec.editions.bestiary import closed_ranges, is_expandable, priority
from uop.spec.editions.bestiary_args import BestiaryAxisType
from uop.spec.errors import InvalidError, UndefinedError
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.codegen import WARP
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, dims, index_const, param

PRIORITIES = {
    "PLACEHOLDER": -3, "LOOP": -1, "GLOBAL": 0, "THREAD": 0, "WARP": 1, "LOCAL": 2,
    "GROUP_REDUCE": 2, "UPCAST": 3, "REDUCE": 4, "UNROLL": 5,
}  # fmt: skip

ELEMENT = "%0 = PARAM {slot=0, dtype=int32, size=6, addrspace=GLOBAL}"
LOOPS = (
    "%1 = RANGE 2 {axis_id=0, axis_type=GLOBAL}",
    "%2 = RANGE 3 {axis_id=1, axis_type=LOCAL}",
)


@pytest.mark.parametrize("name", PRIORITIES)
def test_each_axis_type_has_its_priority(name: str) -> None:
    assert {t.name for t in BestiaryAxisType} == set(PRIORITIES)
    u = read(f"%0 = RANGE 4 {{axis_id=7, axis_type={name}}}")
    assert priority(u) == PRIORITIES[name]
    core = "LOOP" if name == "PLACEHOLDER" else name
    assert (u.op, u.arg) == (Op.RANGE, RangeArg(7, AxisType[core]))
    assert parse(print_program(u, "bestiary")) is u


ENDING = {
    "END": ("%3 = ADD %1, %2", "%4 = INDEX %0, %3", "%5 = CAST %3 {dtype=int32}",
            "%6 = STORE %4, %5", "%7 = END %6, %1, %2"),
    "STORE": ("%3 = ADD %1, %2", "%4 = INDEX %0, %3", "%5 = CAST %3 {dtype=int32}",
              "%6 = STORE %4, %5, %1, %2"),
    "STORE by a gate": ("%3 = ADD %1, %2", "%4 = CMPLT %3, 2",
                        "%5 = INDEX %0, %3, %4 {gated=true}", "%6 = CAST %3 {dtype=int32}",
                        "%7 = STORE %5, %6, %1, %2"),
    "REDUCE": ("%3 = ADD %1, %2", "%4 = REDUCE %3, %1, %2 {reduce_op=ADD}"),
    "BUFFERIZE": ("%3 = ADD %1, %2", "%4 = BUFFERIZE %3, %1, %2 {addrspace=GLOBAL}"),
    "FUNCTION": ("%3 = PARAM [] {slot=0, dtype=index}", "%4 = TUPLE %3", "%5 = FUNCTION %4, %1"),
}  # fmt: skip


def closed_below(u: UOp) -> set[UOp]:
    """What the ENDs around a body and the node itself close."""
    below = closed_below(u.src[0]) if u.op is Op.END else set[UOp]()
    return {*closed_ranges(u), *below}


@pytest.mark.parametrize("name", ENDING)
def test_what_ends_a_range_closes_it(name: str) -> None:
    used = [line for line in (ELEMENT, *LOOPS) if any(line[:2] in x for x in ENDING[name])]
    u = read(*used, *ENDING[name])
    loops = {v for v in u.toposort() if v.op is Op.RANGE}
    assert len(loops) == (1 if name == "FUNCTION" else 2)
    assert closed_below(u) == loops
    if name not in ("BUFFERIZE", "FUNCTION"):
        assert open_ranges(u.toposort())[u] == set()


def test_no_op_closes_the_loop_that_counts_its_value() -> None:
    place = UOp(Op.PARAM, dims((4,)), arg=ParamArg(0, dtypes.index, None, AddrSpace.GLOBAL))
    value, closed = (UOp(Op.RANGE, index_const(4), arg=RangeArg(k)) for k in range(2))
    assert closed_ranges(UOp(Op.STORE, UOp(Op.INDEX, place, value), value)) == ()
    assert closed_ranges(UOp(Op.REDUCE, value, closed, arg=ReduceArg(Op.ADD))) == (closed,)
    assert closed_ranges(UOp(Op.STAGE, value, closed)) == (closed,)


def test_a_matrix_product_and_a_kernel_close_none_but_those_they_are_given() -> None:
    half, single = (
        param(k, (n,), d) for k, n, d in ((0, 8, dtypes.float16), (2, 4, dtypes.float32))
    )
    b = param(1, (4,), dtypes.float16)
    arg = WmmaArg(16, 8, 16, dtypes.float16, dtypes.float32)
    assert closed_ranges(UOp(Op.WMMA, half, b, single, arg=arg)) == ()
    with pytest.raises(InvalidError, match=r"WMMA\.arity"):
        UOp(Op.WMMA, half, b, single, UOp(Op.RANGE, index_const(4), arg=RangeArg(0)), arg=arg)
    slot = UOp(Op.PARAM, dims((1,)), arg=ParamArg(0, dtypes.index))
    loop = UOp(Op.RANGE, index_const(4), arg=RangeArg(0))
    kernel = UOp(Op.CALL, UOp(Op.SINK, UOp(Op.GROUP)), loop)
    assert closed_ranges(kernel) == (loop,)
    assert closed_ranges(UOp(Op.CALL, UOp(Op.SINK, UOp(Op.GROUP)), slot)) == ()


LANES = 4


def lane(v: UOp) -> UOp:
    return UOp(Op.UNROLL, v, arg=LanesArg((0,), (LANES,)))


def collected(x: UOp) -> UOp:
    return UOp(Op.CONTRACT, x, arg=LanesArg((0,), (LANES,)))


def distinct(count: int, dtype: DType, start: int = 0) -> Array:
    if dtype is dtypes.bool:
        return (np.arange(start, start + count) % 3 == 1).astype(np.bool_)
    return np.arange(1 + start, 1 + start + count).astype(np_dtype(dtype))


def operand_dtypes(op: Op) -> list[DType]:
    """Dtypes that an elementwise op has a meaning on."""
    arity = len(DECLARATIONS[op].src)
    for dtype in (dtypes.float32, dtypes.int32, dtypes.bool, dtypes.uint64):
        given = [dtype] * arity
        if op is Op.WHERE:
            given[0] = dtypes.bool
        try:
            _node(op, [param(k, (), d) for k, d in enumerate(given)])
        except InvalidError:
            continue
        return given
    raise AssertionError(op)


def _node(op: Op, src: list[UOp]) -> UOp:
    return UOp(op, *src, arg=DTypeArg(dtypes.int16) if op is Op.CAST else None)


ELEMENTWISE = [op for op, d in DECLARATIONS.items() if d.is_elementwise]


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_every_elementwise_op_is_the_word_of_its_name(op: Op) -> None:
    u = _node(op, [param(k, (LANES,), d) for k, d in enumerate(operand_dtypes(op))])
    text = print_program(u, "bestiary")
    assert text.splitlines()[-1].split()[2] == op.name
    assert parse(text) is u


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_lanes_go_through_every_elementwise_op(op: Op) -> None:
    given = operand_dtypes(op)
    vectors = [param(k, (LANES,), d) for k, d in enumerate(given)]
    inputs = {k: distinct(LANES, d, 2 * k) for k, d in enumerate(given)}
    assert is_expandable(_node(op, vectors))
    by_lane = np.asarray(evaluate(collected(_node(op, [lane(v) for v in vectors])), inputs))
    np.testing.assert_array_equal(by_lane, np.asarray(evaluate(_node(op, vectors), inputs)))


V8 = param(0, (8,), dtypes.int32)
PLACE = UOp(Op.PARAM, dims((8,)), arg=ParamArg(0, dtypes.int32, None, AddrSpace.GLOBAL))
WHICH = param(1, (LANES,), dtypes.index)
LOOP = UOp(Op.RANGE, index_const(3), arg=RangeArg(5))
DATA = np.array([10, 21, 32, 43, 54, 65, 76, 87], np.int32)
ORDER = np.array([2, 0, 3, 1])

THROUGH: dict[str, tuple[UOp, list[int] | list[float]]] = {
    # Two elements for each lane: the one at position 1 of each.
    "GEP": (UOp(Op.INDEX, lane(V8), index_const(1)), [21, 43, 65, 87]),
    "VECTORIZE": (
        UOp(Op.STACK, UOp(Op.INDEX, lane(V8), index_const(1)), const(7, dtypes.int32)),
        [21, 7, 43, 7, 65, 7, 87, 7],
    ),
    "INDEX": (UOp(Op.INDEX, V8, lane(WHICH)), [32, 10, 43, 21]),
    "LOAD": (UOp(Op.LOAD, UOp(Op.INDEX, PLACE, lane(WHICH))), [32, 10, 43, 21]),
    "POINTER_INDEX": (
        UOp(Op.LOAD, UOp(Op.PTRADD, PLACE, lane(WHICH), arg=PtrAddArg(Unit.ELEMENTS))),
        [32, 10, 43, 21],
    ),
    "REDUCE": (UOp(Op.REDUCE, lane(V8), arg=ReduceArg(Op.ADD, (0,))), [31, 75, 119, 163]),
    "AFTER": (UOp(Op.AFTER, lane(V8), UOp(Op.GROUP)),  [10, 21, 32, 43, 54, 65, 76, 87]),
    "BUFFERIZE": (
        UOp(Op.STAGE, UOp(Op.ADD, UOp(Op.CAST, LOOP, arg=DTypeArg(dtypes.int32)),
            UOp(Op.INDEX, lane(V8), index_const(0))), LOOP),
        [10, 11, 12, 32, 33, 34, 54, 55, 56, 76, 77, 78],
    ),
    # Each integer is a subnormal by its bits.
    "BITCAST": (
        UOp(Op.BITCAST, UOp(Op.INDEX, lane(V8), index_const(0)), arg=DTypeArg(dtypes.float32)),
        [n * 2.0**-149 for n in (10, 32, 54, 76)],
    ),
    "BITCAST to another size": (
        UOp(Op.BITCAST, lane(V8), arg=DTypeArg(dtypes.uint16)),
        [10, 0, 21, 0, 32, 0, 43, 0, 54, 0, 65, 0, 76, 0, 87, 0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THROUGH)
def test_lanes_go_through_every_expandable_op(name: str) -> None:
    u, expected = THROUGH[name]
    for v in u.toposort():
        above = v.op is not Op.UNROLL and any(w.op is Op.UNROLL for w in v.toposort())
        assert is_expandable(v) or not above, v
    used = {v.arg.slot for v in u.toposort() if v.op is Op.PARAM}  # type: ignore[union-attr]
    inputs: dict[int, Any] = {k: v for k, v in ((0, DATA), (1, ORDER)) if k in used}
    assert np.asarray(evaluate(collected(u), inputs)).reshape(-1).tolist() == expected


def written(effect: UOp) -> list[int]:
    """What a program of one effect leaves in the buffer of slot 0."""
    used = {v.arg.slot for v in effect.toposort() if isinstance(v.arg, (ParamArg, BufferArg))}
    inputs = {slot: data for slot, data in ((0, DATA), (1, ORDER)) if slot in used}
    result = evaluate(UOp(Op.SINK, effect), inputs)
    assert isinstance(result, dict)
    return np.asarray(result[0]).tolist()


BUFFER = UOp(Op.BUFFER, dims((8,)), arg=BufferArg(0, dtypes.int32))
SQUARE = UOp(Op.CAST, UOp(Op.MUL, lane(WHICH), lane(WHICH)), arg=DTypeArg(dtypes.int32))
STORED = UOp(Op.STORE, UOp(Op.INDEX, BUFFER, lane(WHICH)), SQUARE)


def test_a_write_of_lanes_writes_each_of_them() -> None:
    assert is_expandable(STORED)
    assert written(STORED) == [0, 1, 4, 9, 54, 65, 76, 87]
    gate = UOp(Op.CMPLT, lane(WHICH), index_const(2))
    gated = UOp(Op.STORE, *STORED.src, gate)
    assert written(gated) == [0, 1, 32, 43, 54, 65, 76, 87]
    with pytest.raises(InvalidError, match=r"CONTRACT\.c"):
        collected(STORED)


def test_lanes_of_two_axes_write_their_product() -> None:
    """Axis 0 chooses the row of 4 elements, axis 1 the element; the order of UNROLLs is free."""
    rows, columns = (
        UOp(Op.UNROLL, UOp(Op.STACK, *map(index_const, values)), arg=LanesArg((axis,), (n,)))
        for axis, n, values in ((0, 2, (0, 4)), (1, 3, (0, 1, 3)))
    )
    place = UOp(Op.ADD, columns, rows)
    value = UOp(Op.CAST, UOp(Op.SUB, columns, rows), arg=DTypeArg(dtypes.int32))
    stored = UOp(Op.STORE, UOp(Op.INDEX, BUFFER, place), value)
    assert written(UOp(Op.GROUP, stored, UOp(Op.GROUP))) == [0, 1, 32, 3, -4, -3, 76, -1]


def test_the_end_of_a_loop_passes_lanes_on() -> None:
    """Iteration r of 3 adds r to each lane, so the last one is what stays."""
    order = lane(UOp(Op.STACK, *(index_const(int(k)) for k in ORDER)))
    value = UOp(Op.CAST, UOp(Op.ADD, order, LOOP), arg=DTypeArg(dtypes.int32))
    stored = UOp(Op.STORE, UOp(Op.INDEX, kernel_param(0, 8), order), value)
    ended = UOp(Op.END, stored, LOOP)
    assert is_expandable(ended)
    assert written(program(UOp(Op.SINK, ended), 8)) == [2, 3, 4, 5, 54, 65, 76, 87]


def test_an_axis_of_two_factors_has_no_lanes() -> None:
    two = UOp(Op.UNROLL, UOp(Op.STACK, index_const(0), index_const(1)), arg=LanesArg((0,), (2,)))
    place = UOp(Op.ADD, lane(WHICH), two)
    with pytest.raises(UndefinedError, match="UNROLL"):
        written(UOp(Op.STORE, UOp(Op.INDEX, BUFFER, place), const(9, dtypes.int32)))


@pytest.mark.parametrize("collects", [True, False])
def test_a_matrix_product_passes_lanes_on(collects: bool) -> None:
    """Two lanes of fragments are two products, side by side as CONTRACT collects them; added to
    what stands in one place, both count.
    """
    arg = WmmaArg(16, 8, 16, dtypes.float16, dtypes.float32)
    warp, sizes = special(WARP, "lidx0"), (8, 4, 4)
    kinds = (dtypes.float16, dtypes.float16, dtypes.float32)
    both = [
        UOp(Op.UNROLL, fragment(slot, 2 * n * WARP, warp, 2 * n, kind), arg=LanesArg((7,), (2,)))
        for slot, n, kind in zip((1, 2, 3), sizes, kinds, strict=True)
    ]
    product = UOp(Op.WMMA, *both, arg=arg)
    assert is_expandable(product)
    value = UOp(Op.CONTRACT, product, arg=LanesArg((7,), (2,))) if collects else product
    places = vector([add(times(warp, 8), e) for e in range(8 if collects else 4)])
    writes = Op.STORE if collects else Op.ATOMICADD
    body = UOp(writes, at(kernel_param(0, 8 * WARP, dtypes.float32), places), value)
    counts = (8 * WARP, *(2 * n * WARP for n in sizes))
    buffers = zip(counts, (dtypes.float32, *kinds), strict=True)
    root = program(UOp(Op.SINK, body), *(argument(k, n, d) for k, (n, d) in enumerate(buffers)))
    draw = np.random.default_rng(3)
    pairs = [
        [draw.integers(-4, 5, size) for size in ((16, 16), (16, 8), (16, 8))] for _ in range(2)
    ]
    given = [matrices(arg, *(x.astype(np.float64) for x in pair)) for pair in pairs]
    inputs = {
        slot: np.concatenate([g[slot].reshape(WARP, -1) for g in given], 1).reshape(-1)
        for slot in (1, 2, 3)
    }
    inputs[0] = np.zeros(8 * WARP, np.float32)
    result = evaluate(root, inputs)
    assert isinstance(result, dict)
    lanes = result[0].reshape(WARP, 2, 4)
    products = [a @ b + c for a, b, c in pairs]
    for k, want in enumerate(products if collects else [sum(products)]):
        np.testing.assert_array_equal(fragments_of(arg).acc.gather(lanes[:, k]), want)
