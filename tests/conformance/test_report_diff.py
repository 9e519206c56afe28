"""What is better and worse from one report to another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from reports import FAILED, FAILURE, PASSED, SKIPPED, report

from uop.conformance.judge import Verdict
from uop.conformance.report.diff import changes, notes

WORSE = replace(PASSED, id=FAILED.id, max_ulp=3.0)


def told(before: list[Verdict], after: list[Verdict], **fields: Any) -> tuple[list[str], list[str]]:
    """The lines on what is worse and on what is better."""
    found = changes(report(*before).to_json(), report(*after, **fields).to_json())
    return tuple([c.text for c in found if c.is_better is good] for good in (False, True))


def test_equal_reports_have_no_changes() -> None:
    assert told([PASSED, FAILED, SKIPPED], [SKIPPED, FAILED, PASSED]) == ([], [])


def test_a_cell_that_fails_is_worse_and_one_that_is_mended_better() -> None:
    cell = "op/EXP2/float32: passed, then failed (1 of 2 programs)"
    verdict = "verdict: conforms, then does not conform"
    cause = f"new cause: {FAILURE.signature}: {FAILURE.id}: {FAILURE.message}"
    assert told([PASSED], [PASSED, FAILED], failures=(FAILURE,)) == ([verdict, cell, cause], [])
    mended = ["verdict: does not conform, then conforms", cell_mended()]
    assert told([PASSED, FAILED], [PASSED]) == ([], mended)


def cell_mended() -> str:
    return "op/EXP2/float32: failed (1 of 2 programs), then passed"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ([PASSED], [WORSE], "op/EXP2/float32: largest error in ULP 1, then 3"),
        ([FAILED], [FAILED, replace(FAILED, id=PASSED.id)], "op/EXP2/float32: failed 1, then 2"),
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
    before = report(FAILED, failures=(FAILURE,)).to_json()
    found = changes(before, report(FAILED).to_json())
    assert [(c.is_better, c.text) for c in found] == [(True, f"cause gone: {FAILURE.signature}")]


def test_what_makes_reports_hard_to_compare_is_noted() -> None:
    a, b = report(PASSED).to_json(), report(PASSED, backend="other").to_json()
    assert notes(a, a) == []
    assert notes(a, b) == [
        "backend: some 1 device, then other 1 device",
        "backend: some, then other",
    ]
