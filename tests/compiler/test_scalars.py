"""Vectors of a kernel taken apart: instructions on values of shape (), and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uop.compiler.pipeline import compile
from uop.compiler.stages.entry.first import first_stage
from uop.compiler.stages.entry.scalars import scalarize
from uop.compiler.stages.linearize import linearize
from uop.compiler.stages.stage import Setting
from uop.compiler.targets.opencl import OPENCL
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id
from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    AddrSpace,
    AxisType,
    BufferArg,
    DTypeArg,
    ParamArg,
    RangeArg,
    ReduceArg,
    SpecialArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.forms import FORMS, verify
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const

SIZE = 8
BUFFERS = [UOp(Op.BUFFER, dims((SIZE,)), arg=BufferArg(k, dtypes.int32)) for k in range(2)]


def memory(slot: int) -> UOp:
    arg = ParamArg(slot, dtypes.int32, None, AddrSpace.GLOBAL)
    return UOp(Op.PARAM, dims((SIZE,)), arg=arg)


def program(*roots: UOp) -> UOp:
    """A kernel of 3 work items that lists what these effects need."""
    order = list(dict.fromkeys(u for root in roots for u in root.toposort()))
    return UOp(Op.SINK, UOp(Op.CALL, UOp(Op.LINEAR, *order), *BUFFERS))


def loop(id: int, count: int, kind: AxisType) -> UOp:
    return UOp(Op.RANGE, index_const(count), arg=RangeArg(id, kind))


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
    assert first_stage(before, Setting(OPENCL)) == "linearize"
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


def exchanged(counter: UOp) -> UOp:
    """Each iteration or item swaps two neighbours."""
    first = UOp(Op.ADD, counter, counter)
    second = UOp(Op.ADD, first, index_const(1))
    there, back = UOp(Op.STACK, first, second), UOp(Op.STACK, second, first)
    effect = UOp(
        Op.STORE, UOp(Op.INDEX, memory(0), there), UOp(Op.LOAD, UOp(Op.INDEX, memory(0), back))
    )
    return UOp(Op.SINK, UOp(Op.END, effect, counter) if counter.op is Op.RANGE else effect)


def folded() -> UOp:
    """A fold over a range and over the axis of a vector."""
    k = loop(0, 3, AxisType.REDUCE)
    pair = UOp(Op.LOAD, UOp(Op.INDEX, memory(1), UOp(Op.STACK, k, UOp(Op.ADD, k, k))))
    total = UOp(Op.REDUCE, pair, k, arg=ReduceArg(Op.ADD, (0,)))
    value = UOp(Op.INDEX, total, index_const(0))
    return UOp(Op.SINK, UOp(Op.STORE, UOp(Op.INDEX, memory(0), index_const(2)), value))


def folded_apart() -> UOp:
    """A fold of each element of a vector, one of which is a fold itself."""
    k, j = loop(0, 3, AxisType.REDUCE), loop(1, 2, AxisType.REDUCE)
    one, two = (UOp(Op.LOAD, UOp(Op.INDEX, memory(1), i)) for i in (k, UOp(Op.ADD, k, j)))
    inner = UOp(Op.REDUCE, two, j, arg=ReduceArg(Op.ADD))
    total = UOp(Op.REDUCE, UOp(Op.STACK, one, inner), k, arg=ReduceArg(Op.ADD))
    return UOp(Op.SINK, UOp(Op.STORE, UOp(Op.INDEX, memory(0), places(6, 1)), total))


def added() -> UOp:
    """Each item adds a vector of its elements to a vector of places."""
    value = UOp(Op.LOAD, UOp(Op.INDEX, memory(1), UOp(Op.STACK, ITEM, index_const(5))))
    return UOp(Op.SINK, UOp(Op.ATOMICADD, UOp(Op.INDEX, memory(0), places(6, 1)), value))


GRAPHS = {
    "items": (exchanged(ITEM), [4, 3, 6, 5, 8, 7, 9, 10]),
    "loop": (exchanged(loop(0, 4, AxisType.LOOP)), [4, 3, 6, 5, 8, 7, 10, 9]),
    "work items": (exchanged(loop(0, 4, AxisType.LOCAL)), [4, 3, 6, 5, 8, 7, 10, 9]),
    "fold": (folded(), [3, 4, 63, 6, 7, 8, 9, 10]),
    "folds": (folded_apart(), [3, 63, 5, 6, 7, 8, 21, 10]),
    "sums": (added(), [3, 4 + 3 * 35, 5, 6, 7, 8, 9 + 21, 10]),
}


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("name", GRAPHS)
def test_vectors_of_a_graph(name: str) -> None:
    body, right = GRAPHS[name]
    root = UOp(Op.SINK, UOp(Op.CALL, body, *BUFFERS))
    data = DATA | {0: np.arange(3, 3 + SIZE, dtype=np.int32)}
    assert results(root, data)[0].tolist() == right
    found = compile(root).run(data)
    assert isinstance(found, dict)
    assert found[0].tolist() == right


def test_an_effect_inside_a_fold_of_a_vector_is_not_repeated_for_each_element() -> None:
    k = loop(0, 3, AxisType.REDUCE)
    one = UOp(Op.LOAD, UOp(Op.INDEX, memory(1), k))
    effect = UOp(Op.ATOMICADD, UOp(Op.INDEX, memory(0), index_const(0)), one)
    read = UOp(Op.LOAD, UOp(Op.INDEX, UOp(Op.AFTER, memory(1), effect), k))
    total = UOp(Op.REDUCE, UOp(Op.STACK, one, read), k, arg=ReduceArg(Op.ADD))
    body = UOp(Op.SINK, UOp(Op.STORE, UOp(Op.INDEX, memory(0), places(6, 1)), total))
    root = UOp(Op.SINK, UOp(Op.CALL, body, *BUFFERS))
    assert results(root, DATA)[0].tolist() == [20, 21, -1, -1, -1, -1, 21, -1]
    with pytest.raises(UnsupportedError, match="in no form"):
        compile(root)


def test_a_vector_index_out_of_a_fold_of_a_list_is_its_elements() -> None:
    pair = UOp(Op.LOAD, UOp(Op.INDEX, memory(1), places(3, 4)))
    total = UOp(Op.REDUCE, pair, arg=ReduceArg(Op.MUL, (0,)))
    value = UOp(Op.INDEX, total, index_const(0))
    before = program(UOp(Op.STORE, UOp(Op.INDEX, memory(0), ITEM), value))
    after = linearize(before)
    verify(after, FORMS["linearize"])
    for root in (before, after):
        assert results(root, DATA)[0].tolist() == [21 * 28] * 3 + [-1] * 5


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
    assert scalarize(body) is body


def test_what_is_more_than_a_vector_is_refused() -> None:
    rows = UOp(Op.STACK, places(0, 1), places(2, 3))
    with pytest.raises(UnsupportedError, match=r"STACK of shape \[2, 2\]"):
        scalarize(UOp(Op.LINEAR, *UOp(Op.ADD, ITEM, places(0, 1)).toposort(), *rows.toposort()))
    read = UOp(Op.LOAD, UOp(Op.INDEX, memory(1), places(0, 1)))
    bytes_ = UOp(Op.BITCAST, read, arg=DTypeArg(dtypes.int8))
    with pytest.raises(UnsupportedError, match="BITCAST to int8 of a vector"):
        scalarize(UOp(Op.LINEAR, *bytes_.toposort()))
