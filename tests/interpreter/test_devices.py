"""Evaluation by devices: what each one holds, joined along `axis`, is the value of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharded import Shape, check, copy, devices, distinct, reshape

from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.tensor.devices import are_equal, evaluate_by_devices, joined, split
from uop.interpreter.values import Value
from uop.spec.args import (
    BufferArg,
    DTypeArg,
    FlipArg,
    GetTupleArg,
    LoadArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
)
from uop.spec.dtype import Kind, dtypes
from uop.spec.errors import InvalidError, UndefinedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, dims, index_const, param

# The law, op by op.

UNARY: dict[str, Callable[[UOp], UOp]] = {
    "permute": lambda t: UOp(Op.PERMUTE, t, arg=PermuteArg((2, 0, 1))),
    "flip": lambda t: UOp(Op.FLIP, t, arg=FlipArg((False, True, True))),
    "merge": lambda t: reshape(t, 24, 6),
    "split": lambda t: reshape(t, 1, 12, 1, 2, 6),
    "expand": lambda t: UOp(Op.EXPAND, reshape(t, 12, 2, 1, 6), dims((12, 2, 3, 6))),
    "pad": lambda t: UOp(Op.PAD, t, dims((0, 1, 2)), dims((12, 4, 9))),
    "pad with zeros": lambda t: UOp(
        Op.PAD, t, dims((0, 1, 2)), dims((12, 4, 9)), arg=PadArg(PadFill.ZERO)
    ),
    "shrink": lambda t: UOp(Op.SHRINK, t, dims((0, 1, 2)), dims((12, 1, 3))),
    "index": lambda t: UOp(Op.INDEX, UOp(Op.PERMUTE, t, arg=PermuteArg((1, 2, 0))), index_const(1)),
    "index by several": lambda t: UOp(
        Op.INDEX, UOp(Op.PERMUTE, t, arg=PermuteArg((1, 2, 0))), dims((1, 0, 1)), index_const(4)
    ),
    "stack": lambda t: UOp(Op.STACK, t, t),
    "larger": lambda t: UOp(Op.BITCAST, t, arg=DTypeArg(dtypes.int64)),
    "smaller": lambda t: UOp(Op.BITCAST, t, arg=DTypeArg(dtypes.uint8)),
    "sum of shards": lambda t: UOp(Op.REDUCE, t, arg=ReduceArg(Op.ADD, (0,))),
    "sum of all": lambda t: UOp(Op.REDUCE, t, arg=ReduceArg(Op.ADD, (0, 1, 2))),
    "sum in shards": lambda t: UOp(Op.REDUCE, t, arg=ReduceArg(Op.ADD, (1, 2))),
    "largest": lambda t: UOp(Op.REDUCE, t, arg=ReduceArg(Op.MAX, (0, 2))),
    "copy": lambda t: UOp(Op.CONTIGUOUS, t),
    "load": lambda t: UOp(Op.LOAD, t),
    "to one": lambda t: copy(t, "E"),
    "to others": lambda t: copy(t, ("E", "F", "G")),
    "to the same, turned": lambda t: copy(UOp(Op.PERMUTE, t, arg=PermuteArg((2, 0, 1))), ("E",)),
}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("name", UNARY)
def test_the_shards_of_an_op_make_its_value(name: str, n: int) -> None:
    t = param(0, (12, 2, 6), dtypes.int32, devices(n))
    check(UNARY[name](t), {0: distinct(t.shape)})


SIMPLE = [d for d in DECLARATIONS.values() if d.is_elementwise and d.op is not Op.CAST]


@pytest.mark.parametrize("declaration", SIMPLE, ids=lambda d: d.op.name)
def test_elementwise_ops_cut_the_operands_that_every_device_has(declaration: Any) -> None:
    wanted = [d for d in declaration.dtypes if d.kind is not Kind.INDEX]
    dtype = dtypes.float32 if dtypes.float32 in wanted else wanted[-1]
    shapes: list[Shape] = [(4, 2, 6), (2, 6), (4, 1, 6), (4, 2, 1), ()]
    for first in range(len(shapes)):
        src, inputs = [], {}
        for k in range(len(declaration.src)):
            of = dtypes.bool if declaration.op is Op.WHERE and k == 0 else dtype
            shape = shapes[(first + 2 * k) % len(shapes)]
            src.append(param(k, shape, of))
            inputs[k] = distinct(shape, of)
        where = next((k for k, s in enumerate(src) if s.shape == (4, 2, 6)), None)
        if where is None:
            src[0], where = param(0, (4, 2, 6), src[0].dtype), 0
            inputs[0] = distinct((4, 2, 6), src[0].dtype)
        for axis in (0, 1, 2):
            turned = (axis, *(a for a in range(3) if a != axis))
            there = param(
                where, [src[where].shape[a] for a in turned], src[where].dtype, ("A", "B")
            )
            back = tuple(turned.index(a) for a in range(3))
            operand = UOp(Op.PERMUTE, there, arg=PermuteArg(back))
            given = inputs | {where: np.ascontiguousarray(inputs[where].transpose(turned))}
            u = UOp(declaration.op, *src[:where], operand, *src[where + 1 :])
            assert u.axis == axis
            check(u, given)


def test_a_sharded_index_picks_on_each_device() -> None:
    table, at = param(0, (5, 3), dtypes.int32), param(1, (6,), dtypes.int16, devices(3))
    positions = np.array([4, 0, 2, 2, 1, 3], np.int16)
    inputs = {0: distinct((5, 3)), 1: positions}
    result = check(UOp(Op.INDEX, table, at), inputs)
    np.testing.assert_array_equal(result.parts[1].data, inputs[0][[2, 2]])


def test_members_of_a_stack_are_cut_like_the_sharded_one() -> None:
    there, whole = param(0, (4, 2), dtypes.int32, devices(2)), param(1, (4, 2), dtypes.int32)
    inputs = {0: distinct((4, 2)), 1: distinct((4, 2)) + 50}
    for operands in ((there, whole), (whole, there)):
        assert check(UOp(Op.STACK, *operands), inputs).axis == 1
    gate = UOp(Op.CMPLT, whole, const(54, dtypes.int32))
    check(UOp(Op.LOAD, there, whole, gate), inputs)
    check(UOp(Op.LOAD, there, whole, gate, arg=LoadArg("E")), inputs)


# REPLICATED and SLICE.


def test_replicated_shards_that_differ_have_no_meaning() -> None:
    t = param(0, (2, 3), dtypes.int32, devices(2))
    root = UOp(Op.REPLICATED, t, arg=ReplicatedArg((0,)))
    fine, wrong = np.array([[1, 2, 3]] * 2, np.int32), np.array([[1, 2, 3], [1, 2, 4]], np.int32)
    assert check(root, {0: fine}).axis is None
    for run in (evaluate, evaluate_by_devices):
        with pytest.raises(UndefinedError, match="REPLICATED"):
            run(root, {0: wrong})


def test_copies_may_stand_in_one_shard_too() -> None:
    """Four copies on two devices, and copies along an axis that is not sharded."""
    t = param(0, (4, 2), dtypes.int32, devices(2))
    check(UOp(Op.REPLICATED, t, arg=ReplicatedArg((0,))), {0: np.array([[1, 2]] * 4, np.int32)})
    pairs = np.repeat(distinct((4, 1)), 2, axis=1)
    assert check(UOp(Op.REPLICATED, t, arg=ReplicatedArg((1,))), {0: pairs}).axis == 0
    within = np.array([[1, 2], [1, 3], [1, 2], [1, 3]], np.int32)
    for run in (evaluate, evaluate_by_devices):
        with pytest.raises(UndefinedError, match="REPLICATED"):
            run(UOp(Op.REPLICATED, t, arg=ReplicatedArg((0,))), {0: within})


def replicated_value(data: Array, **masks: Array) -> Value:
    t = param(0, data.shape, dtypes.float32)
    root = UOp(Op.REPLICATED, t, arg=ReplicatedArg((0,)))
    return cast(Value, evaluate_full(root, {0: Value(data, **masks)}))


def test_copies_without_a_value() -> None:
    nan = np.array([np.nan, np.nan], np.float32)
    nan.view(np.uint32)[1] ^= 1
    one_two = np.array([1, 2], np.float32)
    first, both = np.array([True, False]), np.array([True, True])
    assert np.isnan(replicated_value(nan, free_nan=first).data).all()
    assert replicated_value(nan, free_nan=first).free_nan is not None
    assert replicated_value(one_two, unspecified=first).unspecified is not None
    assert replicated_value(one_two, invalid=both).invalid is not None
    for data, masks in ((nan, {}), (one_two, {"invalid": first}), (one_two, {"free_nan": first})):
        with pytest.raises(UndefinedError):
            replicated_value(data, **masks)


@pytest.mark.parametrize("new", ["uint8", "int16", "float32", "uint64"])
@pytest.mark.parametrize("old", ["uint8", "int16", "float32", "uint64"])
def test_a_slice_is_a_part_of_the_bytes(old: str, new: str) -> None:
    source, target = getattr(dtypes, old), getattr(dtypes, new)
    x = np.frombuffer(bytes(range(1, 97)), np_dtype(source)).reshape(2, -1)
    t, raw = param(0, x.shape, source), x.tobytes()
    built = 0
    for offset in range(x.size + 1):
        for size in range(96 // target.itemsize + 1):
            start = offset * source.itemsize
            end = start + size * target.itemsize
            arg = SliceArg(size, target)
            if start % target.itemsize or end > len(raw):
                with pytest.raises(InvalidError, match=r"SLICE\.c4"):
                    UOp(Op.SLICE, t, index_const(offset), arg=arg)
            elif size in (0, 1, 3) or end == len(raw):
                u, built = UOp(Op.SLICE, t, index_const(offset), arg=arg), built + 1
                found = evaluate(u, {0: x})
                assert cast(Array, found).tobytes() == raw[start:end]
                again = u.decompose()
                assert again is not None
                np.testing.assert_array_equal(evaluate(again, {0: x}), found)
    assert built > 10


def test_a_slice_of_memory_is_a_location() -> None:
    b = UOp(Op.BUFFER, dims((2, 3)), arg=BufferArg(0, dtypes.int32))
    part = UOp(Op.SLICE, b, index_const(2), arg=SliceArg(3, dtypes.int32))
    assert part.addrspace is b.addrspace
    store = UOp(Op.STORE, part, param(1, (3,), dtypes.int32))
    result = evaluate(
        UOp(Op.SINK, store), {0: distinct((2, 3)), 1: np.array([7, 8, 9], np.int32) * 10}
    )
    assert cast("dict[int, Array]", result)[0].tolist() == [[3, 4, 70], [80, 90, 8]]


def test_a_slice_of_elements_without_a_value() -> None:
    t = param(0, (3,), dtypes.int16)
    x = np.array([1, 2, 3], np.int16)
    absent, opened = np.array([True, False, False]), np.array([False, False, True])
    same_dtype = UOp(Op.SLICE, t, index_const(1), arg=SliceArg(2, dtypes.int16))
    value = cast(Value, evaluate_full(same_dtype, {0: Value(x, absent, opened)}))
    assert value.invalid is None or not value.invalid.any()
    assert cast(Array, value.unspecified).tolist() == [False, True]
    parts = UOp(Op.SLICE, t, index_const(0), arg=SliceArg(6, dtypes.uint8))
    value = cast(Value, evaluate_full(parts, {0: Value(x, absent, opened)}))
    assert cast(Array, value.invalid).tolist() == [True, True, False, False, False, False]
    assert cast(Array, value.unspecified).tolist() == [False, False, False, False, True, True]


# Memory, functions, and whole graphs.


def buffer(slot: int, shape: Shape, device: Any) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtypes.int32, device))


def test_each_device_stores_into_its_shard() -> None:
    """Whole values are cut, and a view keeps the shard axis."""
    b = buffer(0, (4, 3), devices(2))
    first = UOp(Op.AFTER, b, UOp(Op.STORE, b, param(1, (4, 3), dtypes.int32)))
    column = UOp(Op.SHRINK, first, dims((0, 1)), dims((4, 1)))
    total = UOp(Op.REDUCE, first, arg=ReduceArg(Op.ADD, (0, 1)))
    root = UOp(Op.SINK, UOp(Op.STORE, column, UOp(Op.EXPAND, total, dims((4, 1)))))
    inputs = {0: distinct((4, 3)), 1: distinct((4, 3)) * 2}
    found, wanted = evaluate_by_devices(root, inputs), evaluate(root, inputs)
    assert isinstance(found, dict)
    assert (found[0].device, found[0].axis) == (devices(2), 0)
    np.testing.assert_array_equal(found[0].whole().data, cast("dict[int, Array]", wanted)[0])
    np.testing.assert_array_equal(found[0].parts[1].data[:, 1], inputs[1].sum())


def test_effects_on_two_devices_are_ordered_by_what_is_copied() -> None:
    a, b = buffer(0, (4,), "A"), buffer(1, (4,), devices(2))
    written = UOp(Op.AFTER, a, UOp(Op.STORE, a, param(2, (4,), dtypes.int32)))
    shards = UOp(Op.STORE, b, copy(written, devices(2)))
    back = copy(UOp(Op.NEG, UOp(Op.AFTER, b, shards)), "A")
    root = UOp(Op.SINK, shards, UOp(Op.STORE, UOp(Op.AFTER, written, shards), back))
    inputs = {2: distinct((4,))}
    found, wanted = evaluate_by_devices(root, inputs), cast("Any", evaluate(root, inputs))
    assert isinstance(found, dict)
    assert found.keys() == wanted.keys() == {0, 1}
    for slot, contents in found.items():
        np.testing.assert_array_equal(contents.whole().data, wanted[slot])
    np.testing.assert_array_equal(found[0].whole().data, -inputs[2])


def test_a_function_runs_on_the_shards() -> None:
    t = param(0, (4, 3), dtypes.int32, devices(2))
    other = param(1, (3,), dtypes.int32)
    inner = UOp(Op.FUNCTION, UOp(Op.TUPLE, UOp(Op.NEG, t)), t)
    negated = UOp(Op.GETTUPLE, inner, arg=GetTupleArg(0))
    body = UOp(Op.TUPLE, UOp(Op.ADD, negated, other), copy(t, "E"))
    call = UOp(Op.FUNCTION, body, param(5, (4, 3), dtypes.int32, devices(2)), other)
    inputs = {5: distinct((4, 3)), 1: distinct((3,)) * 100}
    sums = UOp(Op.GETTUPLE, call, arg=GetTupleArg(0))
    assert sums.axis == 0
    check(sums, inputs)
    both = evaluate_by_devices(call, inputs)
    assert isinstance(both, tuple)
    for found, wanted in zip(both, evaluate(call, inputs), strict=True):
        np.testing.assert_array_equal(found.whole().data, wanted)
    assert [p.axis for p in both] == [0, None]


def test_a_kernel_program_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"CALL\.n5"):
        evaluate_by_devices(UOp(Op.SINK, UOp(Op.CALL, UOp(Op.SINK))))


def test_the_parts_of_a_value_join_to_it() -> None:
    mask = np.array([[True, False], [False, False], [False, True], [False, False]])
    value = Value(distinct((4, 2), dtypes.float32), mask, None, ~mask)
    for axis, n in ((0, 2), (0, 4), (1, 2)):
        again = joined(split(value, axis, n), axis)
        assert are_equal(again, value)
        assert np.array_equal(cast(Array, again.invalid), mask)
    assert not are_equal(value, Value(value.data, None, None, ~mask))
    assert not are_equal(Value(value.data), Value(value.data + 1))


SOURCES: tuple[UOp, ...] = (
    param(0, (6, 2), dtypes.int32, devices(2)),
    param(1, (6, 2), dtypes.int32),
    param(2, (2, 6), dtypes.int32, devices(2)),
    param(3, (12,), dtypes.int32, "E"),
    param(4, (3, 2, 2), dtypes.int32, ("E", "F", "G")),
)
PLACES: tuple[Any, ...] = ("E", devices(2), ("E", "F", "G"), ("E",))


@st.composite
def graphs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> UOp:
    """Moves, folds, copies and elementwise ops over operands that are placed in several ways."""
    pool = list(SOURCES)
    for _ in range(draw(st.integers(1, 10))):
        try:
            pool.append(_step(draw, draw(st.sampled_from(pool)), pool))
        except InvalidError:
            continue
    return pool[-1]


def _step(draw: Callable[[st.SearchStrategy[Any]], Any], t: UOp, pool: list[UOp]) -> UOp:
    rank, kind = len(t.shape), draw(st.integers(0, 9))
    axes = tuple(a for a in range(rank) if draw(st.booleans()))
    if kind == 0:
        return UOp(Op.PERMUTE, t, arg=PermuteArg(tuple(draw(st.permutations(range(rank))))))
    if kind == 1:
        return UOp(Op.FLIP, t, arg=FlipArg(tuple(a in axes for a in range(rank))))
    if kind == 2:
        shape = draw(st.sampled_from([(1, *t.shape), (math.prod(t.shape),), (2, -1), (6, -1)]))
        known = math.prod(d for d in shape if d > 0)
        return reshape(t, *(math.prod(t.shape) // known if d < 0 else d for d in shape))
    if kind == 3:
        return UOp(Op.EXPAND, t, dims(2 if d == 1 else d for d in t.shape))
    if kind == 4:
        wide = [d + 2 if a in axes[:1] else d for a, d in enumerate(t.shape)]
        fill = PadArg(draw(st.sampled_from(PadFill)))
        return UOp(
            Op.PAD,
            t,
            dims(int(w > d) for w, d in zip(wide, t.shape, strict=True)),
            dims(wide),
            arg=fill,
        )
    if kind == 5:
        return UOp(Op.REDUCE, t, arg=ReduceArg(draw(st.sampled_from([Op.ADD, Op.MAX])), axes))
    if kind == 6:
        return copy(t, draw(st.sampled_from(PLACES)))
    if kind == 7:
        return UOp(Op.REPLICATED, t, arg=ReplicatedArg(axes[:1]))
    other = draw(st.sampled_from(pool))
    return UOp(draw(st.sampled_from([Op.STACK, Op.ADD, Op.MAX, Op.MUL])), t, other)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(graphs())
def test_any_graph_is_what_its_devices_make(root: UOp) -> None:
    slots = {cast(Any, u.arg).slot for u in root.toposort() if u.op is Op.PARAM}
    inputs = {k: distinct(SOURCES[k].shape) for k in slots}
    try:
        evaluate(root, inputs)
    except UndefinedError:
        with pytest.raises(UndefinedError):
            evaluate_by_devices(root, inputs)
        return
    check(root, inputs)
