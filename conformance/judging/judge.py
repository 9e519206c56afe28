"""Judges cases: sends them to a backend as text, computes what is accepted meanwhile, compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from uop.conformance.backends.attempt import attempt
from uop.conformance.backends.interpreter import interpret
from uop.conformance.judging.compare import element_text, opened
from uop.conformance.judging.expected import accepted_on, may_end, truncates
from uop.conformance.judging.lowering import Submission, submission_of
from uop.conformance.judging.verdict import (
    MAY_END,
    NOT_CHARGED,
    SETTLED,
    AllSets,
    Fault,
    Status,
    Verdict,
    skipped,
    together,
    verdict_of,
)
from uop.conformance.protocol.types import Outcome, Problem, Program
from uop.conformance.suite.case import Case, InvalidCase
from uop.conformance.workers.transport import Session
from uop.interpreter.accepted.result import Accepted
from uop.spec.errors import LabelledError, UndefinedError, UnsupportedError, UopError
from uop.spec.latitude import STRICT, Profile

CONFIRMED = 8
"""Failures of one call that are run again alone; where more fail, batching is not the cause."""
ALONE_PASSES = "only together with other programs: "


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A case on its way, and how."""

    case: Case | InvalidCase
    submission: Submission

    @property
    def reason(self) -> str:
        return self.submission.reason


class Judge:
    """Judges cases by one profile on one session."""

    def __init__(self, session: Session, profile: Profile) -> None:
        self.session, self.profile = session, profile

    def judge(self, cases: Sequence[Case | InvalidCase]) -> list[Verdict]:
        """One verdict per case, in order, on its twins as well."""
        programs = [case.programs if isinstance(case, Case) else (case,) for case in cases]
        found = iter(self._judge(list(chain.from_iterable(programs))))
        return [
            self._together(case, [next(found) for _ in p])
            for case, p in zip(cases, programs, strict=True)
        ]

    def _together(self, case: Case | InvalidCase, verdicts: Sequence[Verdict]) -> Verdict:
        """One verdict on a case and its twins; where only a twin fails, what both give is told."""
        verdict = together(verdicts)
        fault = verdict.fault
        if isinstance(case, InvalidCase) or fault is None or not fault.program:
            return verdict
        message = f"{case.twins[fault.program - 1].name}: {fault.message}"
        if fault.element is not None and verdicts[0].status is Status.PASSED:
            message += self._otherwise(case, fault, fault.element)
        return replace(verdict, fault=replace(fault, message=message))

    def _otherwise(self, case: Case, fault: Fault, element: int) -> str:
        """What the case itself gives where a twin of it fails."""
        submission = self._prepare(case).submission
        given = submission.outcome(self._outcomes(submission.programs))
        if isinstance(given, Problem) or fault.output >= len(given.batches[fault.batch]):
            return ""
        output = given.batches[fault.batch][fault.output]
        if element >= output.size:
            return ""
        dtype = self.accepted(case)[fault.batch][fault.output].dtype
        return f"; otherwise it is {element_text(dtype, output, element)}"

    def _judge(self, cases: Sequence[Case | InvalidCase]) -> list[Verdict]:
        """One verdict per program. A failure is confirmed by running the program alone."""
        prepared = [self._prepare(case) for case in cases]
        asked = [p for p in prepared if not p.reason]
        verdicts: dict[Prepared, Verdict] = {}
        for some in self._sent_together(asked):
            found = dict(zip(some, self._judged(some), strict=True))
            failed = [p for p, verdict in found.items() if verdict.status is Status.FAILED]
            if len(some) > 1:
                found |= {p: self._confirmed(p, found[p]) for p in failed[:CONFIRMED]}
            verdicts |= found
        return [verdicts[p] if p in verdicts else skipped(p.case, p.reason) for p in prepared]

    def _sent_together(self, asked: Sequence[Prepared]) -> Iterator[list[Prepared]]:
        """As many cases at a time as their programs fit into one call."""
        some: list[Prepared] = []
        room = size = self.session.hello.limits.programs
        for p in asked:
            count = len(p.submission.programs)
            if some and count > room:
                yield some
                some, room = [], size
            some.append(p)
            room -= count
        if some:
            yield some

    def _outcomes(
        self, programs: Sequence[Program], meanwhile: Callable[[], None] = lambda: None
    ) -> list[Outcome]:
        """What the backend gives; `meanwhile` is called while it runs the first of them."""
        outcomes: list[Outcome] = []
        size = self.session.hello.limits.programs
        for start in range(0, len(programs), size):
            self.session.submit(programs[start : start + size])
            if not start:
                meanwhile()
            outcomes += self.session.collect()
        return outcomes

    def accepted(self, case: Case | InvalidCase) -> list[tuple[Accepted, ...]]:
        """What each batch of a case may give. UndefinedError for a program without meaning."""
        return [] if isinstance(case, InvalidCase) else _sets(case, self.demanded(case))

    def demanded(self, case: Case | InvalidCase) -> Profile:
        """The profile by which a case is judged."""
        return self.profile

    def explain(self, case: Case) -> str:
        """What the backend shows of how it runs a case that it fails, as lines of text."""
        submission = submission_of(case, self.session.hello)
        sets = self.accepted(case)

        def is_right(outcome: Outcome) -> bool:
            return verdict_of(case, sets, submission.outcome([outcome])).status is Status.PASSED

        is_one = len(submission.programs) == 1
        if submission.reason or not is_one:
            return ""
        return self.session.explain(submission.program, is_right)

    def _judged(self, together: Sequence[Prepared]) -> list[Verdict]:
        """Judge programs sent together; while the backend runs them, compute what they may give."""
        accepted: list[AllSets | UopError] = []

        def compute() -> None:
            accepted.extend(self._accepted(p.case) for p in together)

        programs = [program for p in together for program in p.submission.programs]
        outcomes = iter(self._outcomes(programs, compute))
        given = [list(islice(outcomes, len(p.submission.programs))) for p in together]
        return [
            skipped(p.case, self.not_judged(sets))
            if isinstance(sets, UopError)
            else self._verdict(p, sets, found)
            for p, sets, found in zip(together, accepted, given, strict=True)
        ]

    def _accepted(self, case: Case | InvalidCase) -> AllSets | UopError:
        """What a case may give, or why that is not known."""
        try:
            return self.accepted(case)
        except (UndefinedError, UnsupportedError) as error:
            return error

    def not_judged(self, error: UopError) -> str:
        """Why, as one reason for many cases; the line that asked for the sets is one of ours."""
        unknown = isinstance(error, UnsupportedError)
        said = str(error)
        if isinstance(error, LabelledError) and error.label:
            said = f"{error.label}: {error.title}"
        return f"{'nothing says what is accepted' if unknown else 'no meaning'}: {said}"

    def _confirmed(self, p: Prepared, verdict: Verdict) -> Verdict:
        alone = self._judged([p])[0]
        if alone.status is not Status.PASSED or verdict.fault is None:
            return alone
        message = ALONE_PASSES + verdict.fault.message
        return replace(verdict, fault=replace(verdict.fault, message=message))

    def _prepare(self, case: Case | InvalidCase) -> Prepared:
        submission = submission_of(case, self.session.hello)
        if isinstance(case, Case) and not submission.reason:
            submission = replace(submission, reason=self._held_back(case))
        return Prepared(case, submission)

    def _held_back(self, case: Case) -> str:
        """Why a backend is not sent what it takes: by the profile it may end it, or mean nothing.

        By the strict one every case has a meaning; a remainder that is truncated is no index.
        """
        profile = self.demanded(case)
        if may_end(case.root, [batch.inputs for batch in case.batches], profile):
            return MAY_END
        if not truncates(case.root, profile):
            return ""
        try:
            self.accepted(case)
        except (UndefinedError, UnsupportedError) as error:
            return self.not_judged(error)
        return ""

    def _verdict(self, p: Prepared, accepted: AllSets, found: Sequence[Outcome]) -> Verdict:
        """The verdict on an outcome, but for what the program that we made of it may give."""
        given = p.submission.outcome(found)
        verdict, sent = verdict_of(p.case, accepted, given), self._sent_instead(p)
        if verdict.fault is None or sent is None:
            return verdict
        why = NOT_CHARGED if self.demanded(p.case) == STRICT else SETTLED
        return self._charged(p, sent, accepted, given, verdict) or skipped(p.case, why)

    def _sent_instead(self, p: Prepared) -> Case | None:
        """What we made of a case and sent: kernels, or the same in other words.

        Kernels know no PAD and hold what a CONST came to; a CMPGE in other words is true on NaN.
        Where the profile is strict, other words mean the same, which is ours to get right.
        """
        case, lowered = p.case, p.submission.root
        if isinstance(case, InvalidCase):
            return None
        if lowered is not None:
            return Case(case.id, lowered, p.submission.batches)
        if case.source is None or self.demanded(case) == STRICT:
            return None
        return Case(case.id, case.root, case.batches)

    def _charged(
        self, p: Prepared, sent: Case, accepted: AllSets, given: Outcome, verdict: Verdict
    ) -> Verdict | None:
        """Of a failure what is left where by the profile that which was sent may not give it."""
        try:
            sets = p.submission.of_case(_sets(sent, self.demanded(p.case)))
        except UndefinedError:
            return None
        except UnsupportedError:
            # Nothing says what it may give; whether the reference gives the same wrong can be seen.
            ours = p.submission.outcome([attempt(lambda: interpret(p.submission.program))])
            return verdict if verdict_of(p.case, accepted, ours).status is Status.PASSED else None
        if isinstance(given, Problem) or verdict.fault is None or verdict.fault.element is None:
            return verdict
        batches = zip(accepted, sets, given.batches, strict=True)
        left = verdict_of(p.case, [tuple(map(opened, *batch)) for batch in batches], given)
        return None if left.status is Status.PASSED else left


def _sets(case: Case, profile: Profile) -> list[tuple[Accepted, ...]]:
    return [accepted_on(case, batch, profile) for batch in range(len(case.batches))]
