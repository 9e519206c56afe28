"""The verdicts of several backends on the same cases: who is the odd one out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from uop.conformance.judging.verdict import Fault, Status
from uop.conformance.report import Report

INTERPRETER = "interpreter"
AS_EXPECTED = "accepted"
"""The answer of a backend that gives what the interpreter accepts."""
MOST_LINES = 12


class Outcome(StrEnum):
    """What the votes on a case say."""

    SUSPECT = "interpreter suspect"
    ODD = "odd one out"
    NONE = "no majority"


@dataclass(frozen=True, slots=True)
class VotedCase:
    """A case that some backend failed: what each one says, and who is alone with it."""

    id: str
    says: Mapping[str, str]
    verdict: Outcome
    odd: tuple[str, ...]

    def line(self) -> str:
        said = "; ".join(f"{name}: {text}" for name, text in self.says.items())
        return f"{self.id}: {said}"


@dataclass(frozen=True, eq=False)
class Poll:
    """The reports on several backends, the cases equal; `missing` could not be started, and why."""

    reports: tuple[Report, ...]
    missing: tuple[str, ...] = ()
    interrupted: bool = False
    """Whether one was not judged to the end, nor those behind it."""

    @cached_property
    def cases(self) -> tuple[VotedCase, ...]:
        """Every case that failed somewhere, by id."""
        failed = {id for report in self.reports for id in report.tally.faults}
        return tuple(voted(id, self.reports) for id in sorted(failed))

    def to_json(self) -> dict[str, Any]:
        """The report on the first, with those on the others and the votes."""
        first, *others = (report.to_json() for report in self.reports)
        vote = {
            "backends": [name_of(report) for report in self.reports],
            "missing": list(self.missing),
            "cases": [asdict(case) for case in self.cases],
        }
        return {**first, "others": others, "vote": vote}


def voted(id: str, reports: Sequence[Report]) -> VotedCase:
    """Count the votes on a case. The interpreter has one, itself among the backends or not."""
    says = {name_of(r): _said(r, id) for r in reports}
    answers = {name_of(r): _answer(r, id) for r in reports if _has_judged(r, id)}
    votes = Counter({**{INTERPRETER: AS_EXPECTED}, **answers}.values())
    against = [name for name, answer in answers.items() if answer != AS_EXPECTED]
    winner, most = votes.most_common(1)[0]
    if 2 * most <= votes.total():
        return VotedCase(id, says, Outcome.NONE, tuple(against))
    if winner == AS_EXPECTED:
        return VotedCase(id, says, Outcome.ODD, tuple(against))
    others = tuple(name for name, answer in answers.items() if answer != winner)
    return VotedCase(id, says, Outcome.SUSPECT, others)


def name_of(report: Report) -> str:
    """The backend as it was named on the command line."""
    return str(report.options["backend"])


def vote_lines(poll: Poll) -> list[str]:
    """The votes for a reader: a line per outcome and odd one, with one of the cases."""
    lines = [f"not started: {why}" for why in poll.missing]
    if len(poll.reports) < 2:
        return lines
    groups: dict[str, list[VotedCase]] = {}
    for case in poll.cases:
        groups.setdefault(_head(case), []).append(case)
    if not groups:
        return [*lines, "no case failed anywhere: nothing to vote on"]
    # A reader wants to know first that the judge may be wrong.
    order = sorted(groups.items(), key=lambda item: (_gravity(item[1][0]), item[0]))
    for head, cases in order[:MOST_LINES]:
        lines.append(f"{head} ({len(cases):,} cases), such as {cases[0].line()}")
    more = len(order) - MOST_LINES
    return [*lines, f"... and {more} more"] if more > 0 else lines


def _gravity(case: VotedCase) -> int:
    return list(Outcome).index(case.verdict)


def _head(case: VotedCase) -> str:
    about = "/".join(case.id.split("/")[:3])
    names = ", ".join(case.odd)
    match case.verdict:
        case Outcome.SUSPECT:
            return f"interpreter suspect on {about}" + (f", with {names}" if names else "")
        case Outcome.ODD:
            return f"odd one out on {about}: {names}"
    return f"no majority on {about}, against the interpreter: {names}"


def _has_judged(report: Report, id: str) -> bool:
    return report.tally.status(id) not in (None, Status.SKIPPED)


def _answer(report: Report, id: str) -> str:
    """What equal backends say equally: of a wrong result the first element that is wrong."""
    fault = report.tally.faults.get(id)
    if fault is None:
        return AS_EXPECTED
    first = fault.values[0] if fault.values else None
    return f"{fault.batch} {first.place} {first.got}" if first else _wrong(fault)


def _said(report: Report, id: str) -> str:
    fault = report.tally.faults.get(id)
    if fault is not None:
        return _wrong(fault)
    status = report.tally.status(id)
    return AS_EXPECTED if status is Status.PASSED else str(status or "not run")


def _wrong(fault: Fault) -> str:
    if not fault.values:
        return fault.message.partition("\n")[0]
    first = fault.values[0]
    return f"{first.place} is {first.got}, not {first.accepted}"
