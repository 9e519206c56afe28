"""Accepted sets of programs: what is carried, joined and forgotten, and what stands alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted, NaN
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import (
    BufferArg,
    DTypeArg,
    FlipArg,
    GetTupleArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
)
from uop.spec.dtype import INTS, DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

F32, I32, BOOL, INDEX = dtypes.float32, dtypes.int32, dtypes.bool, dtypes.index
INF, NAN = math.inf, math.nan


def only(root: UOp, inputs: dict[int, Array] | None = None, profile: Profile = STRICT) -> Accepted:
    (accepted,) = accept(root, inputs, profile)
    return accepted


def said(accepted: Accepted) -> list[str]:
    return [accepted.describe(i) for i in range(accepted.value.data.size)]


def floats(*values: float) -> Array:
    return np.asarray(values, np.float32)


def f32(slot: int, *shape: int) -> UOp:
    return param(slot, shape, F32)


def buffer(slot: int, shape: tuple[int, ...], dtype: DType = F32) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtype))


# 2^x of this is 8 or a neighbour up to three ulps of it away.
THREE = {0: floats(3.0)}
EIGHT = UOp(Op.EXP2, f32(0, 1))
AROUND_EIGHT = "0x1.fffff4p+2 to 0x1.000006p+3"


def test_an_exact_graph_shares_the_reference() -> None:
    x, y = f32(0, 3), f32(1, 3)
    root = UOp(Op.MUL, UOp(Op.ADD, x, y), x)
    accepted = only(root, {0: floats(1, 2, 3), 1: floats(0.5, -0.0, INF)})
    assert accepted.sets is None
    assert accepted.single.all()
    assert accepted.constrained.all()
    assert said(accepted)[0] == "0x1.8p+0"


def test_an_ulp_is_larger_above_a_power_of_two() -> None:
    assert said(only(EIGHT, THREE)) == [AROUND_EIGHT]


def test_each_use_of_a_wide_value_may_differ() -> None:
    """x - x of a wide x is not 0."""
    accepted = only(UOp(Op.SUB, EIGHT, EIGHT), THREE)
    assert said(accepted) == ["-0x1.8p-18 to 0x1.8p-18"]


def test_overlapping_sets_compare_both_ways() -> None:
    eight = const(8.0, F32)
    for op in (Op.CMPLT, Op.CMPNE, Op.CMPEQ, Op.CMPGT, Op.CMPLE, Op.CMPGE):
        assert said(only(UOp(op, EIGHT, eight), THREE)) == ["false or true"]
    for value, below in ((9.0, "true"), (7.0, "false")):
        assert said(only(UOp(Op.CMPLT, EIGHT, const(value, F32)), THREE)) == [below]


def test_where_joins_the_branches_of_an_uncertain_condition() -> None:
    less = UOp(Op.CMPLT, EIGHT, const(8.0, F32))
    joined = UOp(Op.WHERE, less, const(1.0, F32), const(-2.0, F32))
    assert said(only(joined, THREE)) == ["-0x1p+1 or 0x1p+0"]
    with_nan = UOp(Op.WHERE, less, const(NAN, F32), const(2.0, F32))
    assert said(only(with_nan, THREE)) == ["0x1p+1 or NaN"]


def test_where_looks_only_at_the_chosen_branch() -> None:
    """The other one may be unspecified."""
    p, a = param(1, (2,), BOOL), param(0, (2,), I32)
    root = UOp(Op.WHERE, p, UOp(Op.IDIV, a, const(0, I32)), a)
    accepted = only(root, {0: np.asarray([5, 7], np.int32), 1: np.asarray([True, False])})
    assert said(accepted) == ["anything (the spec gives no value)", "7"]
    assert accepted.any.tolist() == [True, False]


def test_an_uncertain_condition_over_an_absent_branch_gives_anything() -> None:
    """And a REDUCE over it too, for the element may count or not."""
    padded = UOp(Op.PAD, f32(1, 1), dims((1,)), dims((2,)))
    less = UOp(Op.EXPAND, UOp(Op.CMPLT, EIGHT, const(8.0, F32)), dims((2,)))
    root = UOp(Op.WHERE, less, padded, const(1.0, F32))
    inputs = {**THREE, 1: floats(4.0)}
    assert said(only(root, inputs)) == [
        "anything (the spec gives no value)",
        "0x1p+0 or 0x1p+2",
    ]
    total = UOp(Op.REDUCE, root, arg=ReduceArg(Op.ADD, (0,)))
    assert said(only(total, inputs)) == ["anything (the spec gives no value)"]


def test_absent_elements_are_skipped_by_a_reduce() -> None:
    padded = UOp(Op.PAD, EIGHT, dims((1,)), dims((3,)))
    assert said(only(padded, THREE))[0] == "anything (the element is absent)"
    largest = UOp(Op.REDUCE, padded, arg=ReduceArg(Op.MAX, (0,)))
    assert said(only(largest, THREE)) == [AROUND_EIGHT]
    total = UOp(Op.REDUCE, padded, arg=ReduceArg(Op.ADD, (0,)))
    assert said(only(total, THREE)) == [AROUND_EIGHT]


def test_movement_moves_sets() -> None:
    x = UOp(Op.EXP2, param(0, (2, 3), F32))
    inputs = {0: np.arange(6, dtype=np.float32).reshape(2, 3)}
    here = only(x, inputs)
    moved = UOp(Op.FLIP, UOp(Op.PERMUTE, x, arg=PermuteArg((1, 0))), arg=FlipArg((True, False)))
    there = only(moved, inputs)
    for part in ("lo", "hi", "nan", "patterns"):
        expected = getattr(here, part).T[::-1]
        np.testing.assert_array_equal(getattr(there, part), expected)
    picked = UOp(Op.INDEX, x, index_const(1), index_const(2))
    assert said(only(picked, inputs)) == [here.describe(5)]
    rows = UOp(Op.STACK, picked, const(1.0, F32))
    assert said(only(rows, inputs)) == [here.describe(5), "0x1p+0"]
    zeros = UOp(Op.PAD, picked.src[0], dims((0, 0)), dims((2, 4)), arg=PadArg(PadFill.ZERO))
    assert said(only(zeros, inputs))[3::4] == ["0x0p+0"] * 2


def test_bits_of_a_set_are_anything() -> None:
    bits = UOp(Op.BITCAST, EIGHT, arg=DTypeArg(dtypes.uint32))
    assert said(only(bits, THREE)) == ["anything (the spec gives no value)"]
    single = UOp(Op.BITCAST, f32(0, 1), arg=DTypeArg(dtypes.uint8))
    assert said(only(single, THREE)) == ["0", "0", "64", "64"]


def test_nan_payloads_are_kept_by_copies_and_free_in_arithmetic() -> None:
    payload = np.asarray([0x7FC01234], np.uint32).view(np.float32)
    x = f32(0, 1)
    copied = only(UOp(Op.FLIP, x, arg=FlipArg((True,))), {0: payload})
    assert copied.nan.tolist() == [NaN.EXACT]
    assert said(copied) == ["nan:0x7fc01234"]
    assert copied.contains(payload).all()
    assert not copied.contains(floats(NAN)).any()
    summed = only(UOp(Op.ADD, x, const(1.0, F32)), {0: payload})
    assert summed.nan.tolist() == [NaN.MUST]
    assert summed.contains(floats(NAN)).all()
    assert not summed.contains(floats(1.0)).any()
    as_bits = only(
        UOp(Op.BITCAST, UOp(Op.ADD, x, const(1.0, F32)), arg=DTypeArg(I32)), {0: payload}
    )
    assert as_bits.any.all()


def test_a_maximum_with_one_nan_is_either_operand_unless_a_knob_says_which() -> None:
    root = UOp(Op.MAX, f32(0, 1), const(1.0, F32))
    inputs = {0: floats(NAN)}
    assert said(only(root, inputs)) == ["0x1p+0 or NaN"]
    assert said(only(root, inputs, Profile(max_nan="propagate"))) == ["NaN"]
    assert said(only(root, inputs, Profile(max_nan="number"))) == ["0x1p+0"]


def test_comparisons_with_nan() -> None:
    inputs = {0: floats(NAN)}
    for op in (Op.CMPGE, Op.CMPLE):
        root = UOp(op, f32(0, 1), const(1.0, F32))
        assert said(only(root, inputs)) == ["false or true"]
        assert said(only(root, inputs, Profile(cmp_nan="ieee"))) == ["false"]
    assert said(only(UOp(Op.CMPNE, f32(0, 1), const(1.0, F32)), inputs)) == ["true"]


def test_division_by_zero_is_unspecified_and_truncation_is_a_knob() -> None:
    a, b = param(0, (3,), I32), param(1, (3,), I32)
    inputs = {0: np.asarray([7, -7, 7], np.int32), 1: np.asarray([2, 2, 0], np.int32)}
    anything = "anything (the spec gives no value)"
    expected = {
        (Op.IDIV, "floor"): ["3", "-4", anything],
        (Op.MOD, "floor"): ["1", "1", anything],
        (Op.IDIV, "trunc"): ["3", "-3", anything],
        (Op.MOD, "trunc"): ["1", "-1", anything],
    }
    for (op, mode), words in expected.items():
        profile = Profile(int_div="trunc") if mode == "trunc" else STRICT
        assert said(only(UOp(op, a, b), inputs, profile)) == words


def test_saturation_of_small_casts_is_a_knob() -> None:
    root = UOp(Op.CAST, f32(0, 3), arg=DTypeArg(dtypes.fp8e4m3))
    inputs = {0: floats(464, 465, -INF)}
    assert said(only(root, inputs)) == ["0x1.cp+8", "NaN", "NaN"]
    saturated = only(root, inputs, Profile(fp8_saturate=True))
    assert said(saturated) == ["0x1.cp+8"] * 2 + ["-0x1.cp+8"]


def test_zero_fill_of_pads_is_a_knob() -> None:
    padded = UOp(Op.PAD, f32(0, 1), dims((0,)), dims((2,)))
    root = UOp(Op.REDUCE, padded, arg=ReduceArg(Op.MAX, (0,)))
    assert said(only(root, {0: floats(-1)})) == ["-0x1p+0"]
    assert said(only(root, {0: floats(-1)}, Profile(pad_fill="zero"))) == ["0x0p+0"]


def test_a_wide_float_becomes_some_integers_or_anything() -> None:
    as_int = UOp(Op.CAST, EIGHT, arg=DTypeArg(I32))
    assert said(only(as_int, THREE)) == ["7 or 8"]
    doubled = UOp(Op.MUL, as_int, const(1 << 28, I32))
    assert said(only(doubled, THREE)) == ["-2147483648 or 1879048192"]
    shifted = UOp(Op.SHL, const(1, I32), as_int)
    assert said(only(shifted, THREE)) == ["128 or 256"]
    negative = UOp(Op.CAST, UOp(Op.NEG, EIGHT), arg=DTypeArg(dtypes.uint8))
    assert said(only(negative, THREE)) == ["anything (the spec gives no value)"]


@pytest.mark.parametrize("target", INTS, ids=lambda d: d.name)
def test_an_uncertain_answer_becomes_zero_or_one(target: DType) -> None:
    """A CMPGE with a NaN may answer either way, in every integer dtype."""
    either = UOp(Op.CMPGE, f32(0, 1), f32(0, 1))
    root = UOp(Op.CAST, either, arg=DTypeArg(target))
    assert said(only(root, {0: floats(math.nan)})) == ["0 or 1"]


def test_an_uncertain_index_gives_anything_in_bounds_and_no_meaning_beyond() -> None:
    index = UOp(Op.CAST, EIGHT, arg=DTypeArg(I32))
    picked = UOp(Op.INDEX, f32(1, 9), index)
    inputs = {**THREE, 1: np.arange(9, dtype=np.float32)}
    assert said(only(picked, inputs)) == ["anything (the spec gives no value)"]
    with pytest.raises(UndefinedError, match=r"INDEX\.u1"):
        accept(UOp(Op.INDEX, f32(1, 8), index), {**THREE, 1: np.arange(8, dtype=np.float32)})


def test_sets_pass_through_memory() -> None:
    """A STORE under a view of a buffer; what it does not touch stays as it was."""
    out = buffer(7, (3,))
    middle = UOp(Op.SHRINK, out, dims((1,)), dims((1,)))
    stored = UOp(Op.STORE, middle, EIGHT)
    one, two, three = (["anything (the spec gives no value)"], [AROUND_EIGHT], ["0x0p+0"])
    assert said(only(UOp(Op.SINK, stored), THREE)) == one + two + one
    given = {**THREE, 7: floats(0, 0, 0)}
    assert said(only(UOp(Op.SINK, stored), given)) == three + two + three
    after = UOp(Op.AFTER, out, stored)
    read = UOp(Op.ADD, after, const(0.0, F32))
    assert said(only(read, given)) == three + two + three
    assert said(only(after, given)) == three + two + three


def test_sets_pass_through_what_waits_for_effects() -> None:
    """An effect has no value, so AFTER passes on its first operand alone."""
    later = UOp(Op.AFTER, EIGHT, UOp(Op.STORE, buffer(1, (1,)), EIGHT))
    assert said(only(later, THREE)) == [AROUND_EIGHT]
    exact = UOp(Op.AFTER, f32(0, 1), UOp(Op.STORE, buffer(1, (1,)), EIGHT))
    assert said(only(exact, THREE)) == ["0x1.8p+1"]


def test_outputs_come_in_the_order_of_the_evaluator() -> None:
    x = f32(0, 1)
    pair = UOp(Op.TUPLE, UOp(Op.NEG, x), EIGHT)
    assert [said(a) for a in accept(pair, THREE)] == [["-0x1.8p+1"], [AROUND_EIGHT]]
    stores = [UOp(Op.STORE, buffer(slot, (1,)), v) for slot, v in ((9, EIGHT), (4, x))]
    sink = UOp(Op.SINK, *stores)
    result = evaluate(sink, THREE)
    assert isinstance(result, dict)
    assert sorted(result) == [4, 9]
    assert [said(a) for a in accept(sink, THREE)] == [["0x1.8p+1"], [AROUND_EIGHT]]


def test_sets_pass_through_functions() -> None:
    body = UOp(Op.TUPLE, UOp(Op.NEG, f32(0, 1)), f32(1, 1))
    call = UOp(Op.FUNCTION, body, EIGHT, f32(0, 1))
    first, second = (UOp(Op.GETTUPLE, call, arg=GetTupleArg(k)) for k in (0, 1))
    assert said(only(UOp(Op.NEG, first), THREE)) == [AROUND_EIGHT]
    assert only(second, THREE).sets is None
    assert [said(a) for a in accept(call, THREE)][1] == ["0x1.8p+1"]


def test_interior_zeros_count() -> None:
    wide = UOp(Op.SUB, EIGHT, const(8.0, F32))
    times_inf = only(UOp(Op.MUL, wide, const(INF, F32)), THREE)
    assert said(times_inf) == ["-inf to inf or NaN"]
    reciprocal = only(UOp(Op.RECIP, wide), THREE)
    assert said(reciprocal) == ["-inf to -0x1.555552p+18 or 0x1.555552p+18 to inf"]
    root = only(UOp(Op.SQRT, wide), THREE)
    assert root.contains(floats(-0.0)).all()
    assert root.contains(floats(NAN)).all()
    assert not root.contains(floats(-1e-30)).any()


def test_shares() -> None:
    accepted = only(UOp(Op.EXP2, f32(0, 3)), {0: floats(3.5, 0.0, NAN)})
    assert accepted.patterns[:2].tolist() == [6, 1]
    assert accepted.single.tolist() == [False, True, True]
    assert accepted.constrained.all()
    booleans = only(UOp(Op.CMPLT, EIGHT, const(8.0, F32)), THREE)
    assert not booleans.constrained.any()
    opened = only(UOp(Op.IDIV, const(1, I32), const(0, I32)))
    assert opened.patterns == 1 << 32
    assert not opened.constrained


def test_distances_are_counted_in_representable_values() -> None:
    accepted = only(f32(0, 4), {0: floats(1.0, 0.0, NAN, NAN)})
    actual = floats(np.nextafter(np.float32(1), np.float32(0)), -0.0, NAN, 1.0)
    assert accepted.distance(actual).tolist() == [1, 1, 0, INF]
