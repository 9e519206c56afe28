"""Tensor graphs: values, INVALID and UNSPECIFIED elements, calls, memory and its races."""

from __future__ import annotations

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.interpreter.numeric.storage import Array
from uop.interpreter.rules.table import RULES
from uop.interpreter.values import Value
from uop.spec.args import (
    AddrSpace,
    BinaryArg,
    BufferArg,
    DTypeArg,
    FlipArg,
    GetTupleArg,
    PadArg,
    PadFill,
    ParamArg,
    PermuteArg,
    RangeArg,
    ReduceArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, PassError, UndefinedError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

F32 = dtypes.float32
I32 = dtypes.int32


def buffer(slot: int, shape: tuple[int, ...], dtype: DType = I32) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtype))


def pad(t: UOp, before: int, total: int, fill: PadFill = PadFill.INVALID) -> UOp:
    return UOp(Op.PAD, t, dims((before,)), dims((total,)), arg=PadArg(fill))


def shrink(t: UOp, offset: int, count: int) -> UOp:
    return UOp(Op.SHRINK, t, dims((offset,)), dims((count,)))


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def value_of(root: UOp, inputs: dict[int, Array]) -> Value:
    result = evaluate_full(root, inputs)
    assert isinstance(result, Value)
    return result


def mask(m: Array | None, size: int) -> list[bool]:
    return [False] * size if m is None else [bool(x) for x in m]


def test_the_elements_outside_a_pad_are_invalid_through_alu_and_skipped_by_reduce() -> None:
    padded = pad(param(0, (2,), I32), 1, 4)
    sum_of = UOp(Op.REDUCE, UOp(Op.ADD, padded, const(5, I32)), arg=ReduceArg(Op.ADD, (0,)))
    value = value_of(UOp(Op.ADD, padded, const(5, I32)), {0: ints(7, 9)})
    assert mask(value.invalid, 4) == [True, False, False, True]
    assert value_of(sum_of, {0: ints(7, 9)}).data.tolist() == [26]


def test_a_zero_filled_pad_holds_zeros() -> None:
    value = value_of(pad(param(0, (2,), I32), 1, 4, PadFill.ZERO), {0: ints(7, 9)})
    assert value.invalid is None
    assert value.data.tolist() == [0, 7, 9, 0]


@pytest.mark.parametrize(("op", "empty"), [(Op.ADD, 0), (Op.MUL, 1), (Op.MAX, -(1 << 31))])
def test_a_reduce_of_nothing_is_the_identity(op: Op, empty: int) -> None:
    absent = shrink(pad(param(0, (1,), I32), 0, 3), 1, 2)
    for root in (absent, param(0, (0,), I32)):
        given = np.zeros(next(u for u in root.toposort() if u.op is Op.PARAM).shape, np.int32)
        reduced = UOp(Op.REDUCE, root, arg=ReduceArg(op, (0,)))
        assert value_of(reduced, {0: given}).data.tolist() == [empty]


def test_where_looks_only_at_its_condition_and_the_chosen_branch() -> None:
    condition, x = param(0, (3,), dtypes.bool), param(1, (3,), I32)
    absent = shrink(pad(param(2, (3,), I32), 0, 6), 3, 3)
    value = value_of(
        UOp(Op.WHERE, condition, x, absent),
        {0: np.array([True, False, True]), 1: ints(1, 2, 3), 2: ints(4, 5, 6)},
    )
    assert mask(value.invalid, 3) == [False, True, False]
    assert value.data[[0, 2]].tolist() == [1, 3]


def test_division_by_zero_is_unspecified_and_contagious() -> None:
    quotient = UOp(Op.IDIV, param(0, (3,), I32), param(1, (3,), I32))
    times_zero = UOp(Op.MUL, quotient, const(0, I32))
    value = value_of(times_zero, {0: ints(7, -7, 7), 1: ints(2, 0, -2)})
    assert mask(value.unspecified, 3) == [False, True, False]
    assert value.data[[0, 2]].tolist() == [0, 0]


def test_invalid_wins_over_unspecified() -> None:
    quotient = UOp(Op.IDIV, pad(param(0, (1,), I32), 1, 2), const(0, I32))
    value = value_of(quotient, {0: ints(7)})
    assert mask(value.invalid, 2) == [True, False]
    assert mask(value.unspecified, 2) == [False, True]


def test_an_unspecified_index_has_no_meaning() -> None:
    index = UOp(Op.IDIV, param(0, (1,), I32), const(0, I32))
    with pytest.raises(UndefinedError, match="UNSPECIFIED"):
        evaluate(UOp(Op.INDEX, param(1, (2,), I32), index), {0: ints(1), 1: ints(1, 2)})


def test_indices_pick_along_their_own_axes() -> None:
    t = param(0, (2, 3, 4), I32)
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    picked = UOp(Op.INDEX, t, param(1, (3,), I32), index_const(2), param(2, (2,), I32))
    value = value_of(picked, {0: data, 1: ints(1, 0, 1), 2: ints(3, 0)})
    expected = [[data[i, 2, j] for j in (3, 0)] for i in (1, 0, 1)]
    assert value.data.tolist() == expected


def test_an_invalid_index_gives_invalid_and_an_outside_one_is_an_error() -> None:
    t, index = param(0, (2, 3), I32), param(1, (2,), I32)
    data = np.arange(6, dtype=np.int32).reshape(2, 3)
    value = value_of(UOp(Op.INDEX, t, pad(index, 1, 3)), {0: data, 1: ints(1, 0)})
    assert value.invalid is not None
    assert value.invalid.tolist() == [[True] * 3, [False] * 3, [False] * 3]
    assert value.data[1:].tolist() == [[3, 4, 5], [0, 1, 2]]
    with pytest.raises(UndefinedError, match="2 on axis 0 of size 2"):
        evaluate(UOp(Op.INDEX, t, index), {0: data, 1: ints(1, 2)})
    with pytest.raises(UndefinedError, match="-1 on axis 0 of size 2"):
        evaluate(UOp(Op.INDEX, t, index), {0: data, 1: ints(-1, 0)})


def test_bits_of_a_nan_made_by_arithmetic_are_open_and_those_of_an_input_are_kept() -> None:
    x = param(0, (2,), F32)
    payload = np.array([0x7FC12345, 0x3F800000], np.uint32).view(np.float32)
    as_bits = DTypeArg(dtypes.uint32)
    copied = value_of(UOp(Op.BITCAST, x, arg=as_bits), {0: payload})
    assert copied.unspecified is None
    assert copied.data.tolist() == [0x7FC12345, 0x3F800000]
    added = value_of(UOp(Op.BITCAST, UOp(Op.ADD, x, x), arg=as_bits), {0: payload})
    assert mask(added.unspecified, 2) == [True, False]


def test_bitcast_scales_the_last_axis_and_one_absent_byte_makes_an_element_absent() -> None:
    wide = UOp(Op.BITCAST, param(0, (4,), dtypes.uint8), arg=DTypeArg(dtypes.uint16))
    data = np.array([0x34, 0x12, 0x78, 0x56], np.uint8)
    assert value_of(wide, {0: data}).data.tolist() == [0x1234, 0x5678]
    partly = UOp(Op.BITCAST, pad(param(0, (3,), dtypes.uint8), 0, 4), arg=DTypeArg(dtypes.uint16))
    assert mask(value_of(partly, {0: data[:3]}).invalid, 2) == [False, True]


def test_the_published_prefix_sum_is_right_with_either_fill() -> None:
    n = 5
    for fill in PadFill:
        x = pad(param(0, (n,), I32), n - 1, 2 * n - 1, fill)
        x = UOp(Op.EXPAND, UOp(Op.RESHAPE, x, dims((1, 2 * n - 1))), dims((n + 1, 2 * n - 1)))
        x = shrink(UOp(Op.RESHAPE, x, dims(((n + 1) * (2 * n - 1),))), 0, 2 * n * n)
        x = UOp(Op.SHRINK, UOp(Op.RESHAPE, x, dims((n, 2 * n))), dims((0, 0)), dims((n, n)))
        x = UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (1,)))
        value = value_of(x, {0: ints(3, 1, 4, 1, 5)})
        assert value.data[:, 0].tolist() == [3, 4, 8, 9, 14]
        assert (value.invalid, value.unspecified) == (None, None)


def test_a_function_sees_its_arguments_and_may_nest() -> None:
    x = param(0, (2,), I32)
    double = UOp(Op.FUNCTION, UOp(Op.TUPLE, UOp(Op.ADD, x, x), x), param(0, (2,), I32))
    inner = UOp(Op.GETTUPLE, double, arg=GetTupleArg(0))
    outer = UOp(Op.FUNCTION, UOp(Op.TUPLE, UOp(Op.MUL, inner, inner)), param(3, (2,), I32))
    root = UOp(Op.GETTUPLE, outer, arg=GetTupleArg(0))
    assert value_of(root, {3: ints(3, -4)}).data.tolist() == [36, 64]


def test_each_placeholder_is_the_argument_of_its_slot() -> None:
    a, b, c = (param(slot, (2,), I32) for slot in range(3))
    body = UOp(Op.TUPLE, UOp(Op.SUB, UOp(Op.MUL, c, a), b))
    turned = UOp(Op.FUNCTION, body, b, c, UOp(Op.NEG, a))
    given = {0: ints(2, 3), 1: ints(5, 7), 2: ints(11, 13)}
    found = value_of(UOp(Op.GETTUPLE, turned, arg=GetTupleArg(0)), given)
    assert found.data.tolist() == [-2 * 5 - 11, -3 * 7 - 13]


def test_roots_give_an_array_a_tuple_or_a_dict() -> None:
    x, out = param(0, (2,), I32), buffer(1, (2,))
    inputs = {0: ints(1, 2)}
    assert isinstance(evaluate(x, inputs), np.ndarray)
    both = evaluate(UOp(Op.TUPLE, x, UOp(Op.NEG, x)), inputs)
    assert isinstance(both, tuple)
    assert [v.tolist() for v in both] == [[1, 2], [-1, -2]]
    stored = evaluate(UOp(Op.SINK, UOp(Op.STORE, out, x)), inputs)
    assert isinstance(stored, dict)
    assert {slot: v.tolist() for slot, v in stored.items()} == {1: [1, 2]}


def test_binary_is_bytes() -> None:
    assert value_of(UOp(Op.BINARY, arg=BinaryArg(b"\x00\xff\x07")), {}).data.tolist() == [0, 255, 7]


# Memory ---------------------------------------------------------------------------------------


def test_a_store_reaches_through_movement_and_leaves_the_rest() -> None:
    out = buffer(1, (2, 3))
    view = UOp(Op.FLIP, UOp(Op.PERMUTE, out, arg=PermuteArg((1, 0))), arg=FlipArg((True, False)))
    column = UOp(Op.SHRINK, view, dims((0, 1)), dims((3, 1)))
    store = UOp(Op.STORE, column, param(0, (3, 1), I32))
    result = evaluate(
        UOp(Op.SINK, store), {0: ints(7, 8, 9).reshape(3, 1), 1: np.zeros((2, 3), np.int32)}
    )
    assert isinstance(result, dict)
    assert result[1].tolist() == [[0, 0, 0], [9, 8, 7]]


def test_invalid_elements_and_false_gates_leave_memory_as_it_was() -> None:
    out = buffer(1, (4,))
    gate = param(2, (4,), dtypes.bool)
    store = UOp(Op.STORE, out, pad(param(0, (2,), I32), 1, 4), gate)
    result = evaluate(
        UOp(Op.SINK, store),
        {0: ints(7, 8), 1: ints(1, 2, 3, 4), 2: np.array([True, True, False, True])},
    )
    assert isinstance(result, dict)
    assert result[1].tolist() == [1, 7, 3, 4]


def test_a_buffer_without_input_is_unspecified_until_written() -> None:
    out = buffer(1, (3,))
    store = UOp(Op.STORE, shrink(out, 0, 2), param(0, (2,), I32))
    result = evaluate_full(UOp(Op.SINK, store), {0: ints(7, 8)})
    assert isinstance(result, dict)
    assert mask(result[1].unspecified, 3) == [False, False, True]


def test_after_reads_what_was_stored_and_stores_chain() -> None:
    out = buffer(1, (3,))
    first = UOp(Op.STORE, out, const_vector(5, 3))
    then = UOp(Op.AFTER, out, first)
    second = UOp(Op.STORE, shrink(then, 1, 1), UOp(Op.ADD, shrink(then, 0, 1), const(1, I32)))
    last = UOp(Op.AFTER, then, second)
    value = value_of(UOp(Op.MUL, last, const(2, I32)), {1: ints(0, 0, 0)})
    assert value.data.tolist() == [10, 12, 10]
    passed = UOp(Op.AFTER, const_vector(7, 3), second)
    assert value_of(passed, {1: ints(0, 0, 0)}).data.tolist() == [7, 7, 7]


def const_vector(value: int, count: int) -> UOp:
    return UOp(Op.EXPAND, UOp(Op.RESHAPE, const(value, I32), dims((1,))), dims((count,)))


def test_unordered_accesses_to_one_element_are_a_race() -> None:
    out = buffer(1, (4,))
    low = UOp(Op.STORE, shrink(out, 0, 2), const_vector(1, 2))
    high = UOp(Op.STORE, shrink(out, 2, 2), const_vector(2, 2))
    across = UOp(Op.STORE, shrink(out, 1, 2), const_vector(3, 2))
    given = {1: ints(0, 0, 0, 0)}
    fine = evaluate(UOp(Op.SINK, low, high), given)
    assert isinstance(fine, dict)
    assert fine[1].tolist() == [1, 1, 2, 2]
    for together in (UOp(Op.SINK, low, across), UOp(Op.SINK, UOp(Op.GROUP, low, across))):
        with pytest.raises(UndefinedError, match=r"race.*element 1 "):
            evaluate(together, given)
    reads = UOp(Op.NEG, out), UOp(Op.NEG, UOp(Op.AFTER, out, low))
    for order in (reads, reads[::-1]):
        with pytest.raises(UndefinedError, match="race"):
            evaluate(UOp(Op.TUPLE, *order), given)


def test_a_store_may_overwrite_what_its_value_was_computed_from() -> None:
    out = buffer(1, (3,))
    flipped = UOp(Op.FLIP, out, arg=FlipArg((True,)))
    result = evaluate(UOp(Op.SINK, UOp(Op.STORE, out, UOp(Op.NEG, flipped))), {1: ints(1, 2, 3)})
    assert isinstance(result, dict)
    assert result[1].tolist() == [-3, -2, -1]


def test_a_store_that_writes_one_element_twice_is_a_race() -> None:
    spread = UOp(Op.EXPAND, buffer(1, (1,)), dims((2,)))
    with pytest.raises(UndefinedError, match="twice"):
        evaluate(UOp(Op.SINK, UOp(Op.STORE, spread, const_vector(1, 2))), {1: ints(0)})


def test_load_takes_alt_where_the_gate_is_false_or_absent() -> None:
    t, alt = param(0, (3,), I32), param(1, (3,), I32)
    gate = pad(param(2, (2,), dtypes.bool), 0, 3)
    value = value_of(
        UOp(Op.LOAD, t, alt, gate),
        {0: ints(1, 2, 3), 1: ints(7, 8, 9), 2: np.array([True, False])},
    )
    assert value.invalid is None
    assert value.data.tolist() == [1, 8, 9]


def test_a_location_may_be_its_own_gate() -> None:
    place = UOp(Op.BUFFER, dims((3,)), arg=BufferArg(0, dtypes.bool))
    bits = np.array([True, False, True])
    assert value_of(UOp(Op.LOAD, place, place, place), {0: bits}).data.tolist() == bits.tolist()
    alt = param(1, (3,), dtypes.bool)
    value = value_of(UOp(Op.LOAD, place, alt, place), {0: bits, 1: ~bits})
    assert value.data.tolist() == [True, True, True]


def test_a_false_gate_accesses_nothing() -> None:
    out, at, gate = buffer(1, (4,)), param(0, (2,), I32), param(2, (2,), dtypes.bool)
    place = UOp(Op.INDEX, out, at)
    loaded = UOp(Op.LOAD, place, const_vector(42, 2), gate)
    stored = UOp(Op.SINK, UOp(Op.STORE, place, const_vector(9, 2), gate))
    given = {0: ints(-1, 2), 1: ints(5, 6, 7, 8)}
    second = {**given, 2: np.array([False, True])}
    assert value_of(loaded, second).data.tolist() == [42, 7]
    result = evaluate(stored, second)
    assert isinstance(result, dict)
    assert result[1].tolist() == [5, 6, 9, 8]
    every = {**given, 2: np.array([True, True])}
    for root in (loaded, stored, UOp(Op.LOAD, place), UOp(Op.NEG, place)):
        with pytest.raises(UndefinedError, match=r"INDEX\.u1") as raised:
            evaluate(root, {k: a for k, a in every.items() if k in slots_of(root)})
        assert "-1 on axis 0 of size 4, element (0,) of the index" in str(raised.value)
        assert raised.value.subjects == (place,)
    # Where it accesses nothing, it does not race with a STORE either.
    other = UOp(Op.STORE, out, const_vector(3, 4))
    both = UOp(Op.TUPLE, loaded, UOp(Op.NEG, UOp(Op.AFTER, out, other)))
    evaluate(both, {**given, 2: np.array([False, False])})
    with pytest.raises(UndefinedError, match="race"):
        evaluate(both, second)


def test_load_of_a_location_gives_zero_for_an_absent_element() -> None:
    index = pad(param(0, (2,), I32), 0, 3)
    value = value_of(
        UOp(Op.LOAD, UOp(Op.INDEX, buffer(1, (4,)), index)), {0: ints(3, 1), 1: ints(5, 6, 7, 8)}
    )
    assert value.invalid is None
    assert value.data.tolist() == [8, 6, 0]


# Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "label"),
    [
        ({}, "INPUT.c3"),
        ({0: np.zeros(3, np.int32)}, "INPUT.c4"),
        ({0: np.zeros(2, np.int64)}, "INPUT.c4"),
        ({0: np.zeros(2, np.int32), 1: np.zeros(2, np.int32)}, "INPUT.c2"),
    ],
)
def test_inputs_that_do_not_fit_are_named(inputs: dict[int, Array], label: str) -> None:
    with pytest.raises(InvalidError) as error:
        evaluate(UOp(Op.NEG, param(0, (2,), I32)), inputs)
    assert error.value.label == label


def test_one_slot_for_two_nodes_is_invalid() -> None:
    clash = UOp(Op.ADD, param(0, (2,), I32), buffer(0, (2,)))
    with pytest.raises(InvalidError, match=r"INPUT\.c1"):
        evaluate(clash, {0: ints(1, 2)})


def test_a_loop_variable_has_no_value_where_no_kernel_runs_its_loop() -> None:
    r = UOp(Op.RANGE, index_const(4), arg=RangeArg(0))
    for root in (
        r,
        UOp(Op.REDUCE, UOp(Op.INDEX, param(0, (4,), I32), r), r, arg=ReduceArg(Op.ADD)),
    ):
        with pytest.raises(UndefinedError, match="RANGE outside a kernel"):
            evaluate_full(root, {0: ints(1, 2, 3, 4)} if root is not r else {})


def test_a_location_of_a_parameter_is_written_as_a_buffer_is() -> None:
    place = UOp(Op.PARAM, dims((3,)), arg=ParamArg(4, I32, None, AddrSpace.GLOBAL))
    stored = UOp(Op.STORE, UOp(Op.INDEX, place, index_const(1)), const(9, I32))
    result = evaluate(UOp(Op.SINK, stored), {4: ints(1, 2, 3)})
    assert isinstance(result, dict)
    assert {slot: data.tolist() for slot, data in result.items()} == {4: [1, 9, 3]}


def test_a_value_outside_its_interval_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    masked = UOp(Op.MOD, param(0, (2,), I32), const(4, I32))
    assert evaluate(masked, {0: ints(7, -1)}) is not None
    monkeypatch.setitem(RULES, Op.MOD, lambda u, a, b: np.fmod(a, b))
    with pytest.raises(PassError, match="min_max"):
        evaluate(masked, {0: ints(7, -1)})


@pytest.mark.slow
def test_a_chain_of_a_hundred_thousand_nodes_evaluates() -> None:
    x = param(0, (1,), I32)
    u = x
    for _ in range(100_000):
        u = UOp(Op.ADD, u, x)
    assert value_of(u, {0: ints(3)}).data.tolist() == [300_003]
