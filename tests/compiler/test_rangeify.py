"""rangeify: what becomes a kernel, what is stored, and how tensors become addresses."""

from __future__ import annotations

import numpy as np
import pytest

from uop.compiler.stages.callify.stage import callify
from uop.compiler.stages.order import TEMPORARY
from uop.compiler.stages.rangeify.split import OUTPUTS
from uop.compiler.stages.rangeify.stage import rangeify
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import (
    BinaryArg,
    BufferArg,
    DTypeArg,
    FlipArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
)
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.kernel.forms import RANGED, verify
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

X = param(0, (2, 3, 4), dtypes.int32)


def kernels(root: UOp) -> list[UOp]:
    program = rangeify(callify(root))
    verify(program, RANGED)
    return [u for u in program.toposort() if u.op is Op.CALL]


def run(root: UOp, inputs: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    program = rangeify(callify(root))
    verify(program, RANGED)
    result = evaluate(program, inputs)
    assert isinstance(result, dict)
    return result


def test_elementwise_and_movement_are_one_kernel() -> None:
    moved = UOp(Op.PERMUTE, X, arg=PermuteArg((1, 2, 0)))
    flat = UOp(Op.RESHAPE, UOp(Op.ADD, moved, moved), dims((24,)))
    (call,) = kernels(UOp(Op.NEG, flat))
    body = call.src[0].toposort()
    assert not any(u.op in (Op.PERMUTE, Op.RESHAPE) for u in body)
    # One element of X is read once, although it is used twice.
    assert sum(u.op is Op.LOAD for u in body) == 1


def test_a_gate_has_a_value_where_nothing_is_read() -> None:
    """Outside of the PAD the gate would compare 0 // 0."""
    x, y = (param(slot, (3,), dtypes.int32) for slot in range(2))
    gate = UOp(Op.CMPLT, UOp(Op.IDIV, x, y), const(2, dtypes.int32))
    padded = UOp(Op.PAD, UOp(Op.LOAD, x, y, gate), dims((1,)), dims((5,)), arg=PadArg(PadFill.ZERO))
    inputs = {0: np.array([7, 9, -3], np.int32), 1: np.array([3, 5, 2], np.int32)}
    (result,) = run(padded, inputs).values()
    assert result.tolist() == [0, 3, 9, -3, 0]


def test_a_stored_fold_is_a_kernel_of_its_own() -> None:
    total = UOp(Op.CONTIGUOUS, UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD, (0, 2))))
    first, second = kernels(UOp(Op.SUB, X, total))
    (fold,) = (u for u in first.src[0].toposort() if u.op is Op.REDUCE)
    assert fold.arg == ReduceArg(Op.ADD)
    assert [(r.op, r.src[0]) for r in fold.src[1:]] == [(Op.RANGE, index_const(n)) for n in (2, 4)]
    assert first.src[1].tag == TEMPORARY
    # The second one runs after the first.
    assert any(a.op is Op.AFTER and a.src[1] is first for a in second.src[1:])


def test_a_fold_as_result_needs_no_temporary() -> None:
    total = UOp(Op.REDUCE, X, arg=ReduceArg(Op.MAX, (1,)))
    (call,) = kernels(total)
    assert call.src[1].tag is None
    # Also where another kernel reads it.
    stored = UOp(Op.CONTIGUOUS, total)
    first, second = kernels(UOp(Op.TUPLE, stored, UOp(Op.SUB, X, stored)))
    assert {a.tag for call in (first, second) for a in call.src[1:]} == {None}


def test_a_fold_is_stored_in_its_own_shape() -> None:
    """The loops over the flat result would divide, and no loop of the fold would be left."""
    total = UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD, (1,)))
    turned = UOp(Op.PERMUTE, UOp(Op.RESHAPE, total, dims((2, 1, 4))), arg=PermuteArg((0, 2, 1)))
    (call,) = kernels(UOp(Op.RESHAPE, turned, dims((8,))))
    body = call.src[0].toposort()
    assert sorted(int(u.src[0].arg.value) for u in body if u.op is Op.RANGE) == [2, 3, 4]
    assert not any(u.op in (Op.IDIV, Op.MOD) for u in body)
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    (result,) = run(UOp(Op.RESHAPE, turned, dims((8,))), {0: data}).values()
    np.testing.assert_array_equal(result.reshape(2, 4), data.sum(1))


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0)])
def test_a_fold_that_is_turned_is_stored_as_the_result(order: tuple[int, ...]) -> None:
    total = UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD, (1,)))
    turned = UOp(Op.PERMUTE, UOp(Op.RESHAPE, total, dims((2, 2, 2))), arg=PermuteArg(order))
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    (result,) = run(UOp(Op.RESHAPE, turned, dims((8,))), {0: data}).values()
    expected = data.sum(1).reshape(2, 2, 2).transpose(order)
    np.testing.assert_array_equal(result.ravel(), expected.ravel())


def test_results_of_one_shape_share_a_kernel() -> None:
    flat = UOp(Op.RESHAPE, X, dims((24,)))
    fold = UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD, (0,)))
    shared = UOp(Op.MUL, X, X)
    results = [
        UOp(Op.NEG, shared),
        UOp(Op.ADD, shared, X),
        fold,
        UOp(Op.NEG, flat),
        UOp(Op.CMPNE, X, X),
    ]
    first, *others = sorted(kernels(UOp(Op.TUPLE, *results)), key=lambda call: -len(call.src))
    order = first.src[0].toposort()
    assert [u.op for u in order if u.op in (Op.STORE, Op.GROUP)] == [*[Op.STORE] * 3, Op.GROUP]
    assert sum(u.op in (Op.LOAD, Op.MUL) and u.dtype is X.dtype for u in order) == 2
    assert [len(call.src) for call in others] == [3, 3]
    data = np.arange(-12, 12, dtype=np.int32).reshape(X.shape)
    # A program numbers the BUFFERs of its results behind its inputs.
    found = run(UOp(Op.TUPLE, *results), {0: data})
    square = data * data
    expected = [
        -square,
        square + data,
        data.sum(axis=0, keepdims=True),
        -data.reshape(-1),
        data != data,
    ]
    for slot, right in enumerate(expected, start=1):
        np.testing.assert_array_equal(found[slot], right)


def test_a_costly_value_of_results_that_share_a_kernel_is_not_stored() -> None:
    costly = UOp(Op.SIN, UOp(Op.CAST, X, arg=DTypeArg(dtypes.float32)))
    alone, two = UOp(Op.NEG, costly), UOp(Op.FLIP, costly, arg=FlipArg((True, False, False)))
    assert len(kernels(UOp(Op.TUPLE, costly, alone))) == 1
    # Computed at two indices it costs less than a store and two loads, at four it costs more.
    assert len(kernels(UOp(Op.TUPLE, alone, two))) == 1
    more = [UOp(Op.FLIP, costly, arg=FlipArg((k, True, not k))) for k in (False, True)]
    assert len(kernels(UOp(Op.TUPLE, alone, two, *more))) == 2


def test_a_kernel_has_a_limited_number_of_results() -> None:
    results = [UOp(Op.ADD, X, const(k, dtypes.int32)) for k in range(1, 2 * OUTPUTS + 2)]
    counts = [sum(u.op is Op.STORE for u in call.src[0].toposort())
              for call in kernels(UOp(Op.TUPLE, *results))]  # fmt: skip
    assert sorted(counts) == [1, OUTPUTS, OUTPUTS]


def test_what_is_read_at_two_indices_is_stored_once() -> None:
    flip = FlipArg((True, False, False))
    deep = X
    for _ in range(40):
        deep = UOp(Op.ADD, UOp(Op.FLIP, deep, arg=flip), UOp(Op.MUL, deep, deep))
    found = kernels(deep)
    # Lowered at every index it would have 2^40 nodes. What is light is computed again.
    assert 5 < len(found) < 40
    assert sum(len(call.src[0].toposort()) for call in found) < 40 * 40


def test_views_of_inputs_are_never_stored() -> None:
    flipped = UOp(Op.FLIP, X, arg=FlipArg((True, True, False)))
    assert len(kernels(UOp(Op.ADD, UOp(Op.PERMUTE, flipped, arg=PermuteArg((0, 1, 2))), X))) == 1


def test_a_range_for_every_axis_but_those_of_one_element() -> None:
    (call,) = kernels(UOp(Op.NEG, param(0, (3, 1, 5), dtypes.int32)))
    bounds = [u.src[0].arg.value for u in call.src[0].toposort() if u.op is Op.RANGE]  # type: ignore[union-attr]
    assert bounds == [3, 5]


def test_an_input_that_is_overwritten_is_read_first() -> None:
    """A swap: both are read before either is written."""
    a, b = (UOp(Op.BUFFER, dims((3,)), arg=BufferArg(k, dtypes.int32)) for k in (0, 1))
    read = (UOp(Op.LOAD, a), UOp(Op.LOAD, b))
    swapped = UOp(
        Op.SINK,
        UOp(Op.STORE, UOp(Op.AFTER, a, *read), read[1]),
        UOp(Op.STORE, UOp(Op.AFTER, b, *read), read[0]),
    )
    x, y = np.array([1, 2, 3], np.int32), np.array([7, 8, 9], np.int32)
    program = rangeify(callify(swapped))
    result = evaluate(program, {0: x, 1: y})
    assert isinstance(result, dict)
    np.testing.assert_array_equal(result[0], y)
    np.testing.assert_array_equal(result[1], x)


def test_a_read_outside_a_pad_is_gated() -> None:
    padded = UOp(Op.PAD, X, dims((0, 1, 2)), dims((2, 5, 7)))
    total = UOp(Op.REDUCE, padded, arg=ReduceArg(Op.MUL, (1, 2)))
    (call,) = kernels(total)
    (load,) = (u for u in call.src[0].toposort() if u.op is Op.LOAD)
    assert len(load.src) == 3
    x = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
    expected = x.reshape(2, 12).prod(1, dtype=np.int32)
    np.testing.assert_array_equal(run(total, {0: x})[1].reshape(2), expected)


def test_data_in_the_program_is_an_argument() -> None:
    data = UOp(Op.BINARY, arg=BinaryArg(bytes([5, 0, 9])))
    picked = UOp(Op.INDEX, data, UOp(Op.STACK, *(index_const(i) for i in (2, 0, 1))))
    (call,) = kernels(picked)
    assert data in call.src[1:]
    np.testing.assert_array_equal(run(picked, {})[0], [9, 5, 0])


@pytest.mark.parametrize("old", ["uint8", "int16", "float32", "int64", "bfloat16", "bool"])
@pytest.mark.parametrize("new", ["uint8", "float16", "int32", "float64", "fp8e5m2"])
def test_a_bitcast_to_another_size_is_shifts(old: str, new: str) -> None:
    source, target = DTYPES[old], DTYPES[new]
    x = param(0, (2, 8), source)
    raw = np.arange(16 * source.itemsize, dtype=np.uint8).reshape(2, -1) * 13 + 1
    if source is dtypes.bool:
        raw = raw & 1
    cast = UOp(Op.BITCAST, x, arg=DTypeArg(target))
    result = run(UOp(Op.CONTIGUOUS, cast), {0: raw.view(np_dtype(source))})
    assert result[1].tobytes() == raw.tobytes()


def test_an_empty_fold_is_its_identity_and_an_empty_value_has_a_kernel_that_does_nothing() -> None:
    empty = UOp(Op.SHRINK, X, dims((0, 0, 0)), dims((2, 0, 4)))
    folded = UOp(Op.REDUCE, empty, arg=ReduceArg(Op.MUL, (1,)))
    np.testing.assert_array_equal(run(folded, {})[1], np.ones((2, 1, 4)))
    assert run(UOp(Op.NEG, empty), {})[1].shape == (2, 0, 4)


def test_a_fold_over_one_element_is_the_element() -> None:
    """No accumulator: 0 + -0 would be +0."""
    x = param(0, (2, 1), dtypes.float32)
    minus_zero = np.array([[-0.0], [3.0]], np.float32)
    result = run(UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (1,))), {0: minus_zero})
    assert result[1].tobytes() == minus_zero.tobytes()


def test_a_stack_of_scalars_is_chosen_by_the_index() -> None:
    stack = UOp(Op.STACK, *(UOp(Op.MUL, UOp(Op.INDEX, X, *map(index_const, (1, k, 3))),
                            const(k + 1, dtypes.int32)) for k in range(3)))  # fmt: skip
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    np.testing.assert_array_equal(run(stack, {0: x})[1], [15 * 1, 19 * 2, 23 * 3])
