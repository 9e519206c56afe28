"""Verdicts on cases: status, failure and counts of each case."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from uop.conformance.judging.compare import (
    NOTHING,
    Comparison,
    Counts,
    Mismatch,
    Symptom,
    compare,
    unsteady,
)
from uop.conformance.judging.elements import Element, Errors, errors_of, wrong_elements
from uop.conformance.judging.lowering import text_of
from uop.conformance.protocol.types import EXCUSED, LOST, Outcome, Outputs, Problem, ProblemKind
from uop.conformance.suite.case import Case, CaseId, InvalidCase
from uop.interpreter.accepted.result import Accepted
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

GRAPH_NODES = 8
"""The least number of computing nodes of a graph."""
NOT_COMPUTING = frozenset(
    {Op.PARAM, Op.BUFFER, Op.CONST, Op.BINARY, Op.STACK, Op.TUPLE, Op.SINK, Op.GROUP}
)
MAY_END = "it divides by zero, which ends a program by the profile"
AllSets = Sequence[tuple[Accepted, ...]]
"""The accepted sets by batch and output."""


class Status(StrEnum):
    """The status of a case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CRASHED = "crashed"
    KNOWN = "known"
    """Failed, and listed as a known failure."""

    @property
    def is_failure(self) -> bool:
        """Whether it fails a run."""
        return self in (Status.FAILED, Status.CRASHED)


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """Why a case failed: a message, and the batch, output and element (row-major)."""

    symptom: Symptom
    message: str
    batch: int = 0
    output: int = 0
    element: int | None = None
    program: int = 0
    """The number of the twin that failed, from 1; 0 for the case itself."""
    values: tuple[Element, ...] = ()
    wrong: tuple[int, ...] = ()
    """The outputs with elements outside their sets; empty for other symptoms."""
    again: bool = False
    """Whether it failed only when it was sent again."""

    @property
    def kind(self) -> str:
        """The kind of its symptom."""
        return self.symptom.kind


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one case. `digest` is the hash of a graph, empty for a smaller program.

    `errors` is set for cases of level op on floats.
    """

    id: str
    status: Status
    checks: int = 0
    counts: Counts = NOTHING
    reason: str = ""
    failure: CaseFailure | None = None
    digest: str = ""
    errors: Errors | None = None
    is_refusal: bool = False
    """Whether it is skipped because the backend refuses a program of listed ops and dtypes."""
    by_data: str = ""
    """The classes of values for which the backend refuses it; empty where it does not."""
    unjudged: str = ""
    """Why it, or a twin, is not judged, through no fault of the backend; empty where it is."""


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Combine the verdicts on a case and its twins, the case first; twins may be skipped."""
    unjudged = next((v.unjudged for v in verdicts if v.unjudged), "")
    return replace(_compared(verdicts), unjudged=unjudged)


def _compared(verdicts: Sequence[Verdict]) -> Verdict:
    first = verdicts[0]
    judged = [v for v in verdicts if v.status is not Status.SKIPPED]
    if len(verdicts) == 1 or first.status is Status.SKIPPED:
        return first
    if len(judged) == 1:
        # No twin was judged, so the case was not compared with one.
        return replace(verdicts[1], id=first.id)
    worst = next((v for v in judged if v.status is not Status.PASSED), first)
    program = verdicts.index(worst)
    return replace(
        first,
        status=worst.status,
        checks=sum(v.checks for v in judged),
        counts=sum((v.counts for v in judged), NOTHING),
        failure=worst.failure and replace(worst.failure, program=program),
    )


def verdict_of(case: Case | InvalidCase, accepted: AllSets, outcome: Outcome) -> Verdict:
    """Judge the outcome of a case."""
    if isinstance(case, InvalidCase):
        return _verdict_on_rejection(case, outcome)
    if isinstance(outcome, Problem):
        return _verdict_on_problem(case, outcome)
    return _verdict_on_outputs(case, accepted, outcome)


def skipped(case: Case | InvalidCase, reason: str) -> Verdict:
    return Verdict(str(case.id), Status.SKIPPED, reason=reason)


def not_judged(id: CaseId | str, why: str) -> Verdict:
    """The verdict on a program that cannot be judged, through no fault of the backend."""
    return Verdict(str(id), Status.SKIPPED, reason=f"not judged: {why}", unjudged=why)


def _verdict_on_rejection(case: InvalidCase, outcome: Outcome) -> Verdict:
    id = str(case.id)
    if isinstance(outcome, Outputs):
        failure = CaseFailure(
            Symptom.NOT_REJECTED, f"{case.label}: a program that breaks it was accepted"
        )
        return Verdict(id, Status.FAILED, 1, failure=failure)
    match outcome.kind:
        case ProblemKind.INVALID if outcome.label in ("", case.label):
            return Verdict(id, Status.PASSED, 1)
        case ProblemKind.INVALID:
            message = f"rejected for {outcome.label} instead of {case.label}"
        case ProblemKind.UNSUPPORTED:
            return skipped(case, outcome.message)
        case kind if kind in EXCUSED:
            return not_judged(id, outcome.message)
        case _:
            message = f"{outcome.kind.value} instead of a rejection: {outcome.message}"
    status = Status.CRASHED if outcome.kind in LOST else Status.FAILED
    failure = CaseFailure(_symptom(outcome.kind), f"{case.label}: {message}")
    return Verdict(id, status, 1, failure=failure)


def _verdict_on_problem(case: Case, problem: Problem) -> Verdict:
    if problem.kind is ProblemKind.UNSUPPORTED:
        return replace(skipped(case, problem.message), is_refusal=True)
    if problem.kind in EXCUSED:
        return not_judged(case.id, problem.message)
    status = Status.CRASHED if problem.kind in LOST else Status.FAILED
    message = problem.message
    if problem.kind not in LOST:
        message = f"{problem.kind.value}: {message}"
    failure = CaseFailure(_symptom(problem.kind), message)
    return Verdict(str(case.id), status, len(case.batches), failure=failure)


def _symptom(kind: ProblemKind) -> Symptom:
    return Symptom(kind.value) if kind in LOST else Symptom.REFUSED


def _verdict_on_outputs(case: Case, accepted: AllSets, outcome: Outputs) -> Verdict:
    if len(outcome.batches) != len(case.batches):
        message = f"{len(outcome.batches)} results for {len(case.batches)} inputs"
        failure = CaseFailure(Symptom.VALUE, message)
        return Verdict(str(case.id), Status.FAILED, len(accepted), failure=failure)
    compared = [compare(s, o) for s, o in zip(accepted, outcome.batches, strict=True)]
    found: CaseFailure | None = None
    for batch, comparison in enumerate(compared):
        wrong = comparison.mismatch or _unsteady(case, batch, accepted, outcome)
        if found is None and wrong is not None:
            values = wrong_elements(case, batch, accepted[batch], outcome.batches[batch])
            found = CaseFailure(
                wrong.symptom,
                wrong.message,
                batch,
                wrong.output,
                wrong.element,
                values=values,
                wrong=comparison.wrong,
            )
    return replace(
        verdict_on_batches(str(case.id), compared, found),
        digest=digest(case.root),
        errors=errors_of(case, accepted, outcome.batches) if case.level == "op" else None,
    )


def verdict_on_batches(
    id: str, compared: Sequence[Comparison], failure: CaseFailure | None
) -> Verdict:
    """The verdict on a program by the comparison of each of its batches."""
    status = Status.PASSED if failure is None else Status.FAILED
    counts = sum((c.counts for c in compared), NOTHING)
    return Verdict(id, status, len(compared), counts, failure=failure)


def _unsteady(case: Case, batch: int, accepted: AllSets, outcome: Outputs) -> Mismatch | None:
    """The mismatch between a batch and an earlier equal batch of the case, if any."""
    before = case.batches.index(case.batches[batch])
    if before == batch:
        return None
    return unsteady(accepted[batch], outcome.batches[before], outcome.batches[batch])


def digest(root: UOp) -> str:
    """The hash of a graph of at least GRAPH_NODES computing nodes; empty for a smaller one."""
    if sum(u.op not in NOT_COMPUTING for u in root.toposort()) < GRAPH_NODES:
        return ""
    return hashlib.blake2b(text_of(root).encode(), digest_size=8).hexdigest()
