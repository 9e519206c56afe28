"""Votes: who is alone on which case, and when the interpreter is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reports import CRASHED, FAILED, PASSED, SKIPPED, report

from uop.conformance.judging.verdict import Verdict
from uop.conformance.report.format import as_json
from uop.conformance.report.model import VoteOutcome
from uop.conformance.report.vote import polled, results_in, vote_lines, voted

ID = FAILED.id
RIGHT = replace(PASSED, id=ID)
LEFT_OUT = replace(SKIPPED, id=ID)
DEAD = replace(CRASHED, id=ID)


def wrong(got: str) -> Verdict:
    assert FAILED.failure is not None
    element = replace(FAILED.failure.values[0], got=got)
    return replace(FAILED, failure=replace(FAILED.failure, values=(element,)))


ONE, TWO = wrong("1"), wrong("2")


@pytest.mark.parametrize(
    ("verdicts", "outcome", "odd"),
    [
        ([ONE, RIGHT], VoteOutcome.ODD, "a"),
        ([RIGHT, DEAD, RIGHT], VoteOutcome.ODD, "b"),
        ([ONE, ONE, RIGHT, RIGHT], VoteOutcome.ODD, "ab"),
        ([ONE, TWO, RIGHT, RIGHT], VoteOutcome.ODD, "ab"),
        ([ONE, ONE], VoteOutcome.SUSPECT, ""),
        ([ONE, ONE, LEFT_OUT], VoteOutcome.SUSPECT, ""),
        ([ONE, TWO, ONE, ONE], VoteOutcome.SUSPECT, "b"),
        ([ONE, RIGHT, ONE, ONE], VoteOutcome.SUSPECT, "b"),
        ([ONE], VoteOutcome.NONE, "a"),
        ([ONE, LEFT_OUT], VoteOutcome.NONE, "a"),
        ([ONE, TWO], VoteOutcome.NONE, "ab"),
        ([ONE, ONE, RIGHT], VoteOutcome.NONE, "ab"),
    ],
)
def test_the_votes_on_a_case(verdicts: list[Verdict], outcome: VoteOutcome, odd: str) -> None:
    reports = [report(v, backend=name) for name, v in zip("abcd", verdicts, strict=False)]
    found = voted(ID, results_in(reports, ID))
    assert (found.verdict, found.odd) == (outcome, tuple(odd))


def test_the_interpreter_has_one_vote_itself_judged_or_not() -> None:
    reports = [report(RIGHT, backend="interpreter"), report(ONE, backend="a")]
    assert voted(ID, results_in(reports, ID)).verdict is VoteOutcome.NONE
    reports.append(report(RIGHT, backend="b"))
    assert voted(ID, results_in(reports, ID)).verdict is VoteOutcome.ODD


def test_a_poll_tells_every_case_that_failed_somewhere() -> None:
    found = polled([report(RIGHT, PASSED), report(ONE, backend="b")], ["c: no device"])
    vote = found.vote
    assert vote is not None
    assert [case.id for case in vote.cases] == [ID]
    assert vote.cases[0].says == {"some": "accepted", "b": "output 0[] is 1, not 0x1p+0"}
    assert vote_lines(vote) == [
        "not started: c: no device",
        "odd one out on op/EXP2/float32: b (1 case), such as "
        f"{ID}: some: accepted; b: output 0[] is 1, not 0x1p+0",
    ]
    written = as_json(found)
    assert [one["options"]["backend"] for one in written["others"]] == ["b"]
    assert written["vote"]["cases"][0]["verdict"] == "odd one out"


def test_a_suspected_interpreter_is_told_first() -> None:
    other = replace(PASSED, id="op/ADD/int8/edges/0@2")
    verdicts = [(ONE, replace(DEAD, id=other.id)), (ONE, other)]
    found = polled([report(*v, backend=name) for name, v in zip("ab", verdicts, strict=True)])
    assert found.vote is not None
    first, second = vote_lines(found.vote)
    assert first.startswith("interpreter suspect on op/EXP2/float32 (1 case)")
    assert second.startswith("odd one out on op/ADD/int8: a")


def test_without_failures_there_is_nothing_to_vote_on() -> None:
    found = polled([report(PASSED), report(PASSED, backend="b")])
    assert found.vote is not None
    assert vote_lines(found.vote) == ["no case failed anywhere: nothing to vote on"]
