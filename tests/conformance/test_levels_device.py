"""Programs on devices: every number of them, every collective, and what each device must do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from uop.conformance.backends.interpreter import evaluate_whole, in_order, is_sharded
from uop.conformance.judging.compare import compare
from uop.conformance.judging.expected import accepted_on
from uop.conformance.suite import generate
from uop.conformance.suite.case import Case
from uop.conformance.suite.levels.devices import COLLECTIVES
from uop.conformance.suite.levels.sharded import MOST
from uop.interpreter.tensor import devices
from uop.interpreter.values import Value
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [c for c in generate.cases(["device"]) if isinstance(c, Case)]


def numbers_of_devices(case: Case) -> set[int]:
    return {len(u.device) for u in case.root.toposort() if isinstance(u.device, tuple)}


def test_every_collective_runs_on_every_number_of_devices(cases: list[Case]) -> None:
    for name in COLLECTIVES:
        found = [n for c in cases if c.group == name for n in numbers_of_devices(c)]
        assert set(found) == set(range(1, MOST + 1)), name


def test_shards_stay_shards_through_most_ops_of_movement(cases: list[Case]) -> None:
    sharded = [c for c in cases if c.group == "sharded"]
    split = Counter(
        u.op for c in sharded for u in c.root.toposort() if is_sharded(u) and u.axis is not None
    )
    for op in (Op.PERMUTE, Op.RESHAPE, Op.REDUCE, Op.PAD, Op.LOAD):
        assert split[op] >= 2, op
    assert sum(split[op] for op, d in DECLARATIONS.items() if d.is_elementwise) > len(sharded)
    assert any(is_sharded(u) and u.axis not in (None, 0) for c in sharded for u in walked(c))
    assert any(u.op is Op.STORE for c in sharded for u in walked(c))


def walked(case: Case) -> list[UOp]:
    return case.root.toposort()


def test_a_device_that_takes_the_part_of_another_is_accused(
    cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shards in a wrong order: whatever is not the same on all devices comes out wrong."""
    split = devices.split

    def rotated(value: Value, axis: int | None, count: int) -> tuple[Value, ...]:
        parts = split(value, axis, count)
        return (*parts[1:], parts[0]) if axis is not None else parts

    scattered = [c for c in cases if c.group == "scatter" and 1 not in numbers_of_devices(c)]
    assert scattered
    for case in scattered:
        sets, inputs = accepted_on(case, 0, STRICT), case.batches[0].inputs
        assert compare(sets, in_order(evaluate_whole(case.root, inputs))).mismatch is None
        with monkeypatch.context() as patch:
            patch.setattr(devices, "split", rotated)
            found = in_order(evaluate_whole(case.root, inputs))
        if np.unique(found[0]).size > 1:
            assert compare(sets, found).mismatch is not None, case.id
