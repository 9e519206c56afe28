"""Sequences: a program that fails because of what ran before has a repro that runs both."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from uop.conformance.report.model import Failure, Report
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.replay import replay
from uop.conformance.shrink.sequence import Sequences
from uop.conformance.suite.generate import case_by_id
from uop.spec.latitude import STRICT
from uop.spec.text.uop_file import parse_file

STICKY = "backends_for_tests:Sticky"
FAILS, FIRST = "op/NEG/int32/edges/0@2", "op/FLIP/bool/view/0@2"
OTHERS = tuple(f"op/ADD/int32/{name}/0@2" for name in ("edges", "shapes", "constants"))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("repros")
    cases = (*OTHERS, FIRST, "op/MAX/int32/edges/0@2", FAILS)
    return conform(Options(STICKY, cases=cases, workers=1, output=folder, profile="strict"))


def test_the_repro_runs_what_must_run_before(report: Report) -> None:
    (cause,) = report.failures
    assert not cause.repeats
    assert cause.after == (FIRST,)
    assert f"it fails after {FIRST}" in "".join(cause.remarks)
    *before, last = parse_file(cause.text).cases
    assert [case.id.partition("#")[0] for case in before] == [FIRST]
    assert last.accept


def test_replay_fails_on_the_repro_alone(report: Report) -> None:
    (cause,) = report.failures
    path = Path(cause.repro)
    assert path.exists()
    *before, last = replay([path], STICKY)
    assert last.verdict.status.is_failure
    assert not any(one.verdict.status.is_failure for one in before)


def sequence(before: Sequence[str], deadline: float | None = None) -> Failure:
    found = Sequences(STICKY, None, STRICT, lambda id: case_by_id(id, 0), deadline)
    cause = Failure(FAILS, "result NEG int32", "value", "op", ("NEG",), ("int32",), "", "")
    return found.of(cause, before)


def test_the_one_program_among_many_is_found() -> None:
    found = sequence([*OTHERS, FIRST, *OTHERS])
    assert found.after == (FIRST,)


@pytest.mark.parametrize("before", [(), OTHERS])
def test_what_does_not_fail_again_stays_as_it_is(before: Sequence[str]) -> None:
    assert sequence(before).after == ()


def test_nothing_is_tried_after_the_deadline() -> None:
    assert sequence([FIRST, *OTHERS], deadline=0.0).after == ()


def test_a_case_that_fails_alone_needs_nothing() -> None:
    found = Sequences("backends_for_tests:WrongByte", None, STRICT, lambda id: case_by_id(id, 0))
    id = "op/CAST/float32/to-uint8/0@2"
    cause = Failure(
        id, "result CAST", "value", "op", ("CAST",), ("float32",), "", "", repeats=False
    )
    shown = found.of(cause, [FIRST])
    assert (shown.after, shown.repeats, shown.remarks) == ((), True, ())
    assert len(parse_file(shown.text).cases) == 1


def test_what_had_to_run_before_one_failure_is_tried_for_the_next() -> None:
    found = Sequences(STICKY, None, STRICT, lambda id: case_by_id(id, 0))
    cause = Failure(FAILS, "result NEG int32", "value", "op", ("NEG",), ("int32",), "", "")
    assert found.of(cause, ()).after == ()
    assert found.of(cause, [*OTHERS, FIRST]).after == (FIRST,)
    assert found.of(cause, ()).after == (FIRST,)
