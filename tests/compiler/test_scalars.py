"""Vectors of a LINEAR taken apart: instructions on values of shape (), and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uop.compiler.kernels import first_stage
from uop.compiler.stages.linearize import linearize
from uop.compiler.stages.scalars import in_scalars
from uop.compiler.targets.opencl import OPENCL
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id
from uop.interpreter.evaluate import evaluate
from uop.spec.args import AddrSpace, BufferArg, DTypeArg, ParamArg, SpecialArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.forms import FORMS, verify
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const

SIZE = 8


def memory(slot: int) -> UOp:
    arg = ParamArg(slot, dtypes.int32, None, AddrSpace.GLOBAL)
    return UOp(Op.PARAM, dims((SIZE,)), arg=arg)


def program(*roots: UOp) -> UOp:
    """A kernel of 3 work items that lists what these effects need."""
    order = list(dict.fromkeys(u for root in roots for u in root.toposort()))
    buffers = [UOp(Op.BUFFER, dims((SIZE,)), arg=BufferArg(k, dtypes.int32)) for k in range(2)]
    return UOp(Op.SINK, UOp(Op.CALL, UOp(Op.LINEAR, *order), *buffers))


def results(root: UOp, data: dict[int, Any]) -> dict[int, Any]:
    found = evaluate(root, data)
    assert isinstance(found, dict)
    return found


def places(*positions: int) -> UOp:
    return UOp(Op.STACK, *map(index_const, positions))


ITEM = UOp(Op.SPECIAL, index_const(3), arg=SpecialArg("gidx0"))
DATA = {0: np.full(SIZE, -1, np.int32), 1: np.arange(SIZE, dtype=np.int32) * 7}


def turned_and_picked(item: UOp = ITEM) -> UOp:
    """Three elements, turned, doubled; each item stores one of them, chosen by its number."""
    read = UOp(Op.LOAD, UOp(Op.INDEX, memory(1), places(4, 1, 6)))
    turned = UOp(Op.INDEX, read, places(1, 2, 0))
    doubled = UOp(Op.ADD, turned, turned)
    chosen = UOp(Op.INDEX, doubled, item)
    return program(UOp(Op.STORE, UOp(Op.INDEX, memory(0), ITEM), chosen))


@pytest.mark.parametrize("dtype", [dtypes.index, dtypes.uint8, dtypes.int64])
def test_by_hand(dtype: DType) -> None:
    item = ITEM if dtype is dtypes.index else UOp(Op.CAST, ITEM, arg=DTypeArg(dtype))
    before = turned_and_picked(item)
    assert first_stage(before, OPENCL) == "linearize"
    after = linearize(before)
    verify(after, FORMS["linearize"])
    want = [2 * 7, 2 * 42, 2 * 28, *[-1] * 5]
    for root in (before, after):
        assert results(root, DATA)[0].tolist() == want


def test_a_gated_vector_is_stored_element_by_element() -> None:
    pair = UOp(Op.ADD, ITEM, ITEM)
    where = UOp(Op.STACK, pair, UOp(Op.ADD, pair, index_const(1)))
    value = UOp(Op.LOAD, UOp(Op.INDEX, memory(1), where))
    gate = UOp(Op.CMPLT, where, places(3, 9))
    before = program(UOp(Op.STORE, UOp(Op.INDEX, memory(0), where), value, gate))
    after = linearize(before)
    verify(after, FORMS["linearize"])
    for root in (before, after):
        assert results(root, DATA)[0].tolist() == [0, 7, 14, 21, -1, 35, -1, -1]


WORKGROUPS = [f"kernel/BARRIER/{d}/workgroup/{k}" for d in ("int32", "float32") for k in range(4)]


@pytest.mark.parametrize("id", WORKGROUPS)
def test_workgroups_have_the_same_results(id: str) -> None:
    case = case_by_id(id)
    assert isinstance(case, Case)
    after = linearize(case.root)
    verify(after, FORMS["linearize"])
    before = results(case.root, dict(case.batches[0].inputs))
    found = results(after, dict(case.batches[0].inputs))
    for slot, array in before.items():
        assert found[slot].tobytes() == array.tobytes()


def test_what_has_no_vector_stays_itself() -> None:
    body = linearize(turned_and_picked()).src[0].src[0]
    assert in_scalars(body) is body


def test_what_is_more_than_a_vector_is_refused() -> None:
    rows = UOp(Op.STACK, places(0, 1), places(2, 3))
    with pytest.raises(UnsupportedError, match=r"STACK of shape \[2, 2\]"):
        in_scalars(UOp(Op.LINEAR, *UOp(Op.ADD, ITEM, places(0, 1)).toposort(), *rows.toposort()))
    read = UOp(Op.LOAD, UOp(Op.INDEX, memory(1), places(0, 1)))
    bytes_ = UOp(Op.BITCAST, read, arg=DTypeArg(dtypes.int8))
    with pytest.raises(UnsupportedError, match="BITCAST to int8 of a vector"):
        in_scalars(UOp(Op.LINEAR, *bytes_.toposort()))
