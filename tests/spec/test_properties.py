"""dtype, shape, device, addrspace and axis of every op, against vectors made by hand."""

from __future__ import annotations

from itertools import product

import pytest

from uop.spec import latitude as lat
from uop.spec.args import (
    AddrSpace,
    BinaryArg,
    BufferArg,
    Device,
    DTypeArg,
    FlipArg,
    GetTupleArg,
    LoadArg,
    ParamArg,
    PermuteArg,
    RangeArg,
    ReduceArg,
    SpecialArg,
)
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.properties.interval import Interval
from uop.spec.properties.shape import broadcast_shapes
from uop.spec.registry import DECLARATIONS, OpDef
from uop.spec.uop import UOp, const, dims, index_const, param, variable

TWO = ("A", "B")


def buffer(
    shape: tuple[int, ...],
    dtype: DType = dtypes.float32,
    device: Device = None,
    addrspace: AddrSpace = AddrSpace.GLOBAL,
) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(0, dtype, device, addrspace))


def values(shape: tuple[int, ...], dtype: DType = dtypes.float32, device: Device = None) -> UOp:
    return param(0, shape, dtype, device)


X = values((2, 3, 4))
SHAPES = [
    (UOp(Op.PERMUTE, X, arg=PermuteArg((2, 0, 1))), (4, 2, 3)),
    (UOp(Op.FLIP, X, arg=FlipArg((True, False, True))), (2, 3, 4)),
    (UOp(Op.RESHAPE, X, dims((4, 6))), (4, 6)),
    (UOp(Op.EXPAND, values((1, 3, 1)), dims((5, 3, 0))), (5, 3, 0)),
    (UOp(Op.PAD, X, dims((1, 0, 2)), dims((4, 3, 7))), (4, 3, 7)),
    (UOp(Op.SHRINK, X, dims((1, 0, 2)), dims((1, 3, 0))), (1, 3, 0)),
    (UOp(Op.INDEX, X), (2, 3, 4)),
    (UOp(Op.INDEX, X, index_const(1)), (3, 4)),
    (UOp(Op.INDEX, X, dims((0, 0, 1, 1, 0))), (5, 3, 4)),
    (UOp(Op.INDEX, X, index_const(1), dims((0, 2)), index_const(3)), (2,)),
    (UOp(Op.INDEX, X, dims((0,)), index_const(2), dims((0, 2))), (1, 2)),
    (UOp(Op.STACK, X, X, X), (3, 2, 3, 4)),
    (UOp(Op.STACK), (0,)),
    (const(1, dtypes.int8), ()),
    (UOp(Op.BITCAST, X, arg=DTypeArg(dtypes.uint8)), (2, 3, 16)),
    (UOp(Op.BITCAST, X, arg=DTypeArg(dtypes.float64)), (2, 3, 2)),
    (UOp(Op.BITCAST, X, arg=DTypeArg(dtypes.int32)), (2, 3, 4)),
    (UOp(Op.BITCAST, const(1, dtypes.int8), arg=DTypeArg(dtypes.bool)), ()),
    (UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD, (0, 2))), (1, 3, 1)),
    (UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD)), (2, 3, 4)),
    (UOp(Op.ADD, values((2, 1, 4)), values((3, 1))), (2, 3, 4)),
    (UOp(Op.ADD, values((0,)), values((1,))), (0,)),
    (UOp(Op.WHERE, values((2, 1), dtypes.bool), values((3,)), values(())), (2, 3)),
    (UOp(Op.BINARY, arg=BinaryArg(b"abc")), (3,)),
    (UOp(Op.STORE, buffer((2,)), values((2,))), ()),
    (UOp(Op.LOAD, values((4, 3)), arg=LoadArg(TWO)), (4, 3)),
    (UOp(Op.SINK), ()),
    (UOp(Op.RANGE, index_const(4), arg=RangeArg(0)), ()),
]


@pytest.mark.parametrize(("u", "shape"), SHAPES, ids=lambda x: getattr(x, "op", Op.SINK).name)
def test_shapes(u: UOp, shape: tuple[int, ...]) -> None:
    assert u.shape == shape


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((2, 3), (3,)), (2, 3)),
        (((2, 1), (1, 3)), (2, 3)),
        (((), (4,)), (4,)),
        (((0, 1), (1,)), (0, 1)),
        (((2,), (3,)), None),
        (((2,), (0,)), None),
        (((2, 3), (2,)), None),
        ((), ()),
    ],
)
def test_broadcasting_is_right_aligned(
    shapes: tuple[tuple[int, ...], ...], expected: tuple[int, ...] | None
) -> None:
    assert broadcast_shapes(*shapes) == expected


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=repr)
def test_a_leaf_has_what_its_arg_says_and_may_have_any_value(dtype: DType) -> None:
    if dtype.kind is Kind.VOID:
        return
    any_value = Interval(dtype.min, dtype.max, dtype.is_float)
    for leaf in (buffer((4, 3), dtype, TWO), values((4, 3), dtype, TWO)):
        assert (leaf.dtype, leaf.shape, leaf.device) == (dtype, (4, 3), TWO)
        assert (leaf.min_max, leaf.axis) == (any_value, 0)


def test_a_variable_has_its_bounds() -> None:
    for low, high in ((0, 5), (-7, -7), (3, 1 << 40)):
        assert variable(0, low, high).min_max == Interval(low, high)


def test_a_write_has_no_value_and_is_where_its_location_is() -> None:
    here = buffer((4, 2), dtypes.int8, TWO)
    u = UOp(Op.STORE, here, values((4, 2), dtypes.int8))
    assert (u.dtype, u.shape, u.device) == (dtypes.void, (), TWO)
    assert (u.addrspace, u.min_max, u.axis) == (None, None, None)


def test_waiting_changes_no_property() -> None:
    few = UOp(Op.STACK, const(-3, dtypes.int8), const(5, dtypes.int8))
    turned = UOp(Op.PERMUTE, buffer((4, 2), device=TWO), arg=PermuteArg((1, 0)))
    elsewhere = UOp(Op.STORE, buffer((3,), device="C"), values((3,)))
    assert elsewhere.device == "C"
    for u in (few, turned, buffer((2,), dtypes.bool, "A", AddrSpace.REG)):
        for deps in ([UOp(Op.SINK)], [elsewhere]):
            after = UOp(Op.AFTER, u, *deps)
            assert (after.dtype, after.shape, after.device) == (u.dtype, u.shape, u.device)
            assert (after.addrspace, after.min_max, after.axis) == (u.addrspace, u.min_max, u.axis)


COMPARISONS = {Op.CMPLT, Op.CMPNE, Op.CMPGT, Op.CMPGE, Op.CMPLE, Op.CMPEQ}
SIMPLE = [d for d in DECLARATIONS.values() if d.is_elementwise and d.op not in (Op.CAST, Op.WHERE)]


@pytest.mark.parametrize("declaration", SIMPLE, ids=lambda d: d.op.name)
def test_elementwise_ops_take_their_dtypes_and_no_others(declaration: OpDef) -> None:
    for dtype in DTYPES.values():
        if dtype.kind is Kind.VOID:
            continue
        src = [values((2,), dtype)] * len(declaration.src)
        if dtype in declaration.dtypes:
            u = UOp(declaration.op, *src)
            assert u.dtype is (dtypes.bool if u.op in COMPARISONS else dtype)
        else:
            with pytest.raises(InvalidError, match=r"\.c1"):
                UOp(declaration.op, *src)


def test_shifts_count_in_any_integer_dtype_and_where_keeps_its_branches() -> None:
    for op, counts in product((Op.SHL, Op.SHR), (dtypes.int8, dtypes.uint64)):
        u = UOp(op, values((2,), dtypes.int32), values((2,), counts))
        assert u.dtype is dtypes.int32
    p = values((2,), dtypes.bool)
    assert UOp(Op.WHERE, p, values((), dtypes.fp8e5m2), values((), dtypes.fp8e5m2)).dtype is (
        dtypes.fp8e5m2
    )


def test_other_dtypes() -> None:
    assert UOp(Op.STACK).dtype is dtypes.index
    assert UOp(Op.STACK, const(1, dtypes.int8)).dtype is dtypes.int8
    assert UOp(Op.BINARY, arg=BinaryArg(b"")).dtype is dtypes.uint8
    assert UOp(Op.SPECIAL, index_const(2), arg=SpecialArg("g")).dtype is dtypes.index
    assert UOp(Op.CAST, X, arg=DTypeArg(dtypes.int8)).dtype is dtypes.int8
    packed = UOp(Op.TUPLE, X, const(1, dtypes.int8))
    assert packed.dtype is dtypes.void
    assert UOp(Op.GETTUPLE, packed, arg=GetTupleArg(1)).dtype is dtypes.int8


def test_a_function_gives_what_its_body_gives() -> None:
    narrow = UOp(Op.CAST, values((2, 3)), arg=DTypeArg(dtypes.int8))
    folded = UOp(Op.REDUCE, values((2, 3)), arg=ReduceArg(Op.ADD, (0,)))
    body = UOp(Op.TUPLE, narrow, folded)
    called = UOp(Op.FUNCTION, body, param(7, (2, 3), dtypes.float32, "GPU"))
    assert (called.dtype, called.device) == (dtypes.void, "GPU")
    for k, expected in enumerate(((dtypes.int8, (2, 3)), (dtypes.float32, (1, 3)))):
        u = UOp(Op.GETTUPLE, called, arg=GetTupleArg(k))
        assert (u.dtype, u.shape, u.device) == (*expected, "GPU")


def test_devices_come_from_the_first_source_that_has_one() -> None:
    here, nowhere = values((2,), device="CPU"), values((2,))
    assert nowhere.device is None
    assert UOp(Op.ADD, nowhere, here).device == "CPU"
    assert UOp(Op.PERMUTE, here, arg=PermuteArg((0,))).device == "CPU"
    assert UOp(Op.STORE, buffer((2,)), here).device == "CPU"
    assert UOp(Op.LOAD, here, arg=LoadArg("GPU")).device == "GPU"
    assert UOp(Op.LOAD, here).device == "CPU"
    assert UOp(Op.RANGE, index_const(2), arg=RangeArg(0)).device is None


HERE = buffer((2, 2), device="GPU")
STORED = UOp(Op.STORE, HERE, values((2, 2)))
ON_A_DEVICE = [
    HERE,
    values((2, 2), device="GPU"),
    UOp(Op.PERMUTE, HERE, arg=PermuteArg((1, 0))),
    UOp(Op.FLIP, HERE, arg=FlipArg((True, False))),
    UOp(Op.RESHAPE, HERE, dims((4,))),
    UOp(Op.EXPAND, values((1, 2), device="GPU"), dims((2, 2))),
    UOp(Op.PAD, HERE, dims((1, 0)), dims((3, 2))),
    UOp(Op.SHRINK, HERE, dims((1, 0)), dims((1, 2))),
    UOp(Op.INDEX, HERE, index_const(1)),
    UOp(Op.STACK, HERE, HERE),
    UOp(Op.BITCAST, HERE, arg=DTypeArg(dtypes.uint32)),
    UOp(Op.REDUCE, HERE, arg=ReduceArg(Op.ADD, (0,))),
    UOp(Op.LOAD, HERE),
    STORED,
    UOp(Op.AFTER, HERE, STORED),
    *(UOp(op, HERE) for op in (Op.CONTIGUOUS, Op.CONTIGUOUSBACKWARD, Op.DETACH)),
]


@pytest.mark.parametrize("u", ON_A_DEVICE, ids=lambda u: u.op.name)
def test_what_is_made_of_one_device_is_there(u: UOp) -> None:
    assert u.device == "GPU"


ELEMENTWISE = [op for op, d in DECLARATIONS.items() if d.is_elementwise]


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_elements_are_computed_where_an_operand_is(op: Op) -> None:
    declared = DECLARATIONS[op]
    arg = DTypeArg(dtypes.int8) if op is Op.CAST else None
    for place in range(len(declared.src)):
        given = (dtypes.bool if name == "P" else declared.dtypes[0] for name in declared.src)
        src = [values((2,), d, "GPU" if k == place else None) for k, d in enumerate(given)]
        assert UOp(op, *src, arg=arg).device == "GPU"


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_elements_are_split_as_an_operand_is(op: Op) -> None:
    declared = DECLARATIONS[op]
    arg = DTypeArg(dtypes.int8) if op is Op.CAST else None
    given = [dtypes.bool if name == "P" else declared.dtypes[0] for name in declared.src]
    for place in range(len(given)):
        src = [values((2,), d, TWO if k == place else None) for k, d in enumerate(given)]
        src[place] = UOp(Op.RESHAPE, src[place], dims((1, 2)))
        assert UOp(op, *src, arg=arg).axis == 1


@pytest.mark.parametrize(
    ("op", "label"),
    [(Op.ADD, "ADD.c4"), (Op.STACK, "STACK.c3"), (Op.LOAD, "LOAD.c5"), (Op.STORE, "STORE.c5")],
    ids=lambda x: getattr(x, "name", x),
)
def test_two_devices_do_not_meet(op: Op, label: str) -> None:
    with pytest.raises(InvalidError) as caught:
        UOp(op, buffer((2,), device="A"), values((2,), device="B"))
    assert caught.value.label == label


@pytest.mark.parametrize("space", AddrSpace)
def test_memory_is_where_its_arg_says(space: AddrSpace) -> None:
    assert buffer((2,), addrspace=space).addrspace is space
    placeholder = UOp(Op.PARAM, dims((2,)), arg=ParamArg(0, dtypes.int8, None, space))
    assert placeholder.addrspace is space


def test_a_location_has_an_addrspace_and_a_value_has_none() -> None:
    local = buffer((2, 2), addrspace=AddrSpace.LOCAL)
    store = UOp(Op.STORE, local, values((2, 2)))
    locations = [
        local,
        UOp(Op.PARAM, dims((2,)), arg=ParamArg(0, dtypes.int8, None, AddrSpace.LOCAL)),
        UOp(Op.PERMUTE, local, arg=PermuteArg((1, 0))),
        UOp(Op.FLIP, local, arg=FlipArg((True, False))),
        UOp(Op.RESHAPE, local, dims((4,))),
        UOp(Op.SHRINK, local, dims((0, 1)), dims((2, 1))),
        UOp(Op.INDEX, local, index_const(1)),
        UOp(Op.BITCAST, local, arg=DTypeArg(dtypes.int32)),
        UOp(Op.AFTER, local, store),
    ]
    assert [u.addrspace for u in locations] == [AddrSpace.LOCAL] * len(locations)
    assert UOp(Op.INDEX, local, index_const(1)).dtype is local.dtype
    for u in (
        values((2,)),
        const(1, dtypes.int8),
        store,
        UOp(Op.LOAD, local, arg=LoadArg(None, AddrSpace.REG)),
        UOp(Op.NEG, local),
        UOp(Op.REDUCE, local, arg=ReduceArg(Op.ADD, (0,))),
        UOp(Op.STACK, local, local),
        UOp(Op.CONTIGUOUS, local),
    ):
        assert u.addrspace is None


LATITUDES = {
    Op.ADD: lat.ADD,
    Op.SUB: lat.ADD,
    Op.MULACC: lat.ADD,
    Op.MUL: lat.MUL,
    Op.CAST: lat.CAST,
    Op.MAX: lat.MAX,
    Op.MIN: lat.MAX,
    Op.CMPGE: lat.CMP_NAN,
    Op.CMPLE: lat.CMP_NAN,
    Op.REDUCE: lat.REDUCE,
    Op.WMMA: lat.WMMA,
    Op.RECIP: lat.RECIP,
    Op.DIV: lat.DIV,
    Op.EXP2: lat.EXP2,
    Op.LOG2: lat.LOG2,
    Op.SIN: lat.SIN,
    Op.SQRT: lat.SQRT,
    Op.POW: lat.POW,
}


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.name)
def test_ops_have_the_latitude_of_the_table(op: Op) -> None:
    assert DECLARATIONS[op].latitude == LATITUDES.get(op, lat.EXACT)


SHARDED = values((4, 6), device=TWO)
AXES = [
    (SHARDED, 0),
    (values((4, 6), device="A"), None),
    (UOp(Op.PERMUTE, values((4, 6, 8), device=TWO), arg=PermuteArg((2, 0, 1))), 1),
    (UOp(Op.FLIP, SHARDED, arg=FlipArg((False, True))), 0),
    (UOp(Op.RESHAPE, SHARDED, dims((24,))), 0),
    (UOp(Op.RESHAPE, SHARDED, dims((2, 12))), 0),
    (UOp(Op.RESHAPE, SHARDED, dims((1, 4, 6))), 1),
    (UOp(Op.RESHAPE, UOp(Op.PERMUTE, SHARDED, arg=PermuteArg((1, 0))), dims((2, 3, 4))), 2),
    (UOp(Op.REDUCE, SHARDED, arg=ReduceArg(Op.ADD, (0,))), None),
    (UOp(Op.REDUCE, SHARDED, arg=ReduceArg(Op.ADD, (1,))), 0),
    (UOp(Op.ADD, values((6,)), SHARDED), 0),
    (UOp(Op.ADD, values((1, 1, 1)), SHARDED), 1),
    (UOp(Op.STACK, SHARDED, SHARDED), 1),
    (UOp(Op.LOAD, SHARDED), 0),
    (UOp(Op.LOAD, SHARDED, arg=LoadArg("A")), None),
    (UOp(Op.LOAD, values((4,), device="A"), arg=LoadArg(TWO)), 0),
    (UOp(Op.CONTIGUOUS, SHARDED), 0),
    (UOp(Op.SINK), None),
    (const(1, dtypes.int8), None),
    (UOp(Op.BINARY, arg=BinaryArg(b"abcd")), None),
    (UOp(Op.SPECIAL, index_const(2), arg=SpecialArg("g")), None),
    (UOp(Op.RANGE, index_const(4), arg=RangeArg(0)), None),
    (buffer((4, 6), device=TWO), 0),
    (buffer((4, 6), device="A"), None),
]


@pytest.mark.parametrize(("u", "axis"), AXES, ids=lambda x: getattr(x, "op", Op.SINK).name)
def test_axes(u: UOp, axis: int | None) -> None:
    assert u.axis == axis


def test_a_reshape_starts_an_axis_where_the_shards_start() -> None:
    turned = UOp(Op.PERMUTE, SHARDED, arg=PermuteArg((1, 0)))
    assert UOp(Op.RESHAPE, turned, dims((3, 2, 4))).axis == 2
    for shape in ((12, 2), (24,), (4, 2, 3)):
        with pytest.raises(InvalidError, match=r"RESHAPE\.c3"):
            UOp(Op.RESHAPE, turned, dims(shape))


def test_an_index_in_front_of_the_shard_axis_moves_it() -> None:
    moved = UOp(Op.PERMUTE, values((4, 6, 8), device=TWO), arg=PermuteArg((1, 2, 0)))
    assert moved.axis == 2
    assert UOp(Op.INDEX, moved, index_const(0)).axis == 1
    assert UOp(Op.INDEX, moved, dims((0, 1))).axis == 2
    with pytest.raises(InvalidError, match=r"INDEX\.c5"):
        UOp(Op.INDEX, moved, index_const(0), index_const(0), dims((0,)))


@pytest.mark.parametrize(
    ("shape", "fits"), [((4, 3), True), ((3, 4), False), ((), False), ((0,), True)]
)
def test_what_is_sharded_splits_evenly(shape: tuple[int, ...], fits: bool) -> None:
    if fits:
        assert values(shape, device=TWO).axis == 0
        return
    with pytest.raises(InvalidError, match=r"PARAM\.c3"):
        values(shape, device=TWO)


def test_operands_sharded_along_two_axes_do_not_meet() -> None:
    square = values((4, 4), device=TWO)
    turned = UOp(Op.PERMUTE, square, arg=PermuteArg((1, 0)))
    with pytest.raises(InvalidError, match=r"ADD\.c5"):
        UOp(Op.ADD, square, turned)
    # Counted from the right: axis 1 of rank 3 is axis 0 of rank 2.
    outer = UOp(Op.RESHAPE, square, dims((1, 4, 4)))
    assert UOp(Op.ADD, square, outer).axis == 1
