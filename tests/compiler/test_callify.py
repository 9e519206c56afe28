"""callify: effects become values, functions are inlined, results and inputs get their slots."""

from __future__ import annotations

import numpy as np
import pytest

from uop.compiler.stages.callify import callify
from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    BufferArg,
    FlipArg,
    GetTupleArg,
    PadArg,
    ParamArg,
    PermuteArg,
    RangeArg,
    ReplicatedArg,
    SliceArg,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.kernel.forms import CALLIFIED, verify
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param


def buffer(slot: int, *shape: int) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtypes.int32))


def store(target: UOp, value: UOp, *gate: UOp) -> UOp:
    return UOp(Op.STORE, target, value, *gate)


def get(function: UOp, idx: int) -> UOp:
    return UOp(Op.GETTUPLE, function, arg=GetTupleArg(idx))


def body_of(program: UOp) -> UOp:
    return program.src[0].src[1].src[0].src[0]


B = buffer(5, 2, 3)
CONTENTS = np.array([[10, 20, 30], [40, 50, 60]], np.int32)


def run(root: UOp, **inputs: np.ndarray) -> dict[int, np.ndarray]:
    given = {int(slot[1:]): a for slot, a in inputs.items()}
    program = callify(root)
    verify(program, CALLIFIED)
    assert not any(u.op in (Op.STORE, Op.AFTER) for u in body_of(program).toposort())
    result = evaluate(program, given)
    assert isinstance(result, dict)
    return result


def test_a_value_goes_into_a_fresh_buffer() -> None:
    x, y = param(3, (2,), dtypes.int32), param(7, (2,), dtypes.int32)
    program = callify(UOp(Op.SUB, y, x))
    (effect,) = program.src
    assert effect.src[0] is buffer(8, 2)
    assert effect.src[1].src[0].src[1:] == (x, y)
    first, second = (param(k, (2,), dtypes.int32) for k in (0, 1))
    assert body_of(program).src[0] is UOp(Op.SUB, second, first)


def test_a_store_through_views_is_a_choice() -> None:
    view = UOp(Op.SHRINK, B, dims((0, 1)), dims((2, 2)))
    view = UOp(Op.PERMUTE, view, arg=PermuteArg((1, 0)))
    view = UOp(Op.FLIP, view, arg=FlipArg((True, False)))
    view = UOp(Op.RESHAPE, view, dims((4,)))
    new = np.array([1, 2, 3, 4], np.int32)
    result = run(UOp(Op.SINK, store(view, param(0, (4,), dtypes.int32))), s0=new, s5=CONTENTS)
    expected = CONTENTS.copy()
    expected[:, 1:] = np.array([[1, 2], [3, 4]])[::-1].T
    np.testing.assert_array_equal(result[5], expected)


def test_stores_in_order_see_each_other() -> None:
    first = UOp(Op.AFTER, B, store(B, UOp(Op.ADD, B, const(1, dtypes.int32))))
    second = store(first, UOp(Op.MUL, first, const(2, dtypes.int32)))
    result = run(UOp(Op.SINK, second), s5=CONTENTS)
    np.testing.assert_array_equal(result[5], (CONTENTS + 1) * 2)


def test_a_gate_and_an_absent_element_leave_the_contents() -> None:
    row = param(0, (1, 3), dtypes.int32)
    padded = UOp(Op.PAD, row, dims((1, 0)), dims((2, 3)))
    gate = UOp(Op.CMPNE, padded, const(7, dtypes.int32))
    result = run(
        UOp(Op.SINK, store(B, padded, gate)), s0=np.array([[6, 7, 8]], np.int32), s5=CONTENTS
    )
    np.testing.assert_array_equal(result[5], [[10, 20, 30], [6, 50, 8]])


def test_a_load_of_a_location_fills_what_is_absent() -> None:
    wide = UOp(Op.PAD, B, dims((0, 1)), dims((2, 5)), arg=PadArg())
    alt = UOp(Op.EXPAND, UOp(Op.RESHAPE, const(9, dtypes.int32), dims((1, 1))), dims((2, 5)))
    for load, outside in ((UOp(Op.LOAD, wide), 0), (UOp(Op.LOAD, wide, alt), 9)):
        result = run(UOp(Op.SINK, store(buffer(6, 2, 5), load)), s5=CONTENTS)
        expected = np.full((2, 5), outside, np.int32)
        expected[:, 1:4] = CONTENTS
        np.testing.assert_array_equal(result[6], expected)


def test_functions_are_inlined_inside_functions() -> None:
    """The PARAM 0 of each body is another one."""
    two, one = const(2, dtypes.int32), const(1, dtypes.int32)
    p = param(0, (3,), dtypes.int32)
    double = UOp(Op.TUPLE, UOp(Op.MUL, p, two), p)
    outer = UOp(Op.TUPLE, get(UOp(Op.FUNCTION, double, UOp(Op.ADD, p, one)), 0))
    x = np.array([1, 2, 3], np.int32)
    program = get(UOp(Op.FUNCTION, outer, UOp(Op.ADD, get(UOp(Op.FUNCTION, double, p), 1), two)), 0)
    assert not any(u.op is Op.FUNCTION for u in body_of(callify(program)).toposort())
    np.testing.assert_array_equal(run(program, s0=x)[1], (x + 2 + 1) * 2)


def test_a_function_as_root_gives_each_of_its_results() -> None:
    p = param(0, (3,), dtypes.int32)
    function = UOp(Op.FUNCTION, UOp(Op.TUPLE, p, UOp(Op.NEG, p)), p)
    x = np.array([1, 2, 3], np.int32)
    result = run(function, s0=x)
    np.testing.assert_array_equal(result[1], x)
    np.testing.assert_array_equal(result[2], -x)


def test_a_deep_graph_needs_no_stack() -> None:
    deep = param(0, (), dtypes.int32)
    for _ in range(20_000):
        deep = UOp(Op.NEG, deep)
    assert len(body_of(callify(deep)).toposort()) > 20_000


def test_a_clash_of_slots_is_invalid() -> None:
    with pytest.raises(InvalidError, match=r"INPUT\.c1"):
        callify(UOp(Op.ADD, param(5, (2, 3), dtypes.int32), B))


def test_stores_through_other_views_are_not_compiled() -> None:
    wide = UOp(Op.EXPAND, buffer(0, 1), dims((3,)))
    for target in (wide, UOp(Op.INDEX, B, index_const(1))):
        value = param(1, target.shape, dtypes.int32)
        with pytest.raises(UnsupportedError, match="a STORE in a tensor graph goes through"):
            callify(UOp(Op.SINK, store(target, value)))


def test_kernels_are_no_tensor_graphs() -> None:
    with pytest.raises(UnsupportedError, match="RANGE in a tensor graph"):
        callify(UOp(Op.RANGE, index_const(3), arg=RangeArg(0)))


def test_an_empty_program_stores_nothing() -> None:
    assert callify(UOp(Op.SINK)) is UOp(Op.SINK)


def test_programs_for_n_devices_are_named() -> None:
    x = param(0, (4, 2), dtypes.int32, ("A", "B"))
    with pytest.raises(UnsupportedError, match=r"NEG on the devices \(A, B\)|PARAM on the devices"):
        callify(UOp(Op.NEG, x))


def test_replicated_and_slice_become_views() -> None:
    x = param(0, (2, 3), dtypes.int32)
    part = UOp(Op.SLICE, x, index_const(1), arg=SliceArg(4, dtypes.uint16))
    rows = UOp(Op.REPLICATED, x, arg=ReplicatedArg((0,)))
    same = np.array([[7, 8, 9]] * 2, np.int32)
    for root in (part, rows):
        program = callify(root)
        verify(program, CALLIFIED)
        assert not {Op.SLICE, Op.REPLICATED} & {u.op for u in program.toposort()}
        (found,) = evaluate(program, {0: same}).values()  # type: ignore[union-attr]
        np.testing.assert_array_equal(found, evaluate(root, {0: same}))


def test_a_store_goes_through_a_slice() -> None:
    part = UOp(Op.SLICE, B, index_const(2), arg=SliceArg(3, dtypes.int32))
    root = UOp(Op.SINK, store(part, param(0, (3,), dtypes.int32)))
    given = {0: np.array([1, 2, 3], np.int32), 5: CONTENTS}
    found, wanted = evaluate(callify(root), given), evaluate(root, given)
    np.testing.assert_array_equal(found[5], wanted[5])  # type: ignore[call-overload,index]
    assert wanted[5].tolist() == [[10, 20, 1], [2, 3, 60]]  # type: ignore[call-overload,index]


def test_symbolic_sizes_are_named() -> None:
    n = UOp(Op.PARAM, dims(()), arg=ParamArg(1, dtypes.index, min=1, max=4))
    x = UOp(Op.PARAM, UOp(Op.STACK, n), arg=ParamArg(0, dtypes.int32))
    with pytest.raises(UnsupportedError, match="symbolic sizes"):
        callify(UOp(Op.NEG, x))
