"""Judges cases: sends them to a backend, computes the accepted sets meanwhile, and compares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from uop.conformance.backends.interpreter import is_sharded, outcome_of
from uop.conformance.judging.compare import element_text, opened
from uop.conformance.judging.expected import accepted_on, may_end, reference_on, truncates
from uop.conformance.judging.lowering import Submission, left_out, submission_of
from uop.conformance.judging.verdict import (
    MAY_END,
    AllSets,
    CaseFailure,
    Status,
    Verdict,
    not_judged,
    skipped,
    together,
    verdict_of,
)
from uop.conformance.protocol.types import Outcome, Outputs, Problem, Program
from uop.conformance.suite.case import LEVELS, OWN, Case, InvalidCase
from uop.conformance.suite.vocabulary import Skips
from uop.conformance.workers.again import classes_beside, with_ordinary_data
from uop.conformance.workers.transport import Session
from uop.interpreter.footprint import SMALL, at_most
from uop.spec.errors import LabelledError, UndefinedError, UnsupportedError, UopError
from uop.spec.latitude import STRICT, Profile

CONFIRMED = 8
"""Failures of one call that run again alone; where more fail, batching is not the cause."""
MEASURED_ALWAYS = frozenset({"op", OWN})
"""The levels whose cases all have their accepted sets computed."""
MEASURED = 16
"""Of other cases one of so many, by id: the share of constrained elements is that of a sample."""
SENT = 8
"""Where the interpreter is judged, it would evaluate most programs as the judge does. It gets one
of so many of these, by id.
"""
ALONE_PASSES = "only together with other programs: "
NOT_CHARGED = "our lowering changed it: what was sent may give this"
SETTLED = "in kernels of ours, or in other words, it settles otherwise what the profile is about"


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A case and the programs that the backend gets for it."""

    case: Case | InvalidCase
    submission: Submission


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The reference of a case by batch and output, without the sets around it."""

    batches: AllSets


class Judge:
    """Judges cases by one profile on one session."""

    def __init__(self, session: Session, profile: Profile) -> None:
        self.session, self.profile = session, profile
        self.interpreter: Session | None = None
        """The session, where its backend is the interpreter that gives the reference."""
        self.skips = Skips()
        self.fired: Counter[str] = Counter()
        """For each rule of the backend the number of programs it fired in."""

    def judge(self, cases: Sequence[Case | InvalidCase]) -> list[Verdict]:
        """One verdict per case, in order; a case is judged together with its twins.

        What a program may need does not depend on the memory of this machine.
        """
        programs = [case.programs if isinstance(case, Case) else (case,) for case in cases]
        with at_most(SMALL):
            verdicts = iter(self._judge(list(chain.from_iterable(programs))))
        return [
            self._combined(case, list(islice(verdicts, len(p))))
            for case, p in zip(cases, programs, strict=True)
        ]

    def _combined(self, case: Case | InvalidCase, verdicts: Sequence[Verdict]) -> Verdict:
        """Combine the verdicts on a case and its twins; a failure of a twin shows both results."""
        verdict = together(verdicts)
        failure = verdict.failure
        if isinstance(case, InvalidCase) or failure is None or not failure.program:
            return verdict
        message = f"{case.twins[failure.program - 1].name}: {failure.message}"
        if failure.element is not None and verdicts[0].status is Status.PASSED:
            message += self._result_of_case(case, failure, failure.element)
        return replace(verdict, failure=replace(failure, message=message))

    def _result_of_case(self, case: Case, failure: CaseFailure, element: int) -> str:
        """The element of the case itself that its twin gets wrong, as text."""
        submission = submission_of(case, self.session.hello)
        outcome = submission.outcome(self._outcomes(submission.programs))
        if isinstance(outcome, Problem) or failure.output >= len(outcome.batches[failure.batch]):
            return ""
        output = outcome.batches[failure.batch][failure.output]
        if element >= output.size:
            return ""
        dtype = self.accepted(case)[failure.batch][failure.output].dtype
        return f"; otherwise it is {element_text(dtype, output, element)}"

    def _judge(self, cases: Sequence[Case | InvalidCase]) -> list[Verdict]:
        """One verdict per program. A failure is confirmed by running the program alone."""
        prepared = [self._prepare(case) for case in cases]
        verdicts = {
            p: _without_outcome(p.case, p.submission.reason, is_ours=p.submission.is_ours)
            for p in prepared
            if p.submission.reason
        }
        for group in self._groups([p for p in prepared if p not in verdicts]):
            judged = dict(zip(group, self._judged(group), strict=True))
            self.fired.update(self.session.fired)
            failed = [p for p, verdict in judged.items() if verdict.status is Status.FAILED]
            if len(group) > 1:
                judged |= {p: self._confirmed(p, judged[p]) for p in failed[:CONFIRMED]}
            verdicts |= judged | self._by_data([p for p in group if judged[p].is_refusal])
        return [verdicts[p] for p in prepared]

    def _by_data(self, refused: Sequence[Prepared]) -> dict[Prepared, Verdict]:
        """Send programs that the backend refuses again, on ordinary data.

        One that it takes then was refused for its data, which says nothing of its device.
        """
        ordinary = {p: with_ordinary_data(p.case) for p in refused if isinstance(p.case, Case)}
        chosen = {p: self._prepare(case) for p, case in ordinary.items() if case is not None}
        sent = [program for one in chosen.values() for program in one.submission.programs]
        outcomes = iter(self._outcomes(sent)) if sent else iter(())
        found: dict[Prepared, Verdict] = {}
        for p, one in chosen.items():
            every = list(islice(outcomes, len(one.submission.programs)))
            if not any(isinstance(outcome, Problem) for outcome in every):
                assert isinstance(p.case, Case)
                assert isinstance(one.case, Case)
                classes = classes_beside(p.case, one.case)
                verdict = skipped(p.case, f"refused for its data: {classes}")
                found[p] = replace(verdict, by_data=classes)
        return found

    def _groups(self, prepared: Sequence[Prepared]) -> Iterator[list[Prepared]]:
        """Group consecutive cases whose programs fit into one call."""
        group: list[Prepared] = []
        room = size = self.session.hello.limits.programs
        for p in prepared:
            count = len(p.submission.programs)
            if group and count > room:
                yield group
                group, room = [], size
            group.append(p)
            room -= count
        if group:
            yield group

    def _outcomes(
        self, programs: Sequence[Program], meanwhile: Callable[[], None] = lambda: None
    ) -> list[Outcome]:
        """Run programs; `meanwhile` is called while the first call runs."""
        if not programs:
            meanwhile()
        outcomes: list[Outcome] = []
        size = self.session.hello.limits.programs
        for start in range(0, len(programs), size):
            self.session.submit(programs[start : start + size])
            if not start:
                meanwhile()
            outcomes += self.session.collect()
        return outcomes

    def accepted(self, case: Case | InvalidCase) -> AllSets:
        """Compute the accepted sets of each batch. Raises UndefinedError and UnsupportedError."""
        return [] if isinstance(case, InvalidCase) else _sets(case, self.demanded(case))

    def demanded(self, case: Case | InvalidCase) -> Profile:
        """The profile by which a case is judged."""
        return self.profile

    def explain(self, case: Case) -> str:
        """Ask the backend to explain how it runs a failing case; returns lines of text."""
        submission = submission_of(case, self.session.hello)
        if submission.reason or len(submission.programs) != 1:
            return ""
        sets = self.accepted(case)

        def is_right(outcome: Outcome) -> bool:
            return verdict_of(case, sets, submission.outcome([outcome])).status is Status.PASSED

        return self.session.explain(submission.program, is_right)

    def _judged(self, group: Sequence[Prepared]) -> list[Verdict]:
        """Judge programs sent together; compute the accepted sets while the backend runs them."""
        expected: list[AllSets | Reference | UopError] = []

        def compute() -> None:
            expected.extend(self._reference(p.case) or self._accepted(p.case) for p in group)

        programs = [program for p in group for program in p.submission.programs]
        outcomes = iter(self._outcomes(programs, compute))
        by_case = [list(islice(outcomes, len(p.submission.programs))) for p in group]
        return [
            self._verdict_on(p, by, p.submission.outcome(sent) if sent else _evaluated(by))
            for p, by, sent in zip(group, expected, by_case, strict=True)
        ]

    def _verdict_on(
        self, p: Prepared, expected: AllSets | Reference | UopError, outcome: Outcome
    ) -> Verdict:
        """The verdict on an outcome; the accepted sets are computed where it is no reference."""
        if isinstance(expected, Reference):
            verdict = verdict_of(p.case, expected.batches, outcome)
            if verdict.status is Status.PASSED:
                counts = replace(verdict.counts, measured=0, single=0, constrained=0)
                return replace(verdict, counts=counts)
            expected = self._accepted(p.case)
        if isinstance(expected, UopError):
            is_ours = isinstance(expected, UnsupportedError)
            return _without_outcome(p.case, self.not_judged(expected), is_ours=is_ours)
        return self._verdict(p, expected, outcome)

    def _reference(self, case: Case | InvalidCase) -> Reference | None:
        """The reference of a case that is not measured; None where its sets are to be computed."""
        if (
            isinstance(case, InvalidCase)
            or case.level in MEASURED_ALWAYS
            or case.id.part(MEASURED) == 0
            or self.demanded(case) != STRICT
        ):
            return None
        try:
            return Reference([reference_on(case, k) for k in range(len(case.batches))])
        except (UndefinedError, UnsupportedError):
            return None

    def _accepted(self, case: Case | InvalidCase) -> AllSets | UopError:
        """The accepted sets of a case, or the error that says why there are none."""
        try:
            return self.accepted(case)
        except (UndefinedError, UnsupportedError) as error:
            return error

    def not_judged(self, error: UopError) -> str:
        """The skip reason: without the place of the error, so that many cases share it."""
        is_unknown = isinstance(error, UnsupportedError)
        reason = str(error)
        if isinstance(error, LabelledError) and error.label:
            reason = f"{error.label}: {error.title}"
        return f"{'nothing says what is accepted' if is_unknown else 'no meaning'}: {reason}"

    def _confirmed(self, p: Prepared, verdict: Verdict) -> Verdict:
        alone = self._judged([p])[0]
        if alone.status is not Status.PASSED or verdict.failure is None:
            return alone
        message = ALONE_PASSES + verdict.failure.message
        return replace(verdict, failure=replace(verdict.failure, message=message))

    def _prepare(self, case: Case | InvalidCase) -> Prepared:
        is_own = self._gives_reference(case)
        submission = Submission(()) if is_own else submission_of(case, self.session.hello)
        reason = submission.reason or left_out(case, submission, self.skips)
        if isinstance(case, Case) and not reason:
            reason = self._held_back(case)
        return Prepared(case, replace(submission, reason=reason))

    def _gives_reference(self, case: Case | InvalidCase) -> bool:
        """Whether the backend would evaluate just what its results are compared with."""
        return (
            self.session is self.interpreter
            and isinstance(case, Case)
            and case.level in LEVELS
            and case.source is None
            and case.id.part(SENT) != 0
            and not is_sharded(case.root)
        )

    def _held_back(self, case: Case) -> str:
        """Why a supported case is not sent; empty if it is sent.

        Under the profile it may trap, or be undefined: a truncated remainder may be negative, and
        so an invalid index. Under the strict profile every case is defined.
        """
        profile = self.demanded(case)
        if may_end(case.root, [batch.inputs for batch in case.batches], profile):
            return MAY_END
        if truncates(case.root, profile) and isinstance(error := self._accepted(case), UopError):
            return self.not_judged(error)
        return ""

    def _verdict(self, p: Prepared, accepted: AllSets, outcome: Outcome) -> Verdict:
        """The verdict on an outcome. Results that the sent program allows do not count as wrong."""
        verdict, sent = verdict_of(p.case, accepted, outcome), self._sent_instead(p)
        if verdict.failure is None or sent is None:
            return verdict
        charged = self._charged(p, sent, accepted, outcome, verdict)
        if charged is not None:
            return charged
        is_strict = self.demanded(p.case) == STRICT
        why = NOT_CHARGED if is_strict else SETTLED
        return _without_outcome(p.case, why, is_ours=is_strict)

    def _sent_instead(self, p: Prepared) -> Case | None:
        """The program that was sent instead of the case, where its meaning may differ; else None.

        Kernels have no PAD, and contain folded CONSTs. A twin that decomposes an op may differ from
        the op under a profile that is not strict: a decomposed CMPGE is true on NaN. Under the
        strict profile a twin equals its case; a difference is a bug of this project.
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
        self, p: Prepared, sent: Case, accepted: AllSets, outcome: Outcome, verdict: Verdict
    ) -> Verdict | None:
        """The failure without the elements that `sent` allows; None if no element remains."""
        try:
            sets = p.submission.of_case(_sets(sent, self.demanded(p.case)))
        except UndefinedError:
            return None
        except UnsupportedError:
            # Without accepted sets, interpret `sent` to see whether its result passes.
            result = p.submission.outcome([outcome_of(p.submission.program)])
            return verdict if verdict_of(p.case, accepted, result).status is Status.PASSED else None
        if (
            isinstance(outcome, Problem)
            or verdict.failure is None
            or verdict.failure.element is None
        ):
            return verdict
        batches = zip(accepted, sets, outcome.batches, strict=True)
        remaining = verdict_of(p.case, [tuple(map(opened, *batch)) for batch in batches], outcome)
        return None if remaining.status is Status.PASSED else remaining


def _without_outcome(case: Case | InvalidCase, reason: str, *, is_ours: bool) -> Verdict:
    """The verdict on a case that is skipped, or that this project cannot judge."""
    return not_judged(case.id, reason) if is_ours else skipped(case, reason)


def _evaluated(expected: AllSets | Reference | UopError) -> Outputs:
    """What the interpreter returns for a case: the reference."""
    if isinstance(expected, UopError):
        return Outputs(())
    batches = expected.batches if isinstance(expected, Reference) else expected
    return Outputs(tuple(tuple(output.value.data for output in batch) for batch in batches))


def _sets(case: Case, profile: Profile) -> AllSets:
    return [accepted_on(case, batch, profile) for batch in range(len(case.batches))]
