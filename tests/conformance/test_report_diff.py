"""What is better and worse from one report to another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from reports import FAILED, FAILURE, PASSED, SKIPPED, report

from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.report.diff import Change, Turn, changes, notes
from uop.conformance.report.model import KnownFailure, Report
from uop.conformance.report.vote import polled

WORSE = replace(PASSED, id=FAILED.id, counts=replace(PASSED.counts, max_ulp=3.0))


def told(before: list[Verdict], after: list[Verdict], **fields: Any) -> tuple[list[str], list[str]]:
    """The lines on what is worse and on what is better."""
    found = changes(report(*before), report(*after, **fields))
    assert all(c.turn is not Turn.NEITHER for c in found)
    return tuple([c.text for c in found if c.turn is turn] for turn in (Turn.WORSE, Turn.BETTER))


def test_equal_reports_have_no_changes() -> None:
    assert told([PASSED, FAILED, SKIPPED], [SKIPPED, FAILED, PASSED]) == ([], [])


def test_a_cell_that_fails_is_worse_and_one_that_is_mended_better() -> None:
    cell = "op/EXP2/float32: passed, then failed (1 of 2 programs)"
    verdict = "verdict: conforms, then does not conform"
    cause = f"new cause: {FAILURE.signature}: {FAILURE.id}: {FAILURE.message}"
    assert told([PASSED], [PASSED, FAILED], failures=(FAILURE,)) == ([verdict, cause, cell], [])
    mended = ["verdict: does not conform, then conforms", cell_mended()]
    assert told([PASSED, FAILED], [PASSED]) == ([], mended)


def cell_mended() -> str:
    return "op/EXP2/float32: failed (1 of 2 programs), then passed"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ([PASSED], [WORSE], "op/EXP2/float32: largest error in ULP 1, then 3"),
        (
            [FAILED],
            [FAILED, replace(FAILED, id=PASSED.id)],
            "op/EXP2/float32: failed (1 of 1 program), then failed (2 of 2 programs)",
        ),
        ([PASSED, SKIPPED], [PASSED], "op/SIN/float16: skipped (no float16), then not run"),
        (
            [PASSED, replace(PASSED, id=SKIPPED.id)],
            [PASSED, SKIPPED],
            "op/SIN/float16: passed, then skipped (no float16)",
        ),
        (
            [PASSED],
            [PASSED, replace(SKIPPED, id=FAILED.id)],
            "op/EXP2/float32: skipped 0, then 1",
        ),
    ],
)
def test_what_is_worse_is_better_the_other_way_round(
    before: list[Verdict], after: list[Verdict], text: str
) -> None:
    worse, better = told(before, after)
    assert (worse, better) == ([text], [])
    assert len(told(after, before)[1]) == 1
    assert told(after, before)[0] == []


def test_a_cause_that_is_gone_is_better() -> None:
    before = report(FAILED, failures=(FAILURE,))
    found = changes(before, report(FAILED))
    assert [(c.turn, c.text) for c in found] == [(Turn.BETTER, f"cause gone: {FAILURE.signature}")]


def test_a_cause_that_is_shrunk_from_another_of_its_cases_is_the_same() -> None:
    again = replace(FAILED, id="op/EXP2/float16/edges/1@2")
    both = {"cases": (FAILED.id, again.id)}
    other = replace(FAILURE, id=again.id, signature="result EXP2 float16", dtypes=("float16",))
    before = report(FAILED, again, failures=(replace(FAILURE, **both),))
    assert not list(changes(before, report(FAILED, again, failures=(replace(other, **both),))))
    found = list(changes(before, report(FAILED, again, failures=(other,))))
    assert not found
    assert list(changes(report(FAILED, failures=(FAILURE,)), report(again, failures=(other,))))


LINE = KnownFailure(FAILURE.signature, "slow driver", "", "", "a.uop", (FAILED.id,), "known", "")
ACCEPTED = report(PASSED, replace(FAILED, status=Status.KNOWN), known=(LINE,))
OPEN = report(PASSED, FAILED, failures=(FAILURE,))
MENDED = report(PASSED, replace(PASSED, id=FAILED.id))
STALE = replace(LINE, state="fixed", stale="k.toml:5: remove this line", cases=())
EXPIRED = replace(LINE, state="expired", stale="k.toml:5: too late", cases=())
MESSAGE = f"{FAILURE.signature}: {FAILURE.id}: {FAILURE.message}"


@pytest.mark.parametrize(
    ("before", "after", "turn", "lines"),
    [
        (
            OPEN,
            ACCEPTED,
            Turn.NEITHER,
            [
                "verdict: does not conform, then conforms, but for 1 known failure",
                f"cause known now: {FAILURE.signature}: slow driver",
                "op/EXP2/float32: failed (1 of 2 programs), then known to fail (1 of 2 programs)",
            ],
        ),
        (
            ACCEPTED,
            OPEN,
            Turn.NEITHER,
            [
                "verdict: conforms, but for 1 known failure, then does not conform",
                f"cause no longer known: {MESSAGE}",
                "op/EXP2/float32: known to fail (1 of 2 programs), then failed (1 of 2 programs)",
            ],
        ),
        (
            ACCEPTED,
            MENDED,
            Turn.BETTER,
            [
                "verdict: conforms, but for 1 known failure, then conforms",
                "op/EXP2/float32: known to fail (1 of 2 programs), then passed",
            ],
        ),
        (
            ACCEPTED,
            report(PASSED, replace(PASSED, id=FAILED.id), known=(STALE,)),
            Turn.BETTER,
            [
                "verdict: conforms, but for 1 known failure, then does not conform",
                "op/EXP2/float32: known to fail (1 of 2 programs), then passed",
                f"known failure {FAILURE.signature}: known, then fixed",
            ],
        ),
        (
            MENDED,
            ACCEPTED,
            Turn.WORSE,
            [
                "verdict: conforms, then conforms, but for 1 known failure",
                "op/EXP2/float32: passed, then known to fail (1 of 2 programs)",
            ],
        ),
        (
            replace(OPEN, known=(EXPIRED,)),
            ACCEPTED,
            Turn.NEITHER,
            [
                "verdict: does not conform, then conforms, but for 1 known failure",
                f"cause known now: {FAILURE.signature}: slow driver",
                "op/EXP2/float32: failed (1 of 2 programs), then known to fail (1 of 2 programs)",
                f"known failure {FAILURE.signature}: expired, then known",
            ],
        ),
    ],
)
def test_a_failure_that_is_written_down_makes_nothing_better(
    before: Report, after: Report, turn: Turn, lines: list[str]
) -> None:
    found = changes(before, after)
    assert [(c.turn, c.text) for c in found] == [(turn, line) for line in lines]


def test_of_a_cell_what_fails_counts_known_or_not() -> None:
    known = replace(FAILED, status=Status.KNOWN)
    third = replace(FAILED, id=FAILED.id[:-1] + "2")
    before, after = report(FAILED, third), report(known, third)
    found = [c for c in changes(before, after) if "EXP2/" in c.text]
    told = "failed (2 of 2 programs), then failed (1 of 2 programs; 1 more known)"
    assert [(c.turn, c.text) for c in found] == [(Turn.NEITHER, f"op/EXP2/float32: {told}")]


def test_of_several_backends_each_is_compared_with_itself() -> None:
    a = polled([report(PASSED), report(FAILED, backend="b"), report(PASSED, backend="c")])
    b = polled([report(FAILED, backend="b"), report(FAILED)])
    assert [(c.turn, c.text) for c in changes(a, b)] == [
        (Turn.WORSE, "some: verdict: conforms, then does not conform"),
        (Turn.WORSE, "some: op/EXP2/float32: passed, then failed (1 of 1 program)"),
    ]
    assert "not the same other backends: b,c, then some" in notes(a, b)
    assert changes(a, report(PASSED, backend="d")) == []


def test_what_makes_reports_hard_to_compare_is_noted() -> None:
    a, b = report(PASSED), report(PASSED, backend="other")
    assert notes(a, a) == []
    assert notes(a, b) == [
        "not the same backend: some 1 device, then other 1 device",
        "not the same backend: some, then other",
    ]


def timed(*verdicts: Verdict, **fields: Any) -> Report:
    made = report(*verdicts, **fields)
    return replace(made, options=replace(made.options, seconds=60.0))


SIXTH = replace(SKIPPED, id="op/EXP2/float32/edges/6@2")


@pytest.mark.parametrize(
    "more",
    [
        (SIXTH,),
        (SIXTH, replace(PASSED, id="op/SIN/float16/edges/7@2")),
        (
            replace(
                PASSED, id="op/EXP2/float32/edges/8@2", counts=replace(PASSED.counts, max_ulp=9.0)
            ),
            SKIPPED,
        ),
    ],
    ids=["a skip", "another op", "a larger error"],
)
def test_what_only_the_faster_of_two_timed_runs_has_reached_is_nothing(
    more: tuple[Verdict, ...],
) -> None:
    slow, fast = timed(PASSED), timed(PASSED, *more)
    assert changes(slow, fast) == changes(fast, slow) == []
    said = f"the 1 case that both runs judged; the first judged 0 more, the second {len(more)}"
    assert notes(slow, fast) == [f"compared on {said}"]
    assert changes(report(PASSED), report(PASSED, *more))


def test_a_failure_counts_where_both_runs_have_reached_its_case() -> None:
    cause = replace(FAILURE, cases=(FAILED.id,))
    fast = timed(PASSED, FAILED, failures=(cause,))
    assert changes(timed(PASSED), fast) == changes(fast, timed(PASSED)) == []
    passed = timed(PASSED, replace(PASSED, id=FAILED.id))
    found = [(c.turn, c.text) for c in changes(passed, fast)]
    assert found == [
        (Turn.WORSE, "verdict: conforms, then does not conform"),
        (Turn.WORSE, f"new cause: {MESSAGE}"),
        (Turn.WORSE, "op/EXP2/float32: passed, then failed (1 of 2 programs)"),
    ]
    assert {c.turn for c in changes(fast, passed)} == {Turn.BETTER}


def test_a_timed_run_that_found_no_time_for_a_cause_has_the_same_failure() -> None:
    cause = replace(FAILURE, cases=(FAILED.id,))
    assert changes(timed(FAILED), timed(FAILED, failures=(cause,))) == []


def test_a_case_that_both_reach_and_the_second_skips_is_worse() -> None:
    other = replace(PASSED, id=FAILED.id)
    (change,) = changes(timed(PASSED, other), timed(replace(SKIPPED, id=PASSED.id), other))
    assert change == Change(Turn.WORSE, "op/EXP2/float32: skipped 0, then 1")


def test_timed_runs_without_a_list_of_cases_are_compared_by_their_failures() -> None:
    def listless(one: Report) -> Report:
        return replace(one, cases={})

    slow, fast = listless(timed(PASSED)), listless(timed(PASSED, SIXTH, SKIPPED))
    assert changes(slow, fast) == changes(fast, slow) == []
    found = changes(slow, listless(timed(PASSED, FAILED, failures=(FAILURE,))))
    assert [c.turn for c in found] == [Turn.WORSE] * 3


def test_an_inconclusive_timed_run_is_no_worse_than_one_that_conforms() -> None:
    open_one = timed(PASSED, missing=("EXP2 float16: no time",))
    assert changes(timed(PASSED), open_one) == []
