"""Forms: each condition of each form is broken by one program, and said by its label."""

from __future__ import annotations

import pytest

from uop.spec.args import AddrSpace, AxisType, BufferArg, ParamArg, RangeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import PassError
from uop.spec.kernel.forms import CALLIFIED, FORMS, LINEARIZED, OPTIMIZED, RANGED, Form, verify
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

ZERO, ONE = index_const(0), const(1, dtypes.int32)


def memory(slot: int, *shape: int, where: AddrSpace | None = AddrSpace.GLOBAL) -> UOp:
    return UOp(Op.PARAM, dims(shape), arg=ParamArg(slot, dtypes.int32, None, where))


def loop(id: int, bound: int = 3, axis_type: AxisType = AxisType.LOOP) -> UOp:
    return UOp(Op.RANGE, index_const(bound), arg=RangeArg(id, axis_type))


def store(i: UOp, value: UOp = ONE) -> UOp:
    return UOp(Op.STORE, UOp(Op.INDEX, memory(0, 9), i), value)


def sink(*effects: UOp) -> UOp:
    return UOp(Op.SINK, UOp(Op.CALL, UOp(Op.SINK, *effects), buffer(0)))


def linear(*instructions: UOp) -> UOp:
    return UOp(Op.SINK, UOp(Op.CALL, UOp(Op.LINEAR, *instructions), buffer(0)))


def buffer(slot: int) -> UOp:
    return UOp(Op.BUFFER, dims((9,)), arg=BufferArg(slot, dtypes.int32))


R, S = loop(0), loop(1)
GOOD = sink(UOp(Op.END, store(R, UOp(Op.REDUCE, ONE, S, arg=ReduceArg(Op.ADD))), R))


def test_a_program_of_the_form_passes() -> None:
    verify(GOOD, RANGED)
    verify(UOp(Op.SINK), CALLIFIED)


def wide_place() -> UOp:
    return UOp(Op.STORE, memory(0, 9), UOp(Op.EXPAND, UOp(Op.RESHAPE, ONE, dims((1,))), dims((9,))))


@pytest.mark.parametrize(
    ("form", "program", "label"),
    [
        (CALLIFIED, UOp(Op.SINK, UOp(Op.FUNCTION, UOp(Op.TUPLE, R))), "ops"),
        (RANGED, GOOD.src[0], "root"),
        (RANGED, UOp(Op.SINK, UOp(Op.STORE, buffer(0), buffer(1))), "around"),
        (RANGED, linear(), "body"),
        (RANGED, sink(wide_place()), "ops"),
        (OPTIMIZED, GOOD, "axis_types"),
        (RANGED, sink(UOp(Op.STORE, memory(0, 9), UOp(Op.NEG, memory(0, 9)))), "scalar"),
        (RANGED, sink(store(UOp(Op.LOAD, UOp(Op.INDEX, memory(0, 3, 3), ZERO, ZERO)))), "flat"),
        (RANGED, sink(store(UOp(Op.LOAD, UOp(Op.INDEX, memory(0, 9, where=None), ZERO)))), "flat"),
        (RANGED, sink(store(ZERO, UOp(Op.LOAD, ONE))), "access"),
        (RANGED, sink(store(ZERO, UOp(Op.NEG, UOp(Op.INDEX, memory(0, 9), ZERO)))), "values"),
        (RANGED, sink(UOp(Op.END, store(UOp(Op.ADD, R, S)), R)), "closed"),
        (RANGED, sink(UOp(Op.END, store(R), R), UOp(Op.END, store(UOp(Op.MUL, R, R)), R)), "once"),
        (RANGED, sink(*(UOp(Op.END, store(r), r) for r in (R, loop(0, 4)))), "id"),
        (LINEARIZED, linear(store(ZERO)), "order"),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_each_condition_is_checked(form: Form, program: UOp, label: str) -> None:
    with pytest.raises(PassError, match=rf"{form.stage}: .*\({form.stage}\.{label}\)"):
        verify(program, form)


def test_a_loop_left_open_breaks_the_balance() -> None:
    r = loop(0, axis_type=AxisType.REDUCE)
    for instructions in ((r.src[0], r), (r.src[0], r, UOp(Op.SINK), UOp(Op.SINK))):
        with pytest.raises(PassError, match="linearize"):
            verify(linear(*instructions), LINEARIZED)
    body = store(r)
    nodes = UOp(Op.END, body, r).toposort()
    verify(linear(*nodes), LINEARIZED)
    with pytest.raises(PassError, match=r"linearize\.balance"):
        verify(linear(*nodes, nodes[-1]), LINEARIZED)


def test_forms_stand_in_the_order_of_the_stages() -> None:
    assert list(FORMS) == [
        "callify", "rangeify", "optimize", "expand", "select", "linearize", "plan", "render",
    ]  # fmt: skip
