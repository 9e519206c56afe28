"""callify: effects become values, functions are inlined, results and inputs get their slots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from uop.compiler.pipeline import compile
from uop.compiler.stages.callify.stage import RULES, callify
from uop.conformance.locate.firing import Firing, change_of
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import (
    BinaryArg,
    BufferArg,
    CustomArg,
    CustomFunctionArg,
    FlipArg,
    GetTupleArg,
    InsArg,
    PadArg,
    ParamArg,
    PermuteArg,
    RangeArg,
    ReplicatedArg,
    SliceArg,
    SourceArg,
    SpecialArg,
    WmmaArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, UndefinedError, UnsupportedError, UopError
from uop.spec.graph import slots_of
from uop.spec.kernel.forms import CALLIFIED, verify
from uop.spec.ops.names import Op
from uop.spec.registry import ops_of
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


def test_each_argument_is_inlined_for_the_placeholder_of_its_slot() -> None:
    """The body uses PARAM 1 before PARAM 0."""
    p, q = (param(slot, (3,), dtypes.int32) for slot in range(2))
    program = get(UOp(Op.FUNCTION, UOp(Op.TUPLE, UOp(Op.SUB, q, p)), q, p), 0)
    a, b = np.array([1, 2, 3], np.int32), np.array([50, 70, 110], np.int32)
    np.testing.assert_array_equal(run(program, s0=a, s1=b)[2], [-49, -68, -107])


def test_a_function_as_root_gives_each_of_its_results() -> None:
    p = param(0, (3,), dtypes.int32)
    function = UOp(Op.FUNCTION, UOp(Op.TUPLE, p, UOp(Op.NEG, p)), p)
    x = np.array([1, 2, 3], np.int32)
    result = run(function, s0=x)
    np.testing.assert_array_equal(result[1], x)
    np.testing.assert_array_equal(result[2], -x)


@pytest.mark.slow
def test_a_deep_graph_needs_no_stack() -> None:
    deep = param(0, (), dtypes.int32)
    for _ in range(20_000):
        deep = UOp(Op.NEG, deep)
    assert len(body_of(callify(deep)).toposort()) > 20_000


def test_a_clash_of_slots_is_invalid() -> None:
    with pytest.raises(InvalidError, match=r"INPUT\.c1"):
        callify(UOp(Op.ADD, param(5, (2, 3), dtypes.int32), B))


def test_a_store_through_elements_that_are_there_several_times_is_refused() -> None:
    wide = UOp(Op.EXPAND, buffer(0, 1), dims((3,)))
    root = UOp(Op.SINK, store(wide, param(1, wide.shape, dtypes.int32)))
    with pytest.raises(UnsupportedError, match="a STORE in a tensor graph goes through no EXPAND"):
        callify(root)
    with pytest.raises(UndefinedError, match=r"STORE\.u3"):
        evaluate(root, {0: np.zeros(1, np.int32), 1: np.zeros(3, np.int32)})


ROWS = np.arange(12, dtype=np.int32).reshape(3, 4)
TWO = param(2, (2,), dtypes.int32)
ABSENT = UOp(Op.PAD, TWO, dims((1,)), dims((3,)))


def put(*place: Any) -> Callable[[Any, Any], None]:
    """How numpy writes to a place of an array."""

    def write(array: Any, value: Any) -> None:
        array[place] = value

    return write


def put_last_rows(array: Any, value: Any) -> None:
    array[[2, 0]] = value[1:]


def put_inside(array: Any, value: Any) -> None:
    array[:] = value[1:4]


def put_columns(array: Any, value: Any) -> None:
    array.T[[2, 0]] = value


PICKS: dict[str, tuple[Callable[[UOp], UOp], Callable[[Any, Any], None]]] = {
    "one row": (lambda b: UOp(Op.INDEX, b, index_const(1)), put(1)),
    "rows": (lambda b: UOp(Op.INDEX, b, TWO), put([2, 0])),
    "columns": (
        lambda b: UOp(Op.INDEX, UOp(Op.PERMUTE, b, arg=PermuteArg((1, 0))), TWO),
        put_columns,
    ),
    "part of a column": (lambda b: UOp(Op.INDEX, b, TWO, index_const(3)), put([2, 0], 3)),
    "a grid": (lambda b: UOp(Op.INDEX, b, TWO, TWO), put(*np.ix_([2, 0], [2, 0]))),
    "one element": (lambda b: UOp(Op.INDEX, b, index_const(2), index_const(1)), put(2, 1)),
    "a part of rows": (
        lambda b: UOp(Op.SHRINK, UOp(Op.INDEX, b, TWO), dims((1, 1)), dims((1, 2))),
        put(slice(0, 1), slice(1, 3)),
    ),
    "padded": (lambda b: UOp(Op.PAD, b, dims((1, 0)), dims((5, 4))), put_inside),
    "an absent row": (lambda b: UOp(Op.INDEX, b, ABSENT), put_last_rows),
}
"""What picks elements of a location, and how numpy writes to them."""


@pytest.mark.sampled(28)
@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(
    "dtype", [dtypes.int32, dtypes.float32, dtypes.bool, dtypes.bfloat16], ids=str
)
@pytest.mark.parametrize("name", PICKS)
def test_a_store_through_an_index_is_what_numpy_does(name: str, dtype: DType) -> None:
    pick, write = PICKS[name]
    target = pick(UOp(Op.BUFFER, dims((3, 4)), arg=BufferArg(0, dtype)))
    storage = np_dtype(dtype)
    value = (np.arange(np.prod(target.shape, dtype=int)).reshape(target.shape) % 3 - 1).astype(
        storage
    )
    if dtype.is_float and value.size > 2:
        value.reshape(-1)[:2] = np.nan, -0.0
    root = UOp(Op.SINK, store(target, param(1, target.shape, dtype)))
    given = {0: ROWS.astype(storage), 1: value}
    if TWO in root.toposort():
        given[2] = np.array([2, 0], np.int32)
    right = ROWS.astype(storage)
    write(right, value)
    for found in (evaluate(root, given), evaluate(callify(root), given), compile(root).run(given)):
        assert isinstance(found, dict)
        assert found[0].tobytes() == right.tobytes()


def test_a_gated_store_through_an_index_keeps_what_stands_there() -> None:
    target, gate = UOp(Op.INDEX, B, TWO), param(3, (2, 3), dtypes.bool)
    root = UOp(Op.SINK, store(target, param(1, target.shape, dtypes.int32), gate))
    given = {
        5: np.arange(6, dtype=np.int32).reshape(2, 3),
        1: np.arange(10, 16, dtype=np.int32).reshape(2, 3),
        2: np.array([1, 7], np.int32),
        3: np.array([[True, False, True], [False] * 3]),
    }
    # The gate of the second row is false, and nothing looks at its index.
    for found in (evaluate(root, given), evaluate(callify(root), given)):
        assert isinstance(found, dict)
        assert found[5].tolist() == [[0, 1, 2], [10, 4, 12]]


ADDED = UOp(Op.ATOMICADD, UOp(Op.INDEX, B, index_const(0), index_const(0)), const(1, dtypes.int32))
IF = UOp(Op.IF, const(True, dtypes.bool))
LOOP = UOp(Op.RANGE, index_const(3), arg=RangeArg(0))
SOURCE, BINARY = UOp(Op.SOURCE, arg=SourceArg("")), UOp(Op.BINARY, arg=BinaryArg(b""))
FRAGMENTS = (param(0, (8,), dtypes.float16), param(1, (4,), dtypes.float16),
             param(2, (4,), dtypes.float32))  # fmt: skip
OF_A_KERNEL = {
    Op.RANGE: LOOP,
    Op.END: UOp(Op.END, UOp(Op.GROUP), LOOP),
    Op.LINEAR: UOp(Op.LINEAR),
    Op.SPECIAL: UOp(Op.SPECIAL, index_const(3), arg=SpecialArg("gidx0")),
    Op.BARRIER: UOp(Op.BARRIER),
    Op.IF: IF,
    Op.ENDIF: UOp(Op.ENDIF, IF),
    Op.WMMA: UOp(Op.WMMA, *FRAGMENTS, arg=WmmaArg(16, 8, 16, dtypes.float16, dtypes.float32)),
    Op.ATOMICADD: ADDED,
    Op.INS: UOp(Op.INS, const(1, dtypes.int32), arg=InsArg("own", dtypes.int32)),
    Op.CUSTOM: UOp(Op.CUSTOM, const(1, dtypes.int32), arg=CustomArg("{0}", dtypes.int32)),
    Op.CUSTOMFUNCTION: UOp(Op.CUSTOMFUNCTION, arg=CustomFunctionArg("own")),
    Op.SOURCE: SOURCE,
    Op.PROGRAM: UOp(Op.PROGRAM, UOp(Op.LINEAR), SOURCE, BINARY),
}


@pytest.mark.parametrize("op", OF_A_KERNEL, ids=lambda op: op.name)
def test_kernels_are_no_tensor_graphs(op: Op) -> None:
    u = OF_A_KERNEL[op]
    first = {Op.END: Op.RANGE, Op.ENDIF: Op.IF, Op.PROGRAM: Op.LINEAR}.get(op, op)
    root = UOp(Op.SINK, u) if u.dtype is dtypes.void else u
    given = {slot: np.zeros(v.shape, np_dtype(v.dtype)) for slot, v in slots_of(root).items()}
    with pytest.raises(UnsupportedError, match=f"{first.name} in a tensor graph"):
        callify(root)
    with pytest.raises(UndefinedError, match=f"{first.name} outside a kernel"):
        evaluate(root, given)


def test_every_op_below_the_graph_is_refused_in_one() -> None:
    """An address alone is also a value of a tensor graph."""
    assert ops_of("codegen") - {Op.GETADDR} <= set(OF_A_KERNEL)


def test_an_empty_program_stores_nothing() -> None:
    assert callify(UOp(Op.SINK)) is UOp(Op.SINK)


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


def test_variables_are_arguments_of_the_function() -> None:
    n = UOp(Op.PARAM, dims(()), arg=ParamArg(3, dtypes.index, min=1, max=4))
    x = UOp(Op.PARAM, UOp(Op.STACK, n), arg=ParamArg(2, dtypes.int32))
    program = callify(UOp(Op.NEG, x))
    function = program.src[0].src[1].src[0]
    own = UOp(Op.PARAM, dims(()), arg=ParamArg(1, dtypes.index, min=1, max=4))
    body = UOp(
        Op.TUPLE, UOp(Op.NEG, UOp(Op.PARAM, UOp(Op.STACK, own), arg=ParamArg(0, dtypes.int32)))
    )
    assert function.src == (body, x, n)
    assert program.src[0].src[0].shape == (n,)


X = param(0, (2, 3), dtypes.int32)
P = param(0, (), dtypes.int32)
DOUBLE = UOp(Op.FUNCTION, UOp(Op.TUPLE, UOp(Op.ADD, P, P)), param(0, (), dtypes.int32))
WRITTEN = UOp(Op.AFTER, B, store(B, UOp(Op.NEG, X)))
FIRING = {
    "inline_functions": get(DOUBLE, 0),
    "on_single_devices": UOp(Op.NEG, param(0, (4,), dtypes.int32, ("D0", "D1"))),
    "decompose_view": UOp(Op.REPLICATED, X, arg=ReplicatedArg((0,))),
    "load_contents": UOp(Op.LOAD, WRITTEN),
    "contents_after_effects": UOp(Op.SINK, store(B, UOp(Op.NEG, X))),
}
"""A program in which each rule fires."""


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_seen_and_keeps_the_value(rule: str) -> None:
    root = FIRING[rule]
    firings: list[Firing] = []
    callify(root, lambda *seen: firings.append(Firing("callify", *seen)))
    same = {slot: np.ones(u.shape, np.int32) for slot, u in slots_of(root).items()}
    found = [firing for firing in firings if firing.rule == rule]
    assert found
    for firing in found:
        assert change_of(firing, same) is None


def test_a_rule_that_changes_the_value_is_found() -> None:
    """The text of memory after a store, and of the memory before it."""
    firings: list[Firing] = []
    callify(UOp(Op.LOAD, WRITTEN), lambda *seen: firings.append(Firing("callify", *seen)))
    (firing,) = (f for f in firings if f.rule == "contents_after_effects")
    before = UOp(Op.PARAM, *B.src, arg=ParamArg(5, dtypes.int32))
    change = change_of(replace(firing, after=before), {0: CONTENTS, 5: CONTENTS})
    assert change is not None
    assert (change.where, change.accepted, change.found) == ("element 0,0", "-10", "10")


def test_a_rule_that_changes_the_shape_is_found() -> None:
    turned = UOp(Op.PERMUTE, param(5, (2, 3), dtypes.int32), arg=PermuteArg((1, 0)))
    change = change_of(Firing("callify", "load_contents", UOp(Op.LOAD, B), turned), {})
    assert change is not None
    assert (change.accepted, change.found) == ("shape (2, 3)", "shape (3, 2)")


def test_what_an_earlier_step_stored_is_not_compared() -> None:
    """Its contents are those of no memory of the program."""
    version = param(9, (2, 3), dtypes.int32)
    with pytest.raises(UopError, match="an earlier step stored"):
        change_of(Firing("callify", "load_contents", UOp(Op.LOAD, WRITTEN), version), {})
