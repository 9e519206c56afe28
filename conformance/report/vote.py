"""Compares the verdicts of several backends on the same cases by majority vote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from uop.conformance.backends import INTERPRETER
from uop.conformance.judging.verdict import CaseFailure, Status, Verdict
from uop.conformance.report.model import Report, Vote, VotedCase, VoteOutcome, counted
from uop.conformance.report.tally import STATUSES, group_name, place_of
from uop.conformance.suite.case import CaseId

AS_EXPECTED = "accepted"
"""The answer of a backend whose result is accepted."""
MOST_LINES = 12
GRAVITY = list(VoteOutcome)
"""Suspicions against the interpreter come first: it may be the one that is wrong."""
Results: TypeAlias = Mapping[str, Verdict | None]
"""By backend the verdict on a case; None where it was not judged."""


def polled(reports: Sequence[Report], missing: Sequence[str] = ()) -> Report:
    """Combine the reports of runs over the same cases; all that failed on one are voted on."""
    failed = {id for report in reports for id in report.case_failures}
    return combined(reports, {id: results_in(reports, id) for id in sorted(failed)}, missing)


def combined(
    reports: Sequence[Report], results: Mapping[str, Results], missing: Sequence[str] = ()
) -> Report:
    """The first report, with the others and the votes on cases, by the results of each."""
    return with_votes(reports, [voted(id, of) for id, of in results.items()], missing)


def with_votes(
    reports: Sequence[Report], cases: Iterable[VotedCase], missing: Sequence[str]
) -> Report:
    """The first report, with the others and these votes."""
    first, *others = reports
    names = tuple(report.options.backend for report in reports)
    return replace(first, others=tuple(others), vote=Vote(names, tuple(missing), tuple(cases)))


def results_in(reports: Sequence[Report], id: str) -> dict[str, Verdict | None]:
    """The results of a case in reports of this process."""
    return {report.options.backend: _result(report, id) for report in reports}


def voted(id: str, results: Results) -> VotedCase:
    """Count the votes on a case by verdicts. The interpreter always has one vote."""
    says = {name: _said(verdict) for name, verdict in results.items()}
    answers = {
        name: _answer(verdict.failure)
        for name, verdict in results.items()
        if verdict is not None and verdict.status is not Status.SKIPPED
    }
    return counted_votes(id, says, answers)


def counted_votes(id: str, says: Mapping[str, str], answers: Mapping[str, str]) -> VotedCase:
    """Count the answers of the backends that were judged; AS_EXPECTED is the interpreter's."""
    votes = Counter({**{INTERPRETER: AS_EXPECTED}, **answers}.values())
    against = [name for name, answer in answers.items() if answer != AS_EXPECTED]
    winner, most = votes.most_common(1)[0]
    if 2 * most <= votes.total():
        return VotedCase(id, says, VoteOutcome.NONE, tuple(against))
    if winner == AS_EXPECTED:
        return VotedCase(id, says, VoteOutcome.ODD, tuple(against))
    others = tuple(name for name, answer in answers.items() if answer != winner)
    return VotedCase(id, says, VoteOutcome.SUSPECT, others)


def vote_lines(vote: Vote) -> list[str]:
    """The votes as text: a line per outcome and minority, with an example."""
    lines = [f"not started: {why}" for why in vote.missing]
    if len(vote.backends) < 2:
        return lines
    groups: dict[str, list[VotedCase]] = {}
    for case in vote.cases:
        groups.setdefault(_head(case), []).append(case)
    if not groups:
        return [*lines, "no case failed anywhere: nothing to vote on"]
    order = sorted(groups.items(), key=lambda item: (GRAVITY.index(item[1][0].verdict), item[0]))
    for head, (first, *others) in order[:MOST_LINES]:
        answers = "; ".join(f"{name}: {text}" for name, text in first.says.items())
        number = counted(1 + len(others), "case")
        lines.append(f"{head} ({number}), such as {first.id}: {answers}")
    more = len(order) - MOST_LINES
    return [*lines, f"... and {more} more"] if more > 0 else lines


def _head(case: VotedCase) -> str:
    about = "/".join(case.id.split("/")[:3])
    names = ", ".join(case.odd)
    match case.verdict:
        case VoteOutcome.SUSPECT:
            return f"interpreter suspect on {about}" + (f", with {names}" if names else "")
        case VoteOutcome.ODD:
            return f"odd one out on {about}: {names}"
    return f"no majority on {about}, against the interpreter: {names}"


def _result(report: Report, id: str) -> Verdict | None:
    """The status of a case and its failure; None if it was not run."""
    case, failure = CaseId.parse(id), report.case_failures.get(id)
    key, place = place_of(group_name(case), case.index)
    mark = report.cases.get(key, "")[place : place + 1]
    status = STATUSES.get(mark, None if failure is None else Status.FAILED)
    return None if status is None else Verdict(id, status, failure=failure)


def _answer(failure: CaseFailure | None) -> str:
    """The answer to count: for a wrong result its first wrong element, else the message."""
    if failure is None:
        return AS_EXPECTED
    first = failure.values[0] if failure.values else None
    return f"{failure.batch} {first.place} {first.got}" if first else _wrong(failure)


def _said(verdict: Verdict | None) -> str:
    if verdict is not None and verdict.failure is not None:
        return _wrong(verdict.failure)
    status = None if verdict is None else verdict.status
    return AS_EXPECTED if status is Status.PASSED else str(status or "not run")


def _wrong(failure: CaseFailure) -> str:
    if not failure.values:
        return failure.message.partition("\n")[0]
    first = failure.values[0]
    return f"{first.place} is {first.got}, not {first.accepted}"
