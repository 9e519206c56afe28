"""What values need is counted before they are computed: graphs, kernels, functions, memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from kernels import (
    I32,
    add,
    argument,
    at,
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
from uop.interpreter import footprint
from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate
from uop.interpreter.footprint import WorkError, at_most, metered
from uop.interpreter.rules.table import RULES
from uop.interpreter.tensor.devices import evaluate_by_devices
from uop.spec.args import AddrSpace, GetTupleArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import LackingError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param

COUNT = 1000
X = param(0, (COUNT,), I32)
GIVEN = {0: np.arange(COUNT, dtype=np.int32)}


def fits(root: UOp, count: int, inputs: dict[int, np.ndarray] | None = None) -> bool:
    with at_most(count):
        try:
            evaluate(root, inputs)
        except LackingError:
            return False
    return True


def least(root: UOp, inputs: dict[int, np.ndarray] | None = None) -> int:
    """The smallest limit under which a program runs."""
    low, high = 0, 1 << 30
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(root, middle, inputs) else (middle, high)
    return high


def test_a_value_counts_until_its_last_use() -> None:
    chain = X
    for _ in range(5):
        chain = UOp(Op.NEG, chain)
    assert least(chain, GIVEN) == 2 * 4 * COUNT
    both = UOp(Op.ADD, UOp(Op.NEG, X), X)
    assert least(both, GIVEN) == 3 * 4 * COUNT
    wide = UOp(Op.CMPLT, X, UOp(Op.NEG, X))
    assert least(wide, GIVEN) == 2 * 4 * COUNT + COUNT


def test_a_graph_that_stores_keeps_all_and_has_positions() -> None:
    out = argument(1, COUNT)
    effects = UOp(Op.SINK, UOp(Op.STORE, out, UOp(Op.NEG, X)))
    assert least(effects, GIVEN) == (4 + 8) * COUNT + 2 * 4 * COUNT


def test_a_body_counts_by_itself() -> None:
    wide = UOp(Op.EXPAND, UOp(Op.RESHAPE, X, dims((1, COUNT))), dims((50, COUNT)))
    body = UOp(Op.TUPLE, UOp(Op.NEG, wide))
    root = UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, UOp(Op.NEG, X)), arg=GetTupleArg(0))
    # The result of the NEG, and what is expanded for it.
    assert least(root, GIVEN) == 2 * 50 * 4 * COUNT


@pytest.mark.parametrize("shape", [(1,) * 100, (1, 0) + (1 << 40,) * 2], ids=["axes", "empty"])
def test_a_shape_that_no_array_has_is_refused(shape: tuple[int, ...]) -> None:
    given = np.ones((0 if 0 in shape else 1,), np.int32)
    root = UOp(Op.NEG, UOp(Op.RESHAPE, param(0, given.shape, I32), dims(shape)))
    with pytest.raises(LackingError, match="a shape of more axes, or larger, than arrays have"):
        evaluate(root, {0: given})


def test_values_of_a_kernel_have_a_copy_for_each_position_they_depend_on() -> None:
    zeros = {0: np.zeros(4, np.int32)}

    def needs(value: UOp) -> int:
        adding = UOp(Op.ATOMICADD, at(kernel_param(0, 4), 0), value)
        return least(program(UOp(Op.SINK, adding), 4), zeros)

    item = int32(special(COUNT, "lidx0"))
    both = UOp(Op.ADD, item, int32(special(3)))
    for value, copies in ((item, COUNT), (both, 3 * COUNT)):
        assert needs(UOp(Op.NEG, value)) - needs(value) == 4 * copies


@pytest.mark.parametrize(
    "build",
    [
        lambda: UOp(Op.SINK, store(kernel_param(0, 4), special(10**13), int32(1))),
        lambda: UOp(
            Op.SINK, store(kernel_param(0, 4), 0, load(memory(AddrSpace.LOCAL, 10**13), 0))
        ),
        lambda: UOp(
            Op.SINK,
            UOp(
                Op.STORE,
                at(kernel_param(0, 4), 0),
                UOp(Op.ADD, int32(special(10**7)), int32(special(10**7, "lidx0"))),
            ),
        ),
    ],
    ids=["items", "local", "both"],
)
def test_a_kernel_that_needs_too_much_is_refused(build: Callable[[], UOp]) -> None:
    with pytest.raises(LackingError, match=r"VALUE\.n1"):
        evaluate(program(build(), 4), {0: np.zeros(4, np.int32)})


def test_loops_that_run_in_turn_need_no_copies() -> None:
    listing, counter = Listing(), loop(0, 10**3)
    with listing.each(counter):
        listing.do(store(kernel_param(0, 4), 0, int32(add(counter, 1))))
    assert fits(program(listing.body, 4), 4096, {0: np.zeros(4, np.int32)})


def test_buffers_that_start_empty_count() -> None:
    with pytest.raises(LackingError, match=r"VALUE\.n1(.|\n)*BUFFER"):
        evaluate(program(UOp(Op.SINK, store(kernel_param(0, 10**13), 0, int32(1))), 10**13))


def test_every_way_to_evaluate_is_guarded() -> None:
    big = UOp(Op.EXPAND, param(0, (1,), dtypes.float32), dims((10**13,)))
    given = {0: np.ones(1, np.float32)}
    for run in (evaluate, accept, evaluate_by_devices):
        with pytest.raises(LackingError, match=r"VALUE\.n1") as caught:
            run(big, given)  # type: ignore[operator]
        assert caught.value.where.startswith(f"{__file__}:")


def test_memory_that_is_not_there_after_all_is_the_same_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(u: UOp, a: np.ndarray) -> np.ndarray:
        raise MemoryError("Unable to allocate")

    monkeypatch.setitem(RULES, Op.NEG, fails)
    negative = UOp(Op.NEG, load(kernel_param(0, 4), 0))
    kernel = program(UOp(Op.SINK, store(kernel_param(0, 4), 0, negative)), 4)
    for root, given in ((UOp(Op.NEG, X), GIVEN), (kernel, {0: np.zeros(4, np.int32)})):
        with pytest.raises(LackingError, match=r"VALUE\.n1(.|\n)*NEG(.|\n)*Unable to allocate"):
            evaluate(root, given)


def test_values_may_have_a_part_of_the_free_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert footprint.limit() >= footprint.SMALL
    container = tmp_path / "container"
    monkeypatch.setattr(footprint, "_CONTAINER", container)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=4 << 30))
    assert (footprint.free(), footprint.limit()) == (4 << 30, (4 << 30) // footprint.PART)
    container.mkdir()
    (container / "memory.current").write_text(f"{1 << 30}\n")
    for most, left in (("max\n", 4 << 30), (f"{3 << 30}\n", 2 << 30), (f"{1 << 29}\n", 0)):
        (container / "memory.max").write_text(most)
        assert footprint.free() == left
    assert footprint.limit() == footprint.SMALL


def summed(count: int) -> UOp:
    """A kernel that folds the terms of work items and iterations."""
    terms = int32(add(special(count), loop(0, 20)))
    folded = UOp(Op.REDUCE, terms, loop(0, 20), arg=ReduceArg(Op.ADD, ()))
    return program(UOp(Op.SINK, store(kernel_param(0, count), special(count), folded)), count)


def counted(count: int) -> UOp:
    """A kernel whose work items add to one element."""
    items = special(count)
    adding = UOp(Op.ATOMICADD, at(kernel_param(0, 4), 0), int32(items))
    return program(UOp(Op.SINK, adding), 4)


def negated(count: int) -> UOp:
    x = param(0, (count,), I32)
    return UOp(Op.SINK, UOp(Op.STORE, argument(1, count), UOp(Op.NEG, UOp(Op.ADD, x, x))))


@pytest.mark.parametrize("build", [summed, counted, negated])
def test_what_an_evaluation_takes_is_at_most_the_values_times_the_part(
    build: Callable[[int], UOp],
) -> None:
    root = build(20_000)
    given = {slot: np.zeros(u.shape, np.int32) for slot, u in slots_of(root).items()}
    tracemalloc.start()
    evaluate(root, given)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 1 << 19 < peak < least(root, given) * footprint.PART


def test_a_meter_counts_what_is_computed_and_stops_beyond_its_limit() -> None:
    with metered() as meter:
        evaluate(UOp(Op.NEG, X), GIVEN)
    assert meter.spent == 2 * COUNT
    with metered(2 * COUNT):
        evaluate(UOp(Op.NEG, X), GIVEN)
    with pytest.raises(WorkError, match="more than 1999 elements"), metered(2 * COUNT - 1):
        evaluate(UOp(Op.NEG, X), GIVEN)


def endless() -> UOp:
    listing, counter = Listing(), loop(0, 1 << 62)
    with listing.each(counter):
        listing.do(store(kernel_param(0, 4), 0, int32(1)))
    return program(listing.body, 4)


@pytest.mark.parametrize("build", [endless, lambda: counted(1 << 28)], ids=["loop", "items"])
def test_a_meter_stops_before_it_is_long_or_large(build: Callable[[], UOp]) -> None:
    tracemalloc.start()
    with pytest.raises(UnsupportedError), metered(1 << 12):
        evaluate(build(), {0: np.zeros(4, np.int32)})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 24
