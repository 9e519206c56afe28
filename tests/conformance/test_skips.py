"""What a run leaves out: ops, dtypes, causes of failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.checks import OptionError
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status
from uop.conformance.profile.card import observe
from uop.conformance.report.ci import junit_text
from uop.conformance.report.diff import changes
from uop.conformance.report.html.page import page
from uop.conformance.report.model import Report
from uop.conformance.report.text import known_lines, verdict_line
from uop.conformance.run.commands import more_command
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.selection import is_narrowed, selected
from uop.conformance.suite.case import Case, InvalidCase
from uop.conformance.suite.generate import case_by_id, groups
from uop.conformance.suite.vocabulary import Skips, computed, vocabulary_of
from uop.conformance.workers.transport import Local
from uop.spec.latitude import STRICT

SIGNATURE = "result CAST float32+uint8"
WRONG = Options("backends_for_tests:WrongByte", ops=("CAST",), dtypes=("float32",), workers=1)


def test_an_op_that_is_skipped_leaves_the_selection_and_the_graphs() -> None:
    options = Options("interpreter", skip_ops=("MAX", "REDUCE"), skip_dtypes=("int8",))
    hello = InterpreterBackend().hello()
    vocabulary = vocabulary_of([hello], options.skips)
    ids = selected(options, vocabulary, hello)
    assert is_narrowed(options)
    assert not options.is_whole
    assert not {"MAX", "REDUCE"} & {id.op for id in ids}
    assert "int8" not in {id.dtype for id in ids}
    graphs = [g for g in groups("graph", vocabulary) if g.count("smoke")]
    cases = [g.case(0, 0) for g in graphs if g.dtype != "int8"]
    nodes = {u for case in cases if isinstance(case, Case) for u in computed(case.root)}
    assert not any(name for u in nodes for name in options.skips.names_in(u))


def test_the_cases_with_an_op_are_those_of_the_whole_list_that_hold_it() -> None:
    whole = selected(Options("interpreter", effort="smoke"))
    ids = selected(Options("interpreter", effort="smoke", with_ops=("IDIV",)))
    assert is_narrowed(Options("interpreter", with_ops=("IDIV",)))
    assert ids == [id for id in whole if id in set(ids)]
    assert {"op", "invalid", "graph", "kernel"} <= {id.level for id in ids}
    assert {id for id in whole if id.op == "IDIV"} <= set(ids)
    for id in ids:
        case = case_by_id(str(id))
        if isinstance(case, Case):
            nodes = {u for program in case.programs for u in program.root.toposort()}
            assert any(u.op.name == "IDIV" for u in nodes)
    rest = (case_by_id(str(id)) for id in whole[::40] if id not in set(ids))
    roots = [case.root for case in rest if isinstance(case, Case)]
    assert not any(u.op.name == "IDIV" for root in roots for u in root.toposort())


def test_the_cases_with_a_fold_hold_it_in_a_reduce() -> None:
    ids = selected(Options("interpreter", effort="smoke", levels=("op",), with_ops=("MUL",)))
    assert any(id.op == "REDUCE" and id.group.startswith("MUL") for id in ids)


@pytest.mark.parametrize(
    ("id", "skips", "reason"),
    [
        ("op/CAST/float32/to-int8/0", Skips(dtypes=frozenset({"int8"})), "int8"),
        ("op/CAST/float32/to-int8/0", Skips(frozenset({"CAST"})), "CAST"),
        ("op/CAST/float32/to-int32/0", Skips(frozenset({"MAX"})), ""),
    ],
)
def test_a_case_that_needs_what_is_skipped_is_not_sent(id: str, skips: Skips, reason: str) -> None:
    judge = Judge(Local(InterpreterBackend()), STRICT)
    judge.skips = skips
    (verdict,) = judge.judge([case_by_id(id)])
    assert verdict.reason == (f"the run leaves out {reason}" if reason else "")
    assert (verdict.status is Status.SKIPPED) == bool(reason)


def test_texts_to_be_rejected_are_skipped_by_the_names_in_them() -> None:
    judge = Judge(Local(InterpreterBackend()), STRICT)
    judge.skips = Skips(frozenset({"PERMUTE"}))
    cases = [g.case(0, 0) for g in groups("invalid") if g.op == "PERMUTE"]
    assert cases
    for case, verdict in zip(cases, judge.judge(cases), strict=True):
        assert isinstance(case, InvalidCase)
        assert verdict.reason == "the run leaves out PERMUTE"


def test_a_choice_is_not_observed_by_what_is_skipped() -> None:
    session = Local(InterpreterBackend())
    points = {entry.point for entry in observe(session).entries}
    left = {entry.point for entry in observe(session, Skips(frozenset({"MAX"}))).entries}
    assert left < points


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"skip_ops": ("MULL",)}, "--skip-op: .* did you mean MUL"),
        ({"skip_dtypes": ("int9",)}, "--skip-dtype: .* did you mean int8"),
        ({"skip_ops": ("ADD",), "ops": ("ADD",)}, "--skip-op: ADD; but --op asks for no other"),
        ({"skip_ops": ("ADD",), "cases": ("op/ADD/int8/edges/0",)}, "--skip-op: ADD; but --case"),
    ],
)
def test_what_cannot_be_skipped_is_told(options: dict[str, tuple[str, ...]], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        replace(Options("interpreter"), **options).checked()  # type: ignore[arg-type]


def test_the_next_command_skips_the_same() -> None:
    options = Options("interpreter", skip_ops=("MAX", "MIN"), skip_causes=("a b",))
    assert more_command(options).endswith("--skip-op MAX,MIN --skip-cause 'a b'")


def test_a_run_skips_what_its_cases_need(tmp_path: Path) -> None:
    options = replace(WRONG, backend="interpreter", effort="smoke", output=tmp_path)
    report = conform(replace(options, skip_dtypes=("uint8",)))
    reasons = {why for cell in report.cells for why in cell.skipped}
    assert "the run leaves out uint8" in reasons
    assert report.summary.passed


@pytest.fixture
def failing(tmp_path: Path) -> Report:
    return conform(replace(WRONG, effort="smoke", output=tmp_path))


def test_a_skipped_cause_does_not_fail_the_run(failing: Report, tmp_path: Path) -> None:
    signatures = tuple(failure.signature for failure in failing.failures)
    assert SIGNATURE in signatures
    options = replace(WRONG, effort="smoke", output=tmp_path, skip_causes=(*signatures, "other"))
    report = conform(options)
    assert not report.failures
    assert report.summary.known == failing.summary.failed
    assert ", but for 1 failure of skipped causes" in verdict_line(report)
    lines = known_lines(report)
    assert any(line.startswith(f"skipped cause {SIGNATURE}: ") for line in lines)
    assert lines[-1] == "note: --skip-cause: other matches no failure of this run"
    assert SIGNATURE in page(report)
    assert f"skipped cause: {SIGNATURE}" in junit_text(report)
    told = [change.text for change in changes(failing, report)]
    assert f"cause known now: {SIGNATURE}: --skip-cause" in told


def test_another_cause_still_fails(failing: Report, tmp_path: Path) -> None:
    report = conform(replace(WRONG, effort="smoke", output=tmp_path, skip_causes=("other",)))
    assert [f.signature for f in report.failures] == [f.signature for f in failing.failures]
