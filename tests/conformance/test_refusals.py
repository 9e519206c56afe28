"""Programs that a backend refuses: for its device, for their data, or for no fault of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uop.conformance.backends import load
from uop.conformance.backends.attempt import own_problem
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.coverage.value_classes import special_in
from uop.conformance.judging import lowering
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.protocol.types import Backend, Hello, ProblemKind
from uop.conformance.report.model import Conclusion
from uop.conformance.report.text import adapter_lines
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.replay import conclusion
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id
from uop.conformance.workers.again import with_ordinary_data
from uop.conformance.workers.transport import Local
from uop.spec.errors import (
    DeviceLacksError,
    InvalidError,
    LackingError,
    RefusedError,
    UnsupportedError,
    UopError,
)
from uop.spec.latitude import STRICT


def judged(backend: Backend, *ids: str) -> list[Verdict]:
    return Judge(Local(backend), STRICT).judge([case_by_id(id) for id in ids])


def special(case: Case) -> int:
    """The special classes of the data of a case."""
    return special_in(a for batch in case.batches for a in batch.inputs.values())


def with_specials() -> str:
    """A case whose data are not finite."""
    for group in ("specials", "edges", "values"):
        for index in range(4):
            try:
                case = case_by_id(f"op/ADD/float32/{group}/{index}")
            except UopError:
                continue
            assert isinstance(case, Case)
            if special(case):
                return str(case.id)
    raise AssertionError


@pytest.mark.usefixtures("choosing_backends")
def test_what_is_taken_on_ordinary_data_is_refused_for_its_data() -> None:
    id = with_specials()
    (verdict,) = judged(load("backends_for_tests:Picky"), id)
    assert verdict.status is Status.SKIPPED
    assert {"inf", "nan"} & set(verdict.by_data.split(", "))
    assert verdict.reason == f"refused for its data: {verdict.by_data}"
    assert conclusion([verdict]) is Conclusion.INCONCLUSIVE
    (verdict,) = judged(load("backends_for_tests:NoAddition"), id)
    assert (verdict.reason, verdict.by_data) == ("not here", "")


def test_a_run_that_refuses_much_for_its_data_is_inconclusive() -> None:
    options = Options(
        "backends_for_tests:Picky", ops=("ADD", "MUL"), dtypes=("float32",), workers=1
    )
    report = conform(replace(options, effort="smoke", levels=("op",)))
    assert report.conclusion is Conclusion.INCONCLUSIVE
    assert "refused for their data: " in report.summary.open_because
    assert sum(report.summary.by_data.values()) > 2
    assert any("refused for their data, which are" in line for line in adapter_lines(report))


def test_ordinary_data_have_the_shapes_of_the_case_and_a_meaning() -> None:
    case = case_by_id(with_specials())
    assert isinstance(case, Case)
    other = with_ordinary_data(case)
    assert other is not None
    assert not special(other)
    for slot, a in case.batches[0].inputs.items():
        assert (other.batches[0].inputs[slot].shape, other.root) == (a.shape, case.root)
    assert with_ordinary_data(other) is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (DeviceLacksError("no float64"), ProblemKind.UNSUPPORTED),
        (RefusedError("may be dependent"), ProblemKind.UNSUPPORTED),
        (UnsupportedError("no such axis type"), ProblemKind.OURS),
        (LackingError("VALUE.n1", "too large"), ProblemKind.OURS),
        (InvalidError("ADD.c1", "one dtype"), ProblemKind.INVALID),
    ],
)
def test_what_this_project_cannot_do_is_no_lack_of_a_device(
    error: UopError, kind: ProblemKind
) -> None:
    assert own_problem(error).kind is kind


class Kernels(InterpreterBackend):
    def hello(self) -> Hello:
        return replace(super().hello(), forms=frozenset({"kernel"}))


@pytest.mark.parametrize(
    ("error", "is_ours"), [(UnsupportedError("too hard"), True), (DeviceLacksError("none"), False)]
)
def test_a_program_that_the_compiler_cannot_lower_is_not_judged(
    error: UopError, is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(root: object, stage: str) -> None:
        raise error

    monkeypatch.setattr(lowering, "lower", fails)
    (verdict,) = judged(Kernels(), with_specials())
    assert verdict.status is Status.SKIPPED
    assert bool(verdict.unjudged) == is_ours
    assert "cannot be lowered to kernel form" in verdict.reason
