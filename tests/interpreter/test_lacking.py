"""What the interpreter lacks is named at the node: one program for each clause `OP.n1`."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import (
    I32,
    argument,
    int32,
    kernel_param,
    load,
    loop,
    memory,
    program,
    special,
    store,
)

from uop.conformance.suite.levels.kernel.scalar import Listing
from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.fragments import fragments_of
from uop.interpreter.tensor.devices import evaluate_by_devices
from uop.spec.args import (
    AddrSpace,
    AxisType,
    CustomArg,
    CustomFunctionArg,
    GetAddrArg,
    InsArg,
    ReduceArg,
    WmmaArg,
)
from uop.spec.conditions.clauses import clauses, undefined_labels
from uop.spec.dtype import dtypes
from uop.spec.errors import LackingError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

OUT = kernel_param(0, 4)
ONE = const(1, I32)
A = param(5, (4,), I32)
PADDED = UOp(Op.PAD, argument(1, 4), dims((1,)), dims((5,)))


def stored(value: UOp) -> UOp:
    return program(UOp(Op.SINK, store(OUT, 0, value)), 4)


def many_ranges() -> UOp:
    total = ONE
    for k in range(61):
        total = UOp(Op.ADD, total, int32(loop(k, 1, AxisType.GLOBAL)))
    return stored(total)


def folded_in_a_loop() -> UOp:
    counter = loop(0, 3)
    total = UOp(Op.REDUCE, int32(counter), counter, arg=ReduceArg(Op.ADD, ()))
    listing = Listing()
    with listing.each(counter):
        listing.do(store(OUT, 0, total))
    return program(listing.body, 4)


PROGRAMS = {
    "CALL.n2": (UOp(Op.SINK, UOp(Op.CALL, UOp(Op.SINK, store(OUT, 0, ONE)), A)), Op.CALL),
    "CALL.n3": (many_ranges(), Op.SINK),
    "CALL.n4": (stored(UOp(Op.DETACH, ONE)), Op.DETACH),
    "CUSTOMFUNCTION.n1": (
        program(UOp(Op.CUSTOMFUNCTION, arg=CustomFunctionArg("decode")), 4),
        Op.CUSTOMFUNCTION,
    ),
    "CUSTOMFUNCTION.n2": (
        program(
            UOp(Op.CUSTOMFUNCTION, UOp(Op.NEG, ONE), arg=CustomFunctionArg("copy")),
            4,
            4,
        ),
        Op.NEG,
    ),
    "INS.n1": (stored(UOp(Op.INS, arg=InsArg("nop", I32, ()))), Op.INS),
    "INS.n2": (
        stored(UOp(Op.INS, const(1, dtypes.int8), arg=InsArg("popcount", I32, ()))),
        Op.INS,
    ),
    "CUSTOM.n1": (stored(UOp(Op.CUSTOM, arg=CustomArg("nop", I32, ()))), Op.CUSTOM),
    "BUFFER.n1": (stored(load(memory(AddrSpace.GLOBAL, 4), special(1))), Op.BUFFER),
    "INDEX.n1": (stored(load(UOp(Op.RESHAPE, OUT, dims((4,))), 0)), Op.INDEX),
    "REDUCE.n1": (folded_in_a_loop(), Op.REDUCE),
    "RANGE.n1": (
        stored(int32(loop(0, UOp(Op.ADD, index_const(1), index_const(1)), AxisType.GLOBAL))),
        Op.RANGE,
    ),
    "GETADDR.n1": (UOp(Op.GETADDR, PADDED, arg=GetAddrArg("D0")), Op.PAD),
    "VALUE.n1": (UOp(Op.EXPAND, param(0, (1,), I32), dims((10**13,))), Op.EXPAND),
}


def stored_from_two_devices() -> UOp:
    placed = (param(k, (4,), I32, device=f"D{k}") for k in (1, 2))
    return UOp(Op.SINK, *(UOp(Op.STORE, argument(0, 4), p) for p in placed))


BY_DEVICES = {
    "CALL.n5": (stored(ONE), Op.SINK),
    "BUFFER.n2": (stored_from_two_devices(), Op.BUFFER),
}


def test_every_clause_has_a_program() -> None:
    assert {*PROGRAMS, "WMMA.n1", *BY_DEVICES} == clauses().keys() - undefined_labels()


@pytest.mark.parametrize("label", PROGRAMS)
def test_the_error_names_the_node(label: str) -> None:
    root, op = PROGRAMS[label]
    given = {
        u.arg.slot: u for u in root.toposort() if u is A or (u.op is Op.PARAM and "VALUE" in label)
    }  # type: ignore[union-attr]
    with pytest.raises(UnsupportedError) as caught:
        evaluate(root, {slot: np.zeros(u.shape, np.int32) for slot, u in given.items()})
    error = caught.value
    assert type(error) is LackingError
    assert (error.label, error.title) == (label, clauses()[label].title)
    assert error.node.startswith(f"{op.name}(")
    assert error.subjects[0].op is op
    assert error.found
    assert error.where.startswith(f"{__file__}:")


@pytest.mark.parametrize("label", BY_DEVICES)
def test_what_runs_device_by_device_names_the_node_too(label: str) -> None:
    root, op = BY_DEVICES[label]
    with pytest.raises(LackingError) as caught:
        evaluate_by_devices(root, {k: np.zeros(4, np.int32) for k in slots_of(root)})
    assert caught.value.label == label
    assert caught.value.subjects[0].op is op


def test_an_instruction_whose_fragments_are_not_known() -> None:
    with pytest.raises(LackingError, match=r"WMMA\.n1(.|\n)*m8n8k4 float16 to float32"):
        fragments_of(WmmaArg(8, 8, 4, dtypes.float16, dtypes.float32))
