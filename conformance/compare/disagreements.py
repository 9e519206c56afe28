"""The programs on which backends differ: what each gives, what is accepted, how they vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from uop.conformance.judging.verdict import Status
from uop.conformance.report.model import Failure, Report, VotedCase, counted, digest_of
from uop.conformance.report.vote import AS_EXPECTED, counted_votes, results_in

MOST = 200
"""The most programs that run on all backends and that a page shows, the most serious ones."""
NOT_RUN, NOT_SUPPORTED = "not run", "not supported"
FAILING = (Status.FAILED, Status.CRASHED, Status.KNOWN)
ORDER = (*FAILING, Status.PASSED, Status.SKIPPED, None)
"""The statuses of a program in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a backend gives on a program; the status is None where that is not known."""

    status: Status | None
    gives: str

    @property
    def fails(self) -> bool:
        return self.status in FAILING

    @property
    def says(self) -> str:
        """The status in a word, unless what it gives says all."""
        match self.status:
            case None:
                return NOT_RUN
            case Status.PASSED:
                return f"{self.gives} ({AS_EXPECTED})" if self.gives else AS_EXPECTED
            case Status.SKIPPED:
                return f"{NOT_SUPPORTED}: {self.gives}" if self.gives else NOT_SUPPORTED
        return self.gives or self.status


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A program that fails on a backend, the first that showed it, with the answers of all.

    `causes` has by backend the cause in its report, where it is this program or one like it.
    """

    backend: str
    failure: Failure
    causes: Mapping[str, Failure]
    answers: Mapping[str, Answer]

    @property
    def fails(self) -> list[str]:
        """The backends that fail with it."""
        return [name for name, answer in self.answers.items() if answer.fails]

    @property
    def groups(self) -> dict[Answer, list[str]]:
        """The backends by what they give, those that fail first, without reasons of skips."""
        ordered = sorted(self.answers.items(), key=lambda item: ORDER.index(item[1].status))
        found: dict[Answer, list[str]] = {}
        for name, answer in ordered:
            is_skipped = answer.status is Status.SKIPPED
            found.setdefault(replace(answer, gives="") if is_skipped else answer, []).append(name)
        return found

    @property
    def vote(self) -> VotedCase:
        judged = {n: a for n, a in self.answers.items() if a.status not in (None, Status.SKIPPED)}
        says = {name: answer.says for name, answer in self.answers.items()}
        given = {n: a.gives if a.fails else AS_EXPECTED for n, a in judged.items()}
        return counted_votes(self.failure.id, says, given)

    @property
    def outcome(self) -> str:
        """How many fail, and what the votes say, in which the interpreter has one."""
        vote, statuses = self.vote, [answer.status for answer in self.answers.values()]
        judged = len(self.fails) + statuses.count(Status.PASSED)
        odd = f": {', '.join(vote.odd)}" if vote.odd else ""
        return f"{len(self.fails)} of {counted(judged, 'backend')} fail; {vote.verdict}{odd}."

    @property
    def inputs(self) -> str:
        """The operands of its first wrong element; empty where the program alone shows them."""
        return ", ".join(self.failure.values[0].inputs) if self.failure.values else ""

    @property
    def accepted(self) -> str:
        """What is accepted there; empty where no value is wrong."""
        return self.failure.values[0].accepted if self.failure.values else ""


def disagreements(every: Sequence[Report]) -> list[Disagreement]:
    """The causes of all backends, those of one signature or case together, the worst
    first.
    """
    causes = [(report.options.backend, cause) for report in every for cause in report.failures]
    causes.sort(key=lambda pair: pair[1].rank)
    groups: list[dict[str, Failure]] = []
    for name, cause in causes:
        alike = (g for g in groups if name not in g and _is_alike(next(iter(g.values())), cause))
        group = next(alike, None)
        if group is None:
            groups.append(group := {})
        group[name] = cause
    return [_disagreement(every, group) for group in groups]


def fail_somewhere(rows: Sequence[Disagreement]) -> str:
    """How many they are, as a heading."""
    return (
        f"{counted(len(rows), 'program')} {'fails' if len(rows) == 1 else 'fail'} on some of them"
    )


def _is_alike(first: Failure, other: Failure) -> bool:
    """Whether two causes of different backends look like one: by signature, or on one case."""
    on_one_case = first.id in (other.id, *other.cases) or other.id in first.cases
    return first.signature == other.signature or (first.ops == other.ops and on_one_case)


def _disagreement(every: Sequence[Report], group: Mapping[str, Failure]) -> Disagreement:
    name, first = next(iter(group.items()))
    answers = {r.options.backend: _answer(r, first, group.get(r.options.backend)) for r in every}
    return Disagreement(name, first, group, answers)


def _answer(report: Report, first: Failure, own: Failure | None) -> Answer:
    """What a backend gives on a program: as it was run there, else by its own report."""
    digest = digest_of(first.text)
    for one in report.tried or ():
        if one.program == digest:
            return Answer(one.status, one.gives)
    if own is not None:
        given = own.values[0].got if own.values else own.message.partition("\n")[0]
        return Answer(Status.FAILED, given if own is first else f"{given}, on {own.id}")
    verdict = results_in([report], first.id)[report.options.backend]
    return Answer(verdict.status if verdict else None, "")
