"""Samples of the cases of a report: which ones, and what is said of those that cannot be run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reports import CRASHED, FAILED, PASSED, SKIPPED, report

from uop.conformance.checks import OptionError
from uop.conformance.judging.verdict import Status
from uop.conformance.report.sample import Again, judged_again, require_cases, sample

IDS = [f"op/NEG/int8/edges/{k}@2" for k in range(0, 40, 2)]
MANY = report(*(replace(PASSED, id=id) for id in IDS), FAILED, SKIPPED, CRASHED)


@pytest.mark.parametrize(
    ("count", "failed", "passed"), [(1, 0, 1), (2, 1, 1), (6, 2, 4), (100, 2, 20)]
)
def test_a_sample_holds_failures_and_is_spread_over_the_rest(
    count: int, failed: int, passed: int
) -> None:
    found = sample(MANY, count)
    assert list(found) == sorted(found)
    statuses = list(found.values())
    assert statuses.count(Status.PASSED) == passed
    assert len(statuses) == failed + passed
    assert set(found) <= {*IDS, FAILED.id, CRASHED.id}


def test_a_known_failure_holds_while_it_fails() -> None:
    assert Again(FAILED.id, Status.KNOWN, FAILED).holds
    assert not Again(FAILED.id, Status.KNOWN, replace(PASSED, id=FAILED.id)).holds
    assert not Again(FAILED.id, Status.PASSED, FAILED).holds


def test_a_sample_of_failures_alone() -> None:
    found = sample(report(FAILED, CRASHED), 1)
    assert len(found) == 1


def test_a_report_without_cases_has_none_to_judge_again() -> None:
    require_cases(MANY)
    with pytest.raises(OptionError, match="holds no case"):
        require_cases(report(SKIPPED))


def test_verdicts_hold_or_do_not_and_what_is_no_case_any_more_is_said() -> None:
    ids = ("op/NEG/int8/edges/0@2", "op/NEG/int8/shapes/0@2")
    right, lied = replace(PASSED, id=ids[0]), replace(FAILED, id=ids[1])
    made = report(right, lied, replace(PASSED, id="op/NEG/int8/gone/0@2"), backend="interpreter")
    found = {again.id: again for again in judged_again(made, 10)}
    assert [found[id].holds for id in ids] == [True, False]
    gone = found["op/NEG/int8/gone/0@2"]
    assert (gone.now, gone.why) == (None, "this suite has no case 'op/NEG/int8/gone/0@2'")
