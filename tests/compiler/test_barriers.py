"""Divergent barriers: named before a launch where the numbers of the work items decide."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from kernels import (
    add,
    after,
    argument,
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
)

from uop.compiler import steps
from uop.compiler.pipeline import compile
from uop.conformance.protocol.types import Problem, ProblemKind, Program
from uop.conformance.suite.levels.kernel.scalar import Listing
from uop.conformance.workers.sessions import started
from uop.conformance.workers.transport import Allowance
from uop.interpreter.evaluate import evaluate
from uop.spec.args import AddrSpace, DTypeArg, SpecialArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp, const, index_const, variable

ITEM, OTHER, GROUP = special(4, "lidx0"), special(3, "lidx1"), special(6, "gidx0")
COUNT = 6 * 3 * 4
PLACE = add(times(add(times(GROUP, 3), OTHER), 4), ITEM)
GIVEN = load(kernel_param(1, COUNT), PLACE)
"""An element of data, of each item its own."""
AS_OFTEN = UOp(Op.CAST, GIVEN, arg=DTypeArg(dtypes.index))
DATA = {1: np.full(COUNT, 2, np.int32)}


def kernel(*blocks: UOp) -> UOp:
    """A barrier in blocks, the first one outermost: of a bool a branch, of a RANGE a loop."""
    listing = Listing()
    listing.do(store(kernel_param(0, COUNT), PLACE, int32(7)))
    with ExitStack() as opened:
        for u in blocks:
            opened.enter_context(listing.each(u) if u.op is Op.RANGE else listing.where(u))
        listing.barrier()
    return program(listing.body, COUNT, COUNT)


def is_below(i: UOp, value: int) -> UOp:
    return UOp(Op.CMPLT, GIVEN, const(value, dtypes.int32)) if i is GIVEN else below(i, value)


THREE = loop(0, 3)
DIVERGENT = {
    "branch": ([below(ITEM, 2)], "lidx0 = 0 waits, lidx0 = 2 skips it"),
    "branch of one group": (
        [below(add(times(GROUP, 4), ITEM), 10)],
        "gidx0 = 2, lidx0 = 0 waits, gidx0 = 2, lidx0 = 2 skips it",
    ),
    "branch of two axes": (
        [below(add(ITEM, OTHER), 5)],
        "lidx1 = 0, lidx0 = 0 waits, lidx1 = 2, lidx0 = 3 skips it",
    ),
    "loop": ([loop(0, ITEM)], "lidx0 = 1 waits, lidx0 = 0 skips it"),
    "nested": ([below(GROUP, 3), below(ITEM, 1)], "lidx0 = 0 waits"),
    "an iteration": ([THREE, below(add(ITEM, THREE), 5)], "lidx0 = 0 waits, lidx0 = 3 skips it"),
}
UNIFORM = {
    "all items": [below(ITEM, 4)],
    "no item": [below(ITEM, 0)],
    "whole groups": [below(GROUP, 3)],
    "nested": [below(GROUP, 0), below(ITEM, 1)],
    "a loop of each group": [loop(0, GROUP)],
    "a loop": [THREE],
    "data": [is_below(GIVEN, 9)],
    "data around": [is_below(GIVEN, -1), below(ITEM, 1)],
    "a loop by data": [loop(0, AS_OFTEN)],
}


@pytest.mark.parametrize("target", ["opencl", "cuda", "cuda-host"])
@pytest.mark.parametrize("name", DIVERGENT)
def test_a_divergent_barrier_is_named_before_the_launch(name: str, target: str) -> None:
    blocks, said = DIVERGENT[name]
    root = kernel(*blocks)
    for run in (lambda: evaluate(root, DATA), lambda: compile(root, target)):
        with pytest.raises(UndefinedError, match=r"BARRIER\.u1") as caught:
            run()
        assert said in str(caught.value)


@pytest.mark.sampled(8)
@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("target", ["opencl", "cuda-host"])
@pytest.mark.parametrize("name", UNIFORM)
def test_a_barrier_that_whole_groups_meet_runs(name: str, target: str) -> None:
    root = kernel(*UNIFORM[name])
    for found in (evaluate(root, DATA), compile(root, target).run(DATA)):
        assert isinstance(found, dict)
        assert found[0].tolist() == [7] * COUNT


def test_a_divergence_of_late_groups_and_iterations_is_not_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = UOp(Op.AND, UOp(Op.CMPEQ, GROUP, index_const(5)), below(ITEM, 2))
    with pytest.raises(UndefinedError, match=r"BARRIER\.u1"):
        compile(kernel(late))
    monkeypatch.setattr(steps, "MOST_GROUPS", 5)
    assert compile(kernel(late)).source
    often = loop(0, 10**15)
    last = UOp(Op.AND, UOp(Op.CMPEQ, often, index_const(10**14)), below(ITEM, 2))
    assert compile(kernel(often, last)).source


def test_a_branch_that_diverges_in_the_graph_of_a_loop_is_found_too() -> None:
    r, own = loop(0, ITEM), memory(AddrSpace.LOCAL, 4)
    meet = UOp(Op.BARRIER, store(own, ITEM, int32(r)))
    value = load(after(own, UOp(Op.END, meet, r)), ITEM)
    root = program(UOp(Op.SINK, store(kernel_param(0, 4), ITEM, value)), 4)
    with pytest.raises(UndefinedError, match=r"BARRIER\.u1"):
        compile(root)


@pytest.mark.usefixtures("opencl")
def test_of_a_symbolic_number_of_groups_those_are_looked_at_that_exist() -> None:
    """There are 2 groups at least."""
    count = variable(0, 2, 6)
    group = UOp(Op.SPECIAL, variable(1, 2, 6), arg=SpecialArg("gidx0"))

    def root(first: int) -> UOp:
        listing = Listing()
        listing.do(store(kernel_param(0, 6), group, int32(7)))
        with listing.where(below(ITEM, 2)), listing.where(below(index_const(first), group)):
            listing.barrier()
        return UOp(Op.SINK, UOp(Op.CALL, listing.body, argument(3, 6), count))

    with pytest.raises(UndefinedError, match=r"BARRIER\.u1"):
        compile(root(0))
    found = compile(root(1)).run({0: np.array(2), 3: np.zeros(6, np.int32)})
    assert isinstance(found, dict)
    assert found[3].tolist() == [7, 7, 0, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.usefixtures("opencl")
def test_a_kernel_that_hangs_ends_with_its_process() -> None:
    """As often as data says, which is too often to see the end of."""
    often = load(kernel_param(1, 1, dtypes.index), 0)
    r = loop(0, often)
    place = at(after(kernel_param(0, 1), r), 0)
    step = UOp(Op.XOR, UOp(Op.LOAD, place), int32(r))
    body = UOp(Op.SINK, UOp(Op.END, UOp(Op.STORE, place, times_three(step)), r))
    root = program(body, argument(0, 1), argument(1, 1, dtypes.index))
    data = {0: np.ones(1, np.int32), 1: np.array([1 << 60], np.int64)}
    quick = Allowance(batch_seconds=5.0, program_seconds=0.0)
    with started("opencl", allowance=quick) as session:
        session.submit([Program(print_program(root), (data,))])
        (outcome,) = session.collect()
        assert isinstance(outcome, Problem)
        assert outcome.kind is ProblemKind.HANG
        data[1][0] = 3
        session.submit([Program(print_program(root), (data,))])
        (outcome,) = session.collect()
        assert not isinstance(outcome, Problem)


def times_three(value: UOp) -> UOp:
    return UOp(Op.MUL, value, const(3, dtypes.int32))
