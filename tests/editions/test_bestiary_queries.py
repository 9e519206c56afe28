"""What the bestiary asks of its nodes: which RANGEs they close, and whether lanes go through."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import (
    AddrSpace,
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


def read(*lines: str) -> UOp:
    return parse("\n".join(("edition bestiary", *lines)))


@pytest.mark.parametrize("name", PRIORITIES)
def test_each_axis_type_has_its_priority(name: str) -> None:
    assert {t.name for t in BestiaryAxisType} == set(PRIORITIES)
    u = read(f"%0 = RANGE 4 {{axis_id=7, axis_type={name}}}")
    assert priority(u) == PRIORITIES[name]
    assert (u.op, cast(RangeArg, u.arg).id) == (Op.RANGE, 7)
    assert parse(print_program(u, "bestiary")) is u


ENDING = {
    "END": ("%3 = ADD %1, %2", "%4 = INDEX %0, %3", "%5 = CAST %3 {dtype=int32}",
            "%6 = STORE %4, %5", "%7 = END %6, %1, %2"),
    "STORE": ("%3 = ADD %1, %2", "%4 = INDEX %0, %3", "%5 = CAST %3 {dtype=int32}",
              "%6 = STORE %4, %5, %1, %2"),
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
    if name in ("END", "STORE", "REDUCE"):
        assert open_ranges(u.toposort())[u] == set()


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

THROUGH: dict[str, tuple[UOp, list[int]]] = {
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
    "BITCAST": (
        UOp(Op.BITCAST, UOp(Op.INDEX, lane(V8), index_const(0)), arg=DTypeArg(dtypes.uint32)),
        [10, 32, 54, 76],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THROUGH)
def test_lanes_go_through_every_expandable_op(name: str) -> None:
    u, expected = THROUGH[name]
    assert is_expandable(u)
    used = {v.arg.slot for v in u.toposort() if v.op is Op.PARAM}  # type: ignore[union-attr]
    inputs: dict[int, Any] = {k: v for k, v in ((0, DATA), (1, ORDER)) if k in used}
    assert np.asarray(evaluate(collected(u), inputs)).reshape(-1).tolist() == expected


def test_lanes_of_an_effect_or_a_matrix_product_are_no_value_to_collect() -> None:
    """A CONTRACT collects values: an effect has none, and that of a warp is no lane's own."""
    stored = UOp(Op.STORE, UOp(Op.INDEX, PLACE, lane(WHICH)), const(9, dtypes.int32))
    ended = UOp(Op.END, stored, LOOP)
    for u in (stored, ended):
        assert is_expandable(u)
        with pytest.raises(InvalidError, match=r"CONTRACT\.c"):
            collected(u)
    with pytest.raises(UndefinedError, match="UNROLL"):
        evaluate(UOp(Op.SINK, stored), {0: DATA, 1: ORDER})
    sizes = ((8, dtypes.float16), (4, dtypes.float16), (4, dtypes.float32))
    fragments = [param(k, (n * LANES,), d) for k, (n, d) in enumerate(sizes)]
    arg = WmmaArg(16, 8, 16, dtypes.float16, dtypes.float32)
    product = UOp(Op.WMMA, *(lane(f) for f in fragments), arg=arg)
    assert is_expandable(product)
    assert collected(product).shape == (4 * LANES,)
    zeros = {k: np.zeros(f.shape, np_dtype(f.dtype)) for k, f in enumerate(fragments)}
    with pytest.raises(UndefinedError, match="WMMA outside a kernel"):
        evaluate(collected(product), zeros)
