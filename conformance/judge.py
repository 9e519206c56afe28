"""Judges cases: sends them to a backend as text, computes what is accepted meanwhile, compares."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from uop.conformance.backends.attempt import attempt
from uop.conformance.backends.interpreter import interpret
from uop.conformance.case import Case, InvalidCase
from uop.conformance.compare import Mismatch, Symptom, compare, element_text, unsteady
from uop.conformance.delivery import Delivery, deliver, text_of
from uop.conformance.elements import (
    Element,
    Errors,
    element_from_json,
    errors_from_json,
    errors_of,
    wrong_elements,
)
from uop.conformance.meaning import accepted_on, may_end, truncates
from uop.conformance.protocol import LOST, Outcome, Outputs, Problem, ProblemKind
from uop.conformance.wire import Json
from uop.conformance.workers import Session
from uop.interpreter.accepted.result import Accepted
from uop.spec.errors import LabelledError, UndefinedError, UnsupportedError, UopError
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

GRAPH_NODES = 8
"""From this many computing nodes on a program counts as a graph."""
NOT_COMPUTING = frozenset(
    {Op.PARAM, Op.BUFFER, Op.CONST, Op.BINARY, Op.STACK, Op.TUPLE, Op.SINK, Op.GROUP}
)
CONFIRMED = 8
"""Failures of one call that are run again alone; where more fail, batching is not the cause."""
NOT_CHARGED = "our lowering changed it: what was sent may give this"
SETTLED = "in kernels of ours, or in other words, it settles otherwise what the profile is about"
MAY_END = "it divides by zero, which ends a program by the profile"
ALONE_PASSES = "only together with other programs: "
AllSets = Sequence[tuple[Accepted, ...]]
"""What is accepted, by batch and output."""


class Status(StrEnum):
    """What became of a case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CRASHED = "crashed"
    KNOWN = "known"
    """It failed, which whoever runs the suite knows."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a case failed, in one line, and on which batch, output and element (row-major)."""

    symptom: Symptom
    message: str
    batch: int = 0
    output: int = 0
    element: int | None = None
    program: int = 0
    """The number of the twin that failed, from 1; 0 for the case itself."""
    values: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one case. `digest` tells distinct graphs apart, empty for anything smaller.

    `errors` are there for single ops on floats.
    """

    id: str
    status: Status
    checks: int = 0
    elements: int = 0
    single: int = 0
    constrained: int = 0
    max_ulp: float = 0.0
    reason: str = ""
    fault: Fault | None = None
    digest: str = ""
    errors: Errors | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A case on its way, and how."""

    case: Case | InvalidCase
    delivery: Delivery

    @property
    def reason(self) -> str:
        return self.delivery.reason


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
        delivery = self._prepare(case).delivery
        self.session.submit([delivery.program])
        given = delivery.outcome(self.session.collect()[0])
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
        size = self.session.hello.limits.programs
        verdicts: dict[Prepared, Verdict] = {}
        for start in range(0, len(asked), size):
            together = asked[start : start + size]
            found = dict(zip(together, self._judged(together), strict=True))
            failed = [p for p, verdict in found.items() if verdict.status is Status.FAILED]
            if len(together) > 1:
                found |= {p: self._confirmed(p, found[p]) for p in failed[:CONFIRMED]}
            verdicts |= found
        return [verdicts[p] if p in verdicts else skipped(p.case, p.reason) for p in prepared]

    def accepted(self, case: Case | InvalidCase) -> list[tuple[Accepted, ...]]:
        """What each batch of a case may give. UndefinedError for a program without meaning."""
        return [] if isinstance(case, InvalidCase) else _sets(case, self.demanded(case))

    def demanded(self, case: Case | InvalidCase) -> Profile:
        """The profile by which a case is judged."""
        return self.profile

    def explain(self, case: Case) -> str:
        """What the backend shows of how it runs a case that it fails, as lines of text."""
        delivery = deliver(case, self.session.hello)
        sets = self.accepted(case)

        def is_right(outcome: Outcome) -> bool:
            return verdict_of(case, sets, delivery.outcome(outcome)).status is Status.PASSED

        return "" if delivery.reason else self.session.explain(delivery.program, is_right)

    def _judged(self, together: Sequence[Prepared]) -> list[Verdict]:
        """Judge programs sent together; while the backend runs them, compute what they may give."""
        self.session.submit([p.delivery.program for p in together])
        accepted: list[AllSets | UopError] = []
        for p in together:
            try:
                accepted.append(self.accepted(p.case))
            except (UndefinedError, UnsupportedError) as error:
                accepted.append(error)
        outcomes = self.session.collect()
        return [
            skipped(p.case, self.not_judged(sets))
            if isinstance(sets, UopError)
            else self._verdict(p, sets, outcome)
            for p, sets, outcome in zip(together, accepted, outcomes, strict=True)
        ]

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
        delivery = deliver(case, self.session.hello)
        if isinstance(case, Case) and not delivery.reason:
            delivery = replace(delivery, reason=self._held_back(case))
        return Prepared(case, delivery)

    def _held_back(self, case: Case) -> str:
        """Why a backend is not sent what it takes: by the profile it may end it, or mean nothing.

        By the strict one every case has a meaning; a remainder that is truncated is no index.
        """
        profile = self.demanded(case)
        if may_end(case, profile):
            return MAY_END
        if not truncates(case, profile):
            return ""
        try:
            self.accepted(case)
        except (UndefinedError, UnsupportedError) as error:
            return self.not_judged(error)
        return ""

    def _verdict(self, p: Prepared, accepted: AllSets, outcome: Outcome) -> Verdict:
        """The verdict on an outcome, unless what we made of the program may give it."""
        case, lowered = p.case, p.delivery.root
        verdict = verdict_of(case, accepted, p.delivery.outcome(outcome))
        if verdict.fault is None or isinstance(case, InvalidCase):
            return verdict
        strict = self.demanded(case) == STRICT
        if lowered is not None:
            sent = Case(case.id, lowered, p.delivery.batches)
        elif case.source is not None and not strict:
            # Where the profile is strict, words of the suite's own are ours to get right.
            sent = Case(case.id, case.root, case.batches)
        else:
            return verdict
        if self._may_give(sent, p, accepted, outcome):
            return skipped(case, NOT_CHARGED if strict else SETTLED)
        return verdict

    def _may_give(self, sent: Case, p: Prepared, accepted: AllSets, outcome: Outcome) -> bool:
        """Whether by the profile the program that was sent may give this, or means nothing.

        Kernels know no PAD and hold what a CONST came to; a CMPGE in other words is true on NaN.
        Where nothing says what it may give, whether the reference fails on it as well.
        """
        case, given = p.case, p.delivery.outcome(outcome)
        try:
            sets = p.delivery.of_case(_sets(sent, self.demanded(case)))
        except UndefinedError:
            return True
        except UnsupportedError:
            ours = p.delivery.outcome(attempt(lambda: interpret(p.delivery.program)))
            return verdict_of(case, accepted, ours).status is not Status.PASSED
        return verdict_of(case, sets, given).status is Status.PASSED


def _sets(case: Case, profile: Profile) -> list[tuple[Accepted, ...]]:
    return [accepted_on(case, batch, profile) for batch in range(len(case.batches))]


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a case from those on it and on its twins, in order; twins may be skipped."""
    first = verdicts[0]
    judged = [v for v in verdicts if v.status is not Status.SKIPPED]
    if len(verdicts) == 1 or first.status is Status.SKIPPED:
        return first
    if len(judged) == 1:
        # A case of twins that is judged alone has not been checked.
        return replace(verdicts[1], id=first.id)
    worst = next((v for v in judged if v.status is not Status.PASSED), first)
    program = verdicts.index(worst)
    return replace(
        first,
        status=worst.status,
        checks=sum(v.checks for v in judged),
        elements=sum(v.elements for v in judged),
        single=sum(v.single for v in judged),
        constrained=sum(v.constrained for v in judged),
        max_ulp=max(v.max_ulp for v in judged),
        fault=worst.fault and replace(worst.fault, program=program),
    )


def verdict_of(case: Case | InvalidCase, accepted: AllSets, outcome: Outcome) -> Verdict:
    """Judge what a backend gave for a case."""
    if isinstance(case, InvalidCase):
        return _verdict_on_rejection(case, outcome)
    if isinstance(outcome, Problem):
        return _verdict_on_problem(case, outcome)
    return _verdict_on_outputs(case, accepted, outcome)


def skipped(case: Case | InvalidCase, reason: str) -> Verdict:
    return Verdict(str(case.id), Status.SKIPPED, reason=reason)


def _verdict_on_rejection(case: InvalidCase, outcome: Outcome) -> Verdict:
    id = str(case.id)
    if isinstance(outcome, Outputs):
        fault = Fault(Symptom.NOT_REJECTED, f"{case.label}: a program that breaks it was accepted")
        return Verdict(id, Status.FAILED, 1, fault=fault)
    match outcome.kind:
        case ProblemKind.INVALID if outcome.label in ("", case.label):
            return Verdict(id, Status.PASSED, 1)
        case ProblemKind.INVALID:
            said = f"rejected for {outcome.label} instead of {case.label}"
        case ProblemKind.UNSUPPORTED:
            return skipped(case, outcome.message)
        case _:
            said = f"{outcome.kind.value} instead of a rejection: {outcome.message}"
    status = Status.CRASHED if outcome.kind in LOST else Status.FAILED
    return Verdict(id, status, 1, fault=Fault(_symptom(outcome.kind), f"{case.label}: {said}"))


def _verdict_on_problem(case: Case, problem: Problem) -> Verdict:
    if problem.kind is ProblemKind.UNSUPPORTED:
        return skipped(case, problem.message)
    status = Status.CRASHED if problem.kind in LOST else Status.FAILED
    message = problem.message
    if problem.kind not in LOST:
        message = f"{problem.kind.value}: {message}"
    return Verdict(
        str(case.id), status, len(case.batches), fault=Fault(_symptom(problem.kind), message)
    )


def _symptom(kind: ProblemKind) -> Symptom:
    return Symptom(kind.value) if kind in LOST else Symptom.REFUSED


def _verdict_on_outputs(case: Case, accepted: AllSets, outcome: Outputs) -> Verdict:
    if len(outcome.batches) != len(case.batches):
        message = f"{len(outcome.batches)} results for {len(case.batches)} inputs"
        return Verdict(
            str(case.id), Status.FAILED, len(accepted), fault=Fault(Symptom.VALUE, message)
        )
    compared = [compare(s, o) for s, o in zip(accepted, outcome.batches, strict=True)]
    fault: Fault | None = None
    for batch, found in enumerate(compared):
        wrong = found.mismatch or _unsteady(case, batch, accepted, outcome)
        if fault is None and wrong is not None:
            values = wrong_elements(case, batch, accepted[batch], outcome.batches[batch])
            fault = Fault(
                wrong.symptom, wrong.message, batch, wrong.output, wrong.element, values=values
            )
    fits = fault is None or fault.element is not None
    return Verdict(
        id=str(case.id),
        status=Status.PASSED if fault is None else Status.FAILED,
        checks=len(compared),
        elements=sum(c.elements for c in compared),
        single=sum(c.single for c in compared),
        constrained=sum(c.constrained for c in compared),
        max_ulp=max((c.max_ulp for c in compared), default=0.0),
        fault=fault,
        digest=digest(case.root),
        errors=errors_of(case, accepted, outcome.batches) if fits and case.level == "op" else None,
    )


def _unsteady(case: Case, batch: int, accepted: AllSets, outcome: Outputs) -> Mismatch | None:
    """Where a batch gives other bits than it gave before in the same case."""
    before = case.batches.index(case.batches[batch])
    if before == batch:
        return None
    return unsteady(accepted[batch], outcome.batches[before], outcome.batches[batch])


def digest(root: UOp) -> str:
    """A fingerprint of a graph that computes in many nodes; empty for a smaller one."""
    if sum(u.op not in NOT_COMPUTING for u in root.toposort()) < GRAPH_NODES:
        return ""
    return hashlib.blake2b(text_of(root).encode(), digest_size=8).hexdigest()


def verdict_from_json(found: Json) -> Verdict:
    """The inverse of dataclasses.asdict, after JSON."""
    fault, errors = found["fault"], found["errors"]
    changed = {
        "status": Status(found["status"]),
        "fault": fault and fault_from_json(fault),
        "errors": errors and errors_from_json(errors),
    }
    return Verdict(**{**found, **changed})


def fault_from_json(found: Json) -> Fault:
    values = tuple(map(element_from_json, found["values"]))
    return Fault(**{**found, "symptom": Symptom(found["symptom"]), "values": values})
