"""Programs about intervals: what they hold, and that an interval one too narrow is found."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from uop.compiler.pipeline import lower
from uop.conformance.suite import generate
from uop.conformance.suite.case import Case
from uop.interpreter.accept import accept
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.evaluate import evaluate
from uop.spec.errors import PassError
from uop.spec.ops.names import Op
from uop.spec.properties.interval import Interval
from uop.spec.registry import DECLARATIONS, Node

GROUPS = [g for g in generate.groups("property") if g.name in ("loops", "items", "functions")]


def cases(group: str, each: int = 2) -> list[Case]:
    made = [g.case(k, 0) for g in GROUPS if g.name == group for k in range(each)]
    return [c for c in made if isinstance(c, Case)]


@pytest.mark.parametrize(("group", "counter"), [("loops", Op.RANGE), ("items", Op.SPECIAL)])
def test_kernels_count_read_and_compare(group: str, counter: Op) -> None:
    held: Counter[Op] = Counter()
    made = cases(group, 4)
    for case in made:
        held.update({u.op for u in case.root.toposort()})
    for op in (counter, Op.INDEX, Op.LOAD, Op.WHERE):
        assert held[op] == len(made), op
    for op in (Op.RANGE, Op.CMPLT, Op.CMPNE, Op.IDIV, Op.MOD):
        assert held[op] > len(made) / 3, op
    assert (held[Op.REDUCE] > 0) == (group == "loops")


@pytest.mark.parametrize("group", ["loops", "items"])
def test_the_compiler_takes_every_kernel(group: str) -> None:
    for case in cases(group, 1):
        lower(case.root, "linearize")


def test_results_of_functions_are_compared_where_their_bodies_end() -> None:
    for case in cases("functions"):
        order = case.root.toposort()
        taken = {u for u in order if u.op is Op.GETTUPLE}
        assert taken
        assert any(u.op in (Op.CMPLT, Op.CMPNE) and u.src[0] in taken for u in order)


@pytest.mark.parametrize("group", ["loops", "items", "functions"])
def test_every_value_lies_in_its_interval_and_the_adversary_in_its_sets(group: str) -> None:
    for case in cases(group):
        for number, batch in enumerate(case.batches):
            evaluate(case.root, batch.inputs)
            moved = evaluate_adversarially(case.root, batch.inputs, number)
            if isinstance(moved, dict):
                found = [moved[slot] for slot in sorted(moved)]
            else:
                found = list(moved) if isinstance(moved, tuple) else [moved]
            for accepted, data in zip(accept(case.root, batch.inputs), found, strict=True):
                assert accepted.contains(np.asarray(data)).all(), case.id


WRONG = {
    Op.RANGE: "loops",
    Op.SPECIAL: "items",
    Op.LOAD: "items",
    Op.INDEX: "loops",
    Op.GETTUPLE: "functions",
}


def evaluate_all(group: str) -> None:
    for case in cases(group, 12):
        for batch in case.batches:
            evaluate(case.root, batch.inputs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", WRONG, ids=lambda op: op.name)
def test_an_upper_end_that_is_one_too_low_is_found(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = DECLARATIONS[op]

    def faulty(u: Node) -> Interval | None:
        interval = declared.min_max(u)
        if interval is None or not (u.dtype.is_int or op in (Op.RANGE, Op.SPECIAL)):
            return interval
        return Interval(interval.min, max(int(interval.max) - 1, int(interval.min)))

    gc.collect()
    monkeypatch.setitem(DECLARATIONS, op, replace(declared, min_max=faulty))
    with pytest.raises(PassError, match=r"min_max"):
        evaluate_all(WRONG[op])
    monkeypatch.undo()
    gc.collect()
