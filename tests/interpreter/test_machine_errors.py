"""What a kernel must not do, each named: races, divergent barriers, memory that nobody wrote."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from kernels import (
    I32,
    add,
    after,
    at,
    below,
    int32,
    kernel_param,
    load,
    loop,
    memory,
    program,
    special,
    store,
    times,
    vector,
)

from uop.conformance.suite.levels.kernel.scalar import Listing
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AddrSpace, AxisType, DTypeArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

ITEMS = 4
LANE, GROUP = special(ITEMS, "lidx0"), special(3)
OUT, GIVEN = kernel_param(0, 12), kernel_param(1, 12)
TILE = memory(AddrSpace.LOCAL, ITEMS)
HERE = add(times(GROUP, ITEMS), LANE)
NEXT = UOp(Op.MOD, add(LANE, 1), index_const(ITEMS))


def run(body: UOp, inputs: Mapping[int, Array] | None = None) -> list[int]:
    given = {0: np.zeros(12, np.int32), 1: np.arange(12, dtype=np.int32)} | dict(inputs or {})
    result = evaluate(program(body, 12, 12), given)
    assert isinstance(result, dict)
    return list(result[0].tolist())


def rotated(*, barrier: bool) -> UOp:
    """Each item takes what its neighbour has put into LOCAL memory."""
    listing = Listing()
    listing.do(store(TILE, LANE, load(GIVEN, HERE)))
    if barrier:
        listing.barrier()
    listing.do(store(OUT, HERE, load(listing.now(TILE), NEXT)))
    return listing.body


def test_a_barrier_orders_local_memory_and_each_group_has_its_own() -> None:
    assert run(rotated(barrier=True)) == [1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8]


def test_local_memory_without_a_barrier_is_a_race() -> None:
    with pytest.raises(UndefinedError, match=r"two work items.*LOCAL BUFFER.*no barrier"):
        run(rotated(barrier=False))


def test_the_same_in_a_graph() -> None:
    put = store(TILE, LANE, load(GIVEN, HERE))
    met = UOp(Op.BARRIER, put)
    ordered = store(OUT, HERE, load(after(TILE, met), NEXT))
    assert run(UOp(Op.SINK, ordered)) == run(rotated(barrier=True))
    with pytest.raises(UndefinedError, match="race"):
        run(UOp(Op.SINK, store(OUT, HERE, load(after(TILE, put), NEXT))))


def test_a_barrier_orders_global_memory_in_a_group_but_not_between_groups() -> None:
    def body(other: UOp) -> UOp:
        listing = Listing()
        listing.do(store(OUT, HERE, load(GIVEN, HERE)))
        listing.barrier()
        value = load(listing.now(OUT), other)
        listing.do(store(memory(AddrSpace.REG, 1), 0, value))
        listing.barrier()
        listing.do(store(OUT, HERE, UOp(Op.MUL, value, int32(10))))
        return listing.body

    assert run(body(add(times(GROUP, ITEMS), NEXT)))[:4] == [10, 20, 30, 0]
    with pytest.raises(UndefinedError, match="two workgroups one writes element"):
        run(body(UOp(Op.MOD, add(HERE, ITEMS), index_const(12))))


def test_every_item_that_writes_one_element_races_even_with_one_value() -> None:
    for counter in (LANE, GROUP):
        listing = Listing()
        listing.do(store(memory(AddrSpace.REG, 1), 0, int32(counter)))
        listing.do(store(OUT, 0, int32(7)))
        with pytest.raises(UndefinedError, match="race"):
            run(listing.body)
    listing = Listing()
    listing.do(store(OUT, GROUP, int32(7), UOp(Op.CMPLT, LANE, index_const(1))))
    assert run(listing.body)[:4] == [7, 7, 7, 0]


def test_a_vector_store_that_names_an_element_twice_races_with_itself() -> None:
    pair = vector([LANE, index_const(2)])
    listing = Listing()
    listing.do(store(memory(AddrSpace.REG, 4), pair, vector([int32(1), int32(2)])))
    with pytest.raises(UndefinedError, match="twice"):
        run(listing.body)


def test_additions_do_not_race_with_each_other_but_with_the_rest() -> None:
    adding = Listing()
    adding.do(UOp(Op.ATOMICADD, at(OUT, 5), int32(LANE)))
    adding.do(UOp(Op.ATOMICADD, at(OUT, 5), int32(GROUP)))
    assert run(adding.body)[5] == 3 * (0 + 1 + 2 + 3) + 4 * (0 + 1 + 2)
    for other in (store(OUT, 5, int32(1), below(HERE, 1)), store(OUT, HERE, load(OUT, 5))):
        listing = Listing()
        listing.do(UOp(Op.ATOMICADD, at(OUT, 5), int32(1)))
        listing.do(other)
        with pytest.raises(UndefinedError, match="race"):
            run(listing.body)


def test_a_barrier_in_a_branch_must_hold_for_the_whole_group() -> None:
    def body(gate: UOp) -> UOp:
        listing = Listing()
        with listing.where(gate):
            listing.barrier()
            listing.do(store(OUT, HERE, int32(1)))
        return listing.body

    assert run(body(below(GROUP, 2))) == [1] * 8 + [0] * 4
    with pytest.raises(UndefinedError, match="divergent barrier"):
        run(body(below(LANE, 2)))


def test_a_barrier_in_a_loop_must_be_met_equally_often() -> None:
    def body(count: UOp) -> UOp:
        listing, counter = Listing(), loop(0, count)
        listing.do(store(TILE, LANE, int32(0)))
        with listing.each(counter):
            listing.barrier()
            value = UOp(Op.ADD, load(listing.now(TILE), NEXT), int32(1))
            listing.do(store(memory(AddrSpace.REG, 1), 0, value))
            listing.barrier()
            listing.do(store(TILE, LANE, load(listing.now(memory(AddrSpace.REG, 1)), 0)))
        listing.do(store(OUT, HERE, load(listing.now(TILE), LANE)))
        return listing.body

    assert run(body(GROUP)) == [0] * 4 + [1] * 4 + [2] * 4
    with pytest.raises(UndefinedError, match="divergent barrier"):
        run(body(LANE))


def test_local_memory_is_not_read_before_it_is_written() -> None:
    listing = Listing()
    listing.do(store(TILE, LANE, int32(1), below(LANE, 3)))
    listing.barrier()
    listing.do(store(OUT, HERE, load(listing.now(TILE), LANE), below(LANE, 3)))
    with pytest.raises(UndefinedError, match="read before it is written"):
        run(listing.body)


def test_a_gate_keeps_an_item_from_memory_that_nobody_wrote() -> None:
    listing = Listing()
    listing.do(store(TILE, LANE, int32(9), below(LANE, 3)))
    listing.barrier()
    value = UOp(Op.LOAD, at(listing.now(TILE), LANE), int32(-1), below(LANE, 3))
    listing.do(store(OUT, HERE, value))
    assert run(listing.body)[:4] == [9, 9, 9, -1]


def test_branches_are_closed_in_turn_and_belong_to_a_list() -> None:
    gate = below(LANE, 2)
    branch, counter = UOp(Op.IF, gate), loop(0, 2)
    effect = store(OUT, 0, int32(1))
    before = [u for u in gate.toposort() if u is not gate]
    crossed = UOp(
        Op.LINEAR,
        *before,
        gate,
        branch,
        counter,
        UOp(Op.ENDIF, branch),
        UOp(Op.END, effect, counter),
    )
    with pytest.raises(UndefinedError, match="ENDIF closes IF, which is not the innermost"):
        run(crossed)
    with pytest.raises(UndefinedError, match="IF is never closed"):
        run(UOp(Op.LINEAR, *before, gate, branch))
    with pytest.raises(UndefinedError, match="IF outside a LINEAR"):
        run(UOp(Op.SINK, store(after(OUT, branch), 0, int32(1))))


def test_iterations_of_an_open_range_do_not_depend_on_each_other() -> None:
    counter = loop(0, 3)
    number = UOp(Op.CAST, counter, arg=DTypeArg(dtypes.int32))
    with pytest.raises(UndefinedError, match="no END closes"):
        run(UOp(Op.SINK, store(OUT, 0, number)))


def test_what_a_branch_computes_has_no_value_outside_it() -> None:
    gate, value = below(LANE, 2), load(GIVEN, LANE)
    listing = Listing()
    with listing.where(gate):
        listing.do(store(memory(AddrSpace.REG, 1), 0, value))
    leaked = UOp(Op.LINEAR, *listing.body.src, *_missing(listing.body, store(OUT, HERE, value)))
    with pytest.raises(UndefinedError, match="outside its loop or branch"):
        run(leaked)


def _missing(body: UOp, effect: UOp) -> list[UOp]:
    return [u for u in effect.toposort() if u not in body.src]


def test_iterations_that_depend_on_each_other_run_in_turn() -> None:
    """A running sum in place: each iteration reads what the one before has written."""
    k = loop(0, 11)
    total = UOp(Op.ADD, load(OUT, k), load(OUT, add(k, 1)))
    body = UOp(Op.SINK, UOp(Op.END, store(OUT, add(k, 1), total), k))
    start = np.arange(1, 13, dtype=np.int32)
    assert run(body, {0: start}) == np.cumsum(start).tolist()


def test_the_last_iteration_that_writes_an_element_stays() -> None:
    k = loop(0, 5)
    body = UOp(Op.SINK, UOp(Op.END, store(OUT, UOp(Op.MOD, k, index_const(2)), int32(k)), k))
    assert run(body)[:3] == [4, 3, 0]


def test_iterations_that_are_work_items_race() -> None:
    k = loop(0, 5, AxisType.GLOBAL)
    body = UOp(Op.SINK, UOp(Op.END, store(OUT, UOp(Op.MOD, k, index_const(2)), int32(k)), k))
    with pytest.raises(UndefinedError, match="race"):
        run(body)


def test_one_item_reads_and_writes_its_own_element() -> None:
    body = UOp(Op.SINK, store(OUT, HERE, UOp(Op.ADD, load(OUT, HERE), int32(1))))
    assert run(body) == [1] * 12


def test_vectors_out_of_bounds_are_named() -> None:
    pair = vector([HERE, add(HERE, 1)])
    value = UOp(Op.INDEX, load(GIVEN, pair), index_const(1))
    with pytest.raises(UndefinedError, match="12 on axis 0 of size 12, where gidx0 = 2, lidx0 = 3"):
        run(UOp(Op.SINK, store(OUT, HERE, value)))
    inside = below(pair, 12)
    held = UOp(Op.LOAD, at(GIVEN, pair), vector([int32(-1), int32(-2)]), inside)
    assert run(UOp(Op.SINK, store(OUT, HERE, UOp(Op.INDEX, held, index_const(1)))))[-2:] == [11, -2]


def test_an_open_branch_condition_has_no_meaning() -> None:
    zero = UOp(Op.IDIV, load(GIVEN, HERE), load(OUT, HERE))
    listing = Listing()
    with listing.where(UOp(Op.CMPLT, zero, const(1, I32))):
        listing.do(store(OUT, HERE, int32(1)))
    with pytest.raises(UndefinedError, match="UNSPECIFIED"):
        run(listing.body)


def test_a_barrier_without_a_group_and_a_body_without_axes() -> None:
    listing = Listing()
    listing.do(store(OUT, 3, int32(1)))
    listing.barrier()
    listing.do(store(OUT, 3, UOp(Op.ADD, load(listing.now(OUT), 3), int32(1))))
    assert run(listing.body)[3] == 2


def test_a_global_buffer_is_no_memory_of_a_kernel() -> None:
    with pytest.raises(UnsupportedError, match="GLOBAL BUFFER"):
        run(UOp(Op.SINK, store(memory(AddrSpace.GLOBAL, 12), HERE, int32(1))))


def test_what_a_graph_does_not_order_races_also_in_one_item() -> None:
    one = store(OUT, HERE, int32(1))
    for other in (store(OUT, HERE, int32(2)), store(GIVEN, HERE, load(OUT, HERE))):
        with pytest.raises(UndefinedError, match="nothing orders them"):
            run(UOp(Op.SINK, one, other))
    assert run(UOp(Op.SINK, store(after(OUT, one), HERE, int32(2)))) == [2] * 12
    apart = [store(OUT, add(times(GROUP, 4), k), int32(k)) for k in range(4)]
    assert run(UOp(Op.SINK, *apart))[:5] == [0, 1, 2, 3, 0]
    listing = Listing()
    listing.do(one)
    listing.do(store(OUT, HERE, int32(3)))
    assert run(listing.body) == [3] * 12


def test_additions_need_no_order_in_a_graph() -> None:
    adds = [UOp(Op.ATOMICADD, at(OUT, HERE), int32(k)) for k in (1, 2, 3)]
    assert run(UOp(Op.SINK, *adds)) == [6] * 12


def test_a_barrier_of_one_group_orders_nothing_in_another() -> None:
    def body(groups: int) -> UOp:
        listing = Listing()
        listing.do(store(TILE, LANE, int32(1)))
        with listing.where(below(GROUP, groups)):
            listing.barrier()
        listing.do(store(OUT, HERE, load(listing.now(TILE), NEXT)))
        return listing.body

    assert run(body(3)) == [1] * 12
    with pytest.raises(UndefinedError, match="race"):
        run(body(2))


def test_groups_that_met_different_barriers_may_do_the_same() -> None:
    listing = Listing()
    listing.do(store(TILE, LANE, int32(1)))
    with listing.where(below(GROUP, 2)):
        listing.barrier()
    listing.do(UOp(Op.ATOMICADD, at(OUT, 5), load(GIVEN, 1)))
    assert run(listing.body)[5] == 12
    listing.do(store(OUT, 6, load(GIVEN, 1)))
    with pytest.raises(UndefinedError, match="race"):
        run(listing.body)


ADDITION = UOp(Op.ATOMICADD, at(OUT, 5), int32(1), tag="of every item")


@pytest.mark.parametrize(
    "effects",
    [
        (ADDITION, store(GIVEN, HERE, load(after(OUT, ADDITION), 5))),
        (store(GIVEN, HERE, load(OUT, 5)), ADDITION),
        (store(OUT, 5, int32(1), below(HERE, 1)), ADDITION),
        (ADDITION, store(OUT, 5, int32(1), below(HERE, 1))),
    ],
    ids=["read-after", "read-before", "written-before", "written-after"],
)
def test_an_addition_races_with_what_is_no_addition(effects: tuple[UOp, ...]) -> None:
    listing = Listing()
    for effect in effects:
        listing.do(effect)
    with pytest.raises(UndefinedError, match="race"):
        run(listing.body)


@pytest.mark.parametrize("writer", range(ITEMS))
def test_many_readers_of_one_element_are_all_remembered(writer: int) -> None:
    """All items of a group read its first element; whichever writes it, races with the others."""
    first = add(times(GROUP, ITEMS), UOp(Op.IDIV, LANE, index_const(ITEMS)))
    listing = Listing()
    listing.do(store(GIVEN, HERE, load(OUT, first)))
    here = UOp(Op.AND, below(LANE, writer + 1), below(index_const(writer - 1), LANE))
    listing.do(store(OUT, first, int32(1), here))
    with pytest.raises(UndefinedError, match="race"):
        run(listing.body)
