"""plan: temporaries share memory, and never while both hold something."""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np
import pytest

from uop.compiler.pipeline import compile
from uop.compiler.stages.order import TEMPORARY
from uop.compiler.stages.plan import in_places, lifetimes, plan
from uop.interpreter.evaluate import evaluate
from uop.spec.args import ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import PassError
from uop.spec.graph import base_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed
from uop.spec.uop import UOp, param


def folded(op: Op, x: UOp, *axes: int) -> UOp:
    """A fold that a kernel of its own stores."""
    return UOp(Op.CONTIGUOUS, UOp(Op.REDUCE, x, arg=ReduceArg(op, axes)))


def running_maximum(steps: int) -> UOp:
    """Each step folds the one before: a chain of temporaries of one size."""
    x = param(0, (3, 3), dtypes.int32)
    for _ in range(steps):
        row = folded(Op.MAX, x, 0)
        column = folded(Op.ADD, x, 1)
        x = UOp(Op.CONTIGUOUS, UOp(Op.SUB, UOp(Op.ADD, row, column), x))
    return x


def temporaries(program: UOp) -> set[UOp]:
    return {u for u in program.toposort() if u.op is Op.BUFFER and u.tag == TEMPORARY}


def test_a_chain_needs_few_buffers() -> None:
    stages = compile(running_maximum(12)).stages
    before, after = stages["linearize"], stages["plan"]
    assert len(temporaries(before)) > 24
    assert len(temporaries(after)) < len(temporaries(before)) / 2
    x = np.arange(9, dtype=np.int32).reshape(3, 3) % 5
    results = [evaluate(stage, {0: x}) for stage in (before, after)]
    np.testing.assert_array_equal(results[0][1], results[1][1])  # type: ignore[index]


def fold_of_folds(steps: int) -> UOp:
    """Each kernel reads the temporary of the one before and no other."""
    x = row = param(0, (3, 3), dtypes.int32)
    for _ in range(steps):
        row = folded(Op.ADD, UOp(Op.MUL, x, row), 0)
    return row


@pytest.mark.parametrize("program", [running_maximum(2), running_maximum(5), fold_of_folds(6)])
def test_there_are_as_many_buffers_as_hold_something_at_once(program: UOp) -> None:
    stages = compile(program).stages
    lives = lifetimes([u for u in stages["linearize"].toposort() if u.op is Op.CALL])
    most: Counter[tuple[object, int]] = Counter()
    for at in range(max(life.stop for life in lives.values())):
        alive = [buffer for buffer, life in lives.items() if at in life]
        most |= Counter((u.dtype, prod(fixed(u))) for u in alive)
    assert len(temporaries(stages["plan"])) == most.total()


def test_what_is_read_later_keeps_its_memory() -> None:
    """The first temporary lives to the end, so nobody may take its place."""
    x = param(0, (4, 4), dtypes.int32)
    first = folded(Op.ADD, x, 0)
    second = folded(Op.MAX, UOp(Op.MUL, x, first), 0)
    third = folded(Op.ADD, UOp(Op.ADD, x, second), 0)
    planned = compile(UOp(Op.SUB, third, first)).stages["plan"]
    assert len(temporaries(planned)) == 3


def test_other_dtypes_and_sizes_do_not_share() -> None:
    x = param(0, (4, 4), dtypes.int32)
    first = folded(Op.ADD, x, 0, 1)
    second = folded(Op.ADD, UOp(Op.ADD, x, first), 0)
    third = folded(Op.ADD, UOp(Op.CMPLT, second, x), 0)
    planned = compile(UOp(Op.NOT, third)).stages["plan"]
    assert len(temporaries(planned)) == 3


def test_lifetimes_are_from_first_to_last_use() -> None:
    program = compile(running_maximum(2)).stages["linearize"]
    calls = [u for u in program.toposort() if u.op is Op.CALL]
    for buffer, life in lifetimes(calls).items():
        using = [k for k, c in enumerate(calls) if any(base_of(a) is buffer for a in c.src[1:])]
        assert life == range(using[0], using[-1] + 1)


def test_memory_given_away_too_early_is_found() -> None:
    program = compile(running_maximum(2)).stages["linearize"]
    calls = [u for u in program.toposort() if u.op is Op.CALL]
    buffers = [*lifetimes(calls)]
    same = [b for b in buffers if b.shape == (1, 3)]
    assert len(same) > 1
    one_place = dict.fromkeys((b for b in buffers if b.dtype is dtypes.int32), same[0])
    with pytest.raises(PassError, match="plan:"):
        in_places(calls, one_place)


def test_a_program_without_temporaries_is_left_alone() -> None:
    program = compile(UOp(Op.NEG, param(0, (3,), dtypes.int32))).stages["linearize"]
    assert plan(program) is program
