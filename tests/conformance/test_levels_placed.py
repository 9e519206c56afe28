"""Ops on devices one by one, and what hands intervals on: every rule is met, and decides."""

from __future__ import annotations

import pytest

from uop.conformance.coverage.exercised import AXIS, DEVICE, MIN_MAX, exercised
from uop.conformance.judging.expected import accepted_on
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import groups
from uop.conformance.suite.levels.devices import groups_of_ops
from uop.conformance.suite.levels.graph.property import groups_of_copies
from uop.conformance.suite.levels.group import Group
from uop.interpreter.evaluate import evaluate
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.properties import axis, device
from uop.spec.properties import min_max as intervals
from uop.spec.registry import DECLARATIONS


def met(rule: int, cases: list[Case]) -> set[str]:
    """The ops at whose nodes a rule says something."""
    return {op for c in cases for op, rules in exercised(c).rules.items() if rules & rule}


def of_level(level: str) -> list[Case]:
    """A case of every group that has one by default."""
    made = [g.case(0, 0) for g in groups(level) if g.count("default")]
    return [c for c in made if isinstance(c, Case)]


def test_every_op_that_has_a_device_is_placed_on_one() -> None:
    named = {op.name for op, d in DECLARATIONS.items() if d.device is not device.null}
    assert named <= met(DEVICE, of_level("device"))


def test_every_op_that_keeps_shards_has_some() -> None:
    keeping = {op.name for op, d in DECLARATIONS.items() if d.axis is not axis.null}
    assert keeping <= met(AXIS, of_level("device"))


@pytest.mark.parametrize("group", list(groups_of_ops()), ids=lambda g: f"{g.op}-{g.name}")
def test_programs_on_a_device_mean_the_same(group: Group) -> None:
    case = group.case(0, 0)
    accepted_on(case, 0, STRICT)
    evaluate(case.root, case.batches[0].inputs)
    assert any(u.device is not None for u in case.root.toposort())


def test_every_interval_that_is_handed_on_is_narrow_somewhere() -> None:
    handed = {
        op.name
        for op, d in DECLARATIONS.items()
        if d.min_max in (intervals.param, intervals.load) or "of_src" in d.min_max.__qualname__
    }
    # The operand of a PTRADD is memory.
    assert handed - met(MIN_MAX, of_level("property")) == {Op.PTRADD.name}


@pytest.mark.parametrize("group", list(groups_of_copies()), ids=lambda g: f"{g.op}-{g.dtype}")
def test_what_an_op_copies_is_compared_beside_its_bounds(group: Group) -> None:
    """A comparison with any other number would hold, or fail, whatever the rule says."""
    for k in range(group.count("full")):
        condition, operand = group.case(k, 0).root.src[0], group.case(k, 0).root.src[1]
        low, high = condition.src[0].min_max.min, condition.src[0].min_max.max
        assert condition.src[0] is operand
        bound = condition.src[1].arg.value
        assert min(abs(bound - low), abs(bound - high)) <= 1
