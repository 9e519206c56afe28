"""A fuzz run on several backends: the same programs, a part of the time each, and a vote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from uop.conformance.report.format import read_report
from uop.conformance.report.model import Report, VoteOutcome

WRONG, TOO = "backends_for_tests:Inaccurate", "backends_for_tests:InaccurateToo"
WORDS = ("--seed", 1, "--level", "graph", "--fail-fast", "-n", 1)


def fuzzed(uop: Any, folder: Path, *words: object) -> tuple[Any, Report]:
    files = ("--output", folder / "found", "--json", folder / "report.json")
    outcome = uop("fuzz", *words, *WORDS, *files)
    assert outcome.code == 1, outcome.out + outcome.err
    return outcome, read_report(folder / "report.json")


@pytest.mark.slow
def test_the_case_of_a_cause_is_judged_on_all_backends(uop: Any, tmp_path: Path) -> None:
    missing = "backends_for_tests:Missing"
    outcome, report = fuzzed(uop, tmp_path, WRONG, missing, "adversary", "--time", "24s")
    assert report.vote is not None
    assert report.vote.backends == (WRONG, "adversary")
    assert report.vote.cases
    failed = {failure.id for failure in report.failures}
    for case in report.vote.cases:
        assert (case.verdict, case.odd, case.id in failed) == (VoteOutcome.ODD, (WRONG,), True)
        assert case.says["adversary"] == "accepted"
    assert f"not started: {missing}: " in outcome.out
    assert "odd one out on graph/MIXED/" in outcome.out
    assert {one.options.seconds for one in report.every} == {8.0}


@pytest.mark.slow
def test_all_draw_the_same_programs_and_have_folders_of_their_own(uop: Any, tmp_path: Path) -> None:
    outcome, report = fuzzed(uop, tmp_path, WRONG, TOO, "--time", "10m")
    first, second = report.every
    assert first.generator == second.generator
    # Each has judged the first programs alone, and stopped at the first failure.
    assert {f.id for f in first.failures} & {f.id for f in second.failures}
    for one in (first, second):
        folders = {Path(failure.repro).parent for failure in one.failures}
        assert folders == {tmp_path / "found" / one.options.backend.replace(":", "-")}
        assert all(Path(failure.repro).is_file() for failure in one.failures)
    assert report.vote is not None
    assert {case.verdict for case in report.vote.cases} == {VoteOutcome.SUSPECT}
    assert "interpreter suspect on graph/MIXED/" in outcome.out
    again = uop("fuzz", WRONG, TOO, "--time", "10m", *WORDS, "--output", tmp_path / "found")
    for one in (first, second):
        assert f"in {Path(one.failures[0].repro).parent}\n" in again.out


@pytest.mark.parametrize(
    ("option", "value"),
    [("--against", "opencl"), ("--corpus", "corpus"), ("--scheduler", "tcp://localhost:1")],
)
def test_some_options_are_for_one_backend(option: str, value: str, uop: Any) -> None:
    outcome = uop("fuzz", "interpreter", WRONG, option, value)
    assert outcome.code == 2
    assert f"{option}: expected one backend, found interpreter, {WRONG}" in outcome.err


def test_where_none_starts_no_run_begins(uop: Any, tmp_path: Path) -> None:
    names = ("backends_for_tests:Missing", "no_such_module:Backend")
    outcome = uop("fuzz", *names, "--time", "5s", "--output", tmp_path)
    assert outcome.code == 3
    assert "pip install driver" in outcome.err
