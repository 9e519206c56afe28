"""The cases of functions and of several devices that are written by hand: what each is, and why."""

from __future__ import annotations

import numpy as np
import pytest

from uop.conformance.judging import storage
from uop.conformance.suite import generate
from uop.conformance.suite.case import Case as Generated
from uop.conformance.suite.levels.written import by_file
from uop.interpreter.accept import accept
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array, to_bits
from uop.interpreter.tensor.devices import Sharded, evaluate_by_devices
from uop.interpreter.values import Value
from uop.spec.case import FileCase, outputs
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op
from uop.spec.text.program import parse, print_program

LEVELS = ("function", "device")
ALL = [
    pytest.param(case, id=f"{level}-{name}-{case.id}")
    for level in LEVELS
    for name, cases in by_file(level).items()
    for case in cases
]
WITH_MEANING = [p for p in ALL if not p.values[0].undefined]  # type: ignore[union-attr]

COLLECTIVES = (
    "broadcast", "scatter", "gather", "reduce", "allgather", "reduce_scatter", "allreduce",
)  # fmt: skip


def inputs(case: FileCase) -> dict[int, Array]:
    return {k: storage.from_literal(a) for k, a in case.inputs.items()}


def by_output(result: object) -> dict[int, object]:
    if isinstance(result, dict):
        return result
    return dict(enumerate(result)) if isinstance(result, tuple) else {0: result}


def agree(found: Array, want: Array) -> None:
    """The same bits; a NaN that was computed has none that are promised."""
    nan = want != want
    assert ((found != found) == nan).all()
    np.testing.assert_array_equal(to_bits(found)[~nan], to_bits(want)[~nan])


@pytest.mark.parametrize("case", ALL)
def test_the_reference_gives_what_is_expected(case: FileCase) -> None:
    assert case.root is not None
    assert parse(print_program(case.root)) is case.root
    if case.undefined:
        with pytest.raises(UndefinedError) as caught:
            evaluate_full(case.root, inputs(case))
        assert caught.value.label == case.undefined_label
        return
    assert case.expect or case.accept
    found = by_output(evaluate_full(case.root, inputs(case)))
    for k, array in case.expect.items():
        value = found[k]
        assert isinstance(value, Value)
        assert value.invalid is None
        assert value.unspecified is None
        agree(value.data.reshape(-1), storage.from_literal(array).reshape(-1))


@pytest.mark.parametrize("case", WITH_MEANING)
def test_the_adversary_stays_inside_what_is_accepted(case: FileCase) -> None:
    assert case.root is not None
    given = inputs(case)
    order = sorted(outputs(case.root)) if case.root.op is not Op.SINK else sorted(case.expect)
    sets = dict(zip(order, accept(case.root, given), strict=True))
    for seed in range(4):
        moved = by_output(evaluate_adversarially(case.root, given, seed))
        for k, accepted in sets.items():
            assert accepted.contains(np.asarray(moved[k])).all(), (k, seed)
    for k, array in case.expect.items():
        assert (
            sets[k].contains(storage.from_literal(array).reshape(outputs(case.root)[k].shape)).all()
        )


@pytest.mark.parametrize("case", [p for p in WITH_MEANING if str(p.id).startswith("device")])
def test_the_devices_together_make_the_value(case: FileCase) -> None:
    """Each device computes its part alone; the parts join to what is expected."""
    assert case.root is not None
    found = by_output(evaluate_by_devices(case.root, inputs(case)))
    for k, array in case.expect.items():
        placed = found[k]
        assert isinstance(placed, Sharded)
        agree(placed.whole().data.reshape(-1), storage.from_literal(array).reshape(-1))


def test_there_is_a_case_of_each_collective_on_two_and_on_three_devices() -> None:
    for name in COLLECTIVES:
        on = set()
        for case in by_file("device")[name]:
            assert case.root is not None
            on |= {len(u.device) for u in case.root.toposort() if isinstance(u.device, tuple)}
        assert on == {2, 3}, name


def test_every_case_is_one_of_its_level() -> None:
    for level in LEVELS:
        ids = {
            str(c.id) for c in generate.cases([level], effort="smoke") if isinstance(c, Generated)
        }
        for name, cases in by_file(level).items():
            for case in cases:
                here = {i for i in ids if f"/hand-{name}-{case.id}/" in i}
                assert len(here) == (not case.undefined), (level, name, case.id)
