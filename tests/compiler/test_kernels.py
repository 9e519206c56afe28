"""Programs of kernels enter the compiler in the form they have, or are refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest

from uop.compiler.pipeline import compile
from uop.compiler.stages.linearize import linearize
from uop.interpreter.evaluate import evaluate
from uop.spec.args import AddrSpace, AxisType, BufferArg, ParamArg, RangeArg, ReduceArg, SpecialArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

ROWS, INNER = 3, 5
DATA = np.arange(ROWS * INNER, dtype=np.int32)[::-1] - 4


def memory(slot: int, count: int) -> UOp:
    return UOp(Op.PARAM, dims((count,)), arg=ParamArg(slot, dtypes.int32, None, AddrSpace.GLOBAL))


def at(place: UOp, i: UOp) -> UOp:
    return UOp(Op.INDEX, place, i)


def program(*bodies: UOp) -> UOp:
    buffers = [
        UOp(Op.BUFFER, dims((n,)), arg=BufferArg(slot, dtypes.int32))
        for slot, n in enumerate((ROWS, ROWS * INNER))
    ]
    return UOp(Op.SINK, *(UOp(Op.CALL, body, *buffers) for body in bodies))


def element(i: UOp, k: UOp) -> UOp:
    place = UOp(Op.ADD, UOp(Op.MUL, i, index_const(INNER)), k)
    return UOp(Op.LOAD, at(memory(1, ROWS * INNER), place))


def loop(id: int, count: int, kind: AxisType) -> UOp:
    return UOp(Op.RANGE, index_const(count), arg=RangeArg(id, kind))


def of_ranges(kind: AxisType = AxisType.LOOP) -> UOp:
    i, k = loop(0, ROWS, kind), loop(1, INNER, AxisType.REDUCE)
    total = UOp(Op.REDUCE, element(i, k), k, arg=ReduceArg(Op.ADD))
    store = UOp(Op.STORE, at(memory(0, ROWS), i), total)
    return UOp(Op.SINK, UOp(Op.END, store, i))


def of_registers() -> UOp:
    g, k, zero = (UOp(Op.SPECIAL, index_const(ROWS), arg=SpecialArg("gidx0")),
                  loop(0, INNER, AxisType.REDUCE), index_const(0))  # fmt: skip
    acc = UOp(Op.BUFFER, dims((1,)), arg=BufferArg(0, dtypes.int32, None, AddrSpace.REG))
    start = UOp(Op.STORE, at(acc, zero), const(0, dtypes.int32))
    inside = at(UOp(Op.AFTER, acc, start, k), zero)
    update = UOp(Op.STORE, inside, UOp(Op.ADD, UOp(Op.LOAD, inside), element(g, k)))
    total = UOp(Op.LOAD, at(UOp(Op.AFTER, acc, UOp(Op.END, update, k)), zero))
    return UOp(Op.SINK, UOp(Op.STORE, at(memory(0, ROWS), g), total))


@pytest.mark.parametrize(
    ("root", "first"),
    [
        (program(of_ranges()), "optimize"),
        (program(of_ranges(AxisType.GLOBAL)), "select"),
        (program(of_ranges(AxisType.UPCAST)), "expand"),
        (program(of_ranges(AxisType.LOCAL)), "select"),
        (program(of_registers()), "select"),
        (linearize(program(of_registers())), "plan"),
        (compile(program(of_registers())).stages["render"], "plan"),
    ],
    ids=["loops", "global", "upcast", "local", "registers", "linear", "program"],
)
@pytest.mark.usefixtures("opencl")
def test_kernels_enter_at_the_stage_behind_their_form(root: UOp, first: str) -> None:
    compiled = compile(root)
    assert next(iter(compiled.stages)) == first
    found = compiled.run({1: DATA})
    assert isinstance(found, dict)
    assert found[0].tolist() == DATA.reshape(ROWS, INNER).sum(axis=1).tolist()
    reference = evaluate(root, {1: DATA})
    assert isinstance(reference, dict)
    assert found[0].tolist() == reference[0].tolist()


def storing_twice(other: int) -> UOp:
    i = loop(0, ROWS, AxisType.LOOP)
    to = (at(memory(0, ROWS), i), at(memory(other, ROWS * INNER if other else ROWS), i))
    stores = (UOp(Op.STORE, place, const(5 + k, dtypes.int32)) for k, place in enumerate(to))
    return program(UOp(Op.SINK, UOp(Op.END, UOp(Op.GROUP, *stores), i)))


@pytest.mark.usefixtures("opencl")
def test_a_loop_may_store_to_two_buffers() -> None:
    root = storing_twice(1)
    for found in (compile(root).run({1: DATA}), evaluate(root, {1: DATA})):
        assert isinstance(found, dict)
        assert found[0].tolist() == [5] * ROWS
        assert found[1].tolist() == [6] * ROWS + DATA.tolist()[ROWS:]


def test_a_loop_that_stores_twice_to_a_buffer_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="two STOREs to one buffer"):
        compile(storing_twice(0))


def test_a_kernel_that_reads_what_its_loops_store_is_refused() -> None:
    i = loop(0, ROWS, AxisType.LOOP)
    place = at(memory(0, ROWS), i)
    store = UOp(Op.STORE, place, UOp(Op.LOAD, place))
    with pytest.raises(UnsupportedError, match="reads what it stores"):
        compile(program(UOp(Op.SINK, UOp(Op.END, store, i))))


def test_what_work_items_lack_is_said_of_the_form_of_work_items() -> None:
    counter = UOp(Op.SPECIAL, index_const(ROWS), arg=SpecialArg("gidx0"))
    adding = UOp(Op.ATOMICADD, at(memory(0, ROWS), counter), const(1, dtypes.int32))
    with pytest.raises(UnsupportedError, match=r"select\.ops(.|\n)*ATOMICADD"):
        compile(program(UOp(Op.SINK, adding)))


def test_a_body_that_mixes_forms_is_refused_with_what_is_wrong() -> None:
    mixed = UOp(Op.SINK, *of_ranges().src, *of_registers().src)
    with pytest.raises(UnsupportedError, match="in no form"):
        compile(program(mixed))
