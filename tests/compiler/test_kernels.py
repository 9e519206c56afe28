"""Programs of kernels enter the compiler in the form they have, or are refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest

from uop.compiler.pipeline import compile
from uop.compiler.stages.linearize import linearize
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


def storing_twice(other: int, kind: AxisType = AxisType.LOOP) -> UOp:
    """Two STOREs in one loop, to two buffers or to both halves of one."""
    i = loop(0, ROWS, kind)
    further = i if other else UOp(Op.ADD, i, index_const(ROWS))
    to = (
        at(memory(1 - other, (ROWS, ROWS * INNER)[1 - other]), i),
        at(memory(1, ROWS * INNER), further),
    )
    stores = (UOp(Op.STORE, place, const(5 + k, dtypes.int32)) for k, place in enumerate(to))
    return program(UOp(Op.SINK, UOp(Op.END, UOp(Op.GROUP, *stores), i)))


def carried() -> UOp:
    """Each iteration adds to what the one before has stored."""
    i = loop(0, ROWS, AxisType.LOOP)
    place = at(UOp(Op.AFTER, memory(0, ROWS), i), index_const(1))
    added = UOp(Op.ADD, UOp(Op.LOAD, place), element(i, index_const(2)))
    return program(UOp(Op.SINK, UOp(Op.END, UOp(Op.STORE, place, added), i)))


def folded_in_steps() -> UOp:
    """A fold in a loop whose iterations depend on each other."""
    i, k = loop(0, ROWS, AxisType.LOOP), loop(1, INNER, AxisType.REDUCE)
    place = at(UOp(Op.AFTER, memory(0, ROWS), i), index_const(0))
    total = UOp(Op.REDUCE, element(i, k), k, arg=ReduceArg(Op.ADD))
    added = UOp(Op.ADD, UOp(Op.MUL, UOp(Op.LOAD, place), const(3, dtypes.int32)), total)
    return program(UOp(Op.SINK, UOp(Op.END, UOp(Op.STORE, place, added), i)))


def as_often_as_data_says() -> UOp:
    """A loop that runs as often as an element of memory says."""
    often = UOp(Op.CAST, element(index_const(2), index_const(0)), arg=DTypeArg(dtypes.index))
    i = UOp(Op.RANGE, often, arg=RangeArg(0, AxisType.LOOP))
    return program(
        UOp(Op.SINK, UOp(Op.END, UOp(Op.STORE, at(memory(0, ROWS), i), const(9, dtypes.int32)), i))
    )


def adding(kind: AxisType | None) -> UOp:
    """Atomic additions to one element, by a loop or by work items."""
    counter = (
        UOp(Op.SPECIAL, index_const(ROWS), arg=SpecialArg("gidx0"))
        if kind is None
        else loop(0, ROWS, kind)
    )
    value = element(counter, index_const(1))
    effect = UOp(Op.ATOMICADD, at(memory(0, ROWS), index_const(2)), value)
    return program(UOp(Op.SINK, effect if kind is None else UOp(Op.END, effect, counter)))


def by_a_group() -> UOp:
    """A STORE in a loop that the work items of a group share."""
    i = loop(0, ROWS, AxisType.GROUP_REDUCE)
    store = UOp(Op.STORE, at(memory(0, ROWS), i), element(i, index_const(4)))
    return program(UOp(Op.SINK, UOp(Op.END, store, i)))


def in_place() -> UOp:
    """Work items that double elements where they stand."""
    place = at(memory(0, ROWS), loop(0, ROWS, AxisType.LOCAL))
    value = UOp(Op.LOAD, place)
    effect = UOp(Op.STORE, place, UOp(Op.ADD, value, value))
    return program(UOp(Op.SINK, UOp(Op.END, effect, place.src[1])))


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(
    "root",
    [
        storing_twice(0),
        storing_twice(1),
        carried(),
        folded_in_steps(),
        as_often_as_data_says(),
        adding(None),
        adding(AxisType.LOOP),
        adding(AxisType.GLOBAL),
        by_a_group(),
        storing_twice(0, AxisType.GLOBAL),
        in_place(),
    ],
    ids=[
        *("halves", "buffers", "carried", "fold", "bound", "items", "loop", "global", "group"),
        *("halves by items", "in place"),
    ],
)
def test_a_kernel_with_effects_in_an_order_gives_what_the_interpreter_gives(root: UOp) -> None:
    inputs = {0: np.arange(1, ROWS + 1, dtype=np.int32), 1: np.abs(DATA)}
    inputs[1][2 * INNER] = 2
    found, right = compile(root).run(inputs), evaluate(root, inputs)
    assert isinstance(found, dict)
    assert isinstance(right, dict)
    assert {slot: a.tolist() for slot, a in found.items()} == {
        slot: a.tolist() for slot, a in right.items()
    }
    assert any(not np.array_equal(a, inputs[slot]) for slot, a in right.items())


def test_copies_of_a_loop_that_depend_on_each_other_are_refused() -> None:
    i = loop(0, ROWS - 1, AxisType.UPCAST)
    later = at(memory(0, ROWS), UOp(Op.ADD, i, index_const(1)))
    total = UOp(Op.ADD, UOp(Op.LOAD, at(memory(0, ROWS), i)), UOp(Op.LOAD, later))
    with pytest.raises(UnsupportedError, match="dependent"):
        compile(program(UOp(Op.SINK, UOp(Op.END, UOp(Op.STORE, later, total), i))))


@pytest.mark.parametrize(("second", "distance"), [(1, 1), (3, 2), (2, 3)])
def test_copies_of_a_loop_that_write_one_element_twice_are_refused(
    second: int, distance: int
) -> None:
    i = loop(0, 2, AxisType.UPCAST)
    first = UOp(Op.MUL, i, index_const(distance))
    places = (at(memory(1, ROWS * INNER), UOp(Op.ADD, first, index_const(k))) for k in (0, second))
    stores = (UOp(Op.STORE, place, const(5 + k, dtypes.int32)) for k, place in enumerate(places))
    root = program(UOp(Op.SINK, UOp(Op.END, UOp(Op.GROUP, *stores), i)))
    if second == distance:
        with pytest.raises(UnsupportedError, match="dependent"):
            compile(root)
    else:
        inputs = {1: np.abs(DATA)}
        found, right = compile(root).run(inputs), evaluate(root, inputs)
        assert isinstance(found, dict)
        assert isinstance(right, dict)
        assert found[1].tolist() == right[1].tolist()


@pytest.mark.usefixtures("opencl")
def test_an_effect_outside_a_loop_of_work_items_is_not_repeated_by_each() -> None:
    i = loop(0, ROWS, AxisType.GLOBAL)
    inside = UOp(Op.END, UOp(Op.ATOMICADD, at(memory(0, ROWS), i), const(1, dtypes.int32)), i)
    once = UOp(Op.ATOMICADD, at(memory(0, ROWS), index_const(0)), const(1, dtypes.int32))
    compiled = compile(program(UOp(Op.SINK, UOp(Op.GROUP, inside, once))))
    found = compiled.run({0: DATA[:ROWS], 1: DATA})
    assert isinstance(found, dict)
    assert found[0].tolist() == [DATA[0] + 2, *(DATA[1:ROWS] + 1)]


def test_an_addition_beside_a_fold_that_a_group_shares_is_not_repeated_by_each() -> None:
    i, k = loop(0, ROWS, AxisType.GLOBAL), loop(1, INNER, AxisType.GROUP_REDUCE)
    total = UOp(Op.REDUCE, element(i, k), k, arg=ReduceArg(Op.ADD))
    effect = UOp(Op.ATOMICADD, at(memory(0, ROWS), index_const(0)), total)
    with pytest.raises(UnsupportedError, match="dependent"):
        compile(program(UOp(Op.SINK, UOp(Op.END, effect, i))))


@pytest.mark.usefixtures("opencl")
def test_a_nest_beside_one_that_never_runs_runs() -> None:
    nests = []
    for slot, often in ((0, ROWS), (1, 0)):
        i = loop(slot, often, AxisType.LOOP)
        place = at(memory(slot, ROWS * INNER if slot else ROWS), i)
        nests.append(UOp(Op.END, UOp(Op.STORE, place, const(8, dtypes.int32)), i))
    root = program(UOp(Op.SINK, UOp(Op.GROUP, *nests)))
    found = compile(root).run({1: DATA})
    assert isinstance(found, dict)
    assert (found[0].tolist(), found[1].tolist()) == ([8] * ROWS, DATA.tolist())


@pytest.mark.usefixtures("opencl")
def test_what_stands_behind_a_branch_runs_in_every_item() -> None:
    i = UOp(Op.SPECIAL, index_const(ROWS), arg=SpecialArg("lidx0"))
    gate = UOp(Op.CMPLT, i, index_const(1))
    inside, behind = (
        UOp(Op.STORE, at(memory(slot, n), i), const(8 + slot, dtypes.int32))
        for slot, n in enumerate((ROWS, ROWS * INNER))
    )
    branch = UOp(Op.IF, gate)
    before = [
        u for u in UOp(Op.SINK, branch, inside, behind).toposort() if u.dtype is not dtypes.void
    ]
    listed = UOp(Op.LINEAR, *before, branch, inside, UOp(Op.ENDIF, branch), behind)
    found = compile(program(listed)).run({0: DATA[:ROWS], 1: DATA})
    assert isinstance(found, dict)
    assert found[0].tolist() == [8, *DATA[1:ROWS].tolist()]
    assert found[1].tolist() == [9, 9, 9, *DATA[ROWS:].tolist()]


def test_a_body_that_mixes_forms_is_refused_with_what_is_wrong() -> None:
    mixed = UOp(Op.SINK, *of_ranges().src, *of_registers().src)
    with pytest.raises(UnsupportedError, match="in no form"):
        compile(program(mixed))


@pytest.mark.usefixtures("opencl")
def test_a_list_without_its_constants_runs() -> None:
    listed = linearize(program(of_registers())).src[0].src[0]
    short = listed.with_src([u for u in listed.src if u.op is not Op.CONST])
    assert len(short.src) < len(listed.src)
    found = compile(program(short)).run({1: DATA})
    expected = evaluate(program(short), {1: DATA})
    assert isinstance(found, dict)
    assert isinstance(expected, dict)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[0], DATA.reshape(ROWS, INNER).sum(1))
