"""Writes repros: shrunk failing programs with data and accepted sets, as `.uop` cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.expected import accepted_on, written_buffers
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.storage import element_sets, output_keys, to_literal
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.report.model import Failure
from uop.conformance.shrink.reduce import Candidate, is_computing, reduce_program
from uop.conformance.suite.case import Batch, Case, CaseId, InvalidCase
from uop.conformance.suite.vocabulary import computed
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.spec.case import ElementSet, FileCase, UopFile
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError
from uop.spec.graph import kind_of
from uop.spec.latitude import Profile
from uop.spec.text.uop_file import print_file
from uop.spec.uop import UOp

WRONG_RESULTS = frozenset({Symptom.VALUE, Symptom.SPECIAL, Symptom.ULP})
NOT_SHRUNK = frozenset({Symptom.HANG, Symptom.LEAK, Symptom.UNSTEADY})
"""Symptoms that are too slow to reproduce for each candidate, or random."""


def find_cause(judge: Judge, case: Case | InvalidCase, failure: CaseFailure) -> Failure:
    """Shrink a failure and write its repro."""
    if isinstance(case, InvalidCase):
        return _rejection(case, failure)
    program = case.programs[failure.program]
    start = Candidate(program.root, program.batches[failure.batch].inputs)
    if failure.symptom in NOT_SHRUNK or kind_of(program.root).calls_kernels:
        return unshrunk(case, failure, judge.profile)

    # Candidates must not gain ops that the backend does not list.
    allowed = judge.session.hello.ops | _ops_of(start)

    def probe(candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
        supported = [c for c in candidates if _ops_of(c) <= allowed]
        by_candidate = dict(zip(supported, failures_of(judge, supported), strict=True))
        return [
            f if (f := by_candidate.get(c)) and _alike(f, failure) else None for c in candidates
        ]

    # A twin may fail by the accepted sets of its case, but pass by its own.
    if failure.program and probe([start])[0] is None:
        return unshrunk(case, failure, judge.profile)
    smallest, last_failure = reduce_program(start, failure, probe)
    accepted = accept(smallest.root, smallest.inputs, judge.profile)
    explanation = judge.explain(Case(case.id, smallest.root, (Batch(smallest.inputs),)))
    message = "\n".join(filter(None, [last_failure.message, explanation]))
    explained = replace(last_failure, message=message)
    return written(case.id, smallest, accepted, explained, judge.profile)


def unshrunk(case: Case | InvalidCase, failure: CaseFailure, profile: Profile) -> Failure:
    """Write the repro of a failure without shrinking it."""
    if isinstance(case, InvalidCase):
        return _rejection(case, failure)
    program = case.programs[failure.program]
    candidate = Candidate(program.root, program.batches[failure.batch].inputs)
    return written(
        case.id, candidate, accepted_on(program, failure.batch, profile), failure, profile
    )


def written(
    id: CaseId,
    candidate: Candidate,
    accepted: Sequence[Accepted],
    failure: CaseFailure,
    profile: Profile,
) -> Failure:
    """Write the repro of a failing program."""
    nodes = [u for u in candidate.root.toposort() if is_computing(u)] or [candidate.root]
    case = FileCase(
        str(id),
        candidate.root,
        {slot: to_literal(a) for slot, a in candidate.inputs.items()},
        accept=_element_sets(candidate, accepted),
        profile=profile,
        comment=failure.message,
    )
    ops = tuple(sorted({u.op.name for u in nodes}))
    text = print_file(UopFile((case,)))
    return _failure(id, failure, failure.symptom.value, ops, _dtypes_of(candidate.root), text)


def failures_of(judge: Judge, candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
    """Judge candidates: the failure of each; None if it passes, is skipped or is undefined."""
    cases = [
        Case(CaseId("reduce", "MIXED", "MIXED", "candidate", k), c.root, (Batch(c.inputs),))
        for k, c in enumerate(candidates)
    ]
    return [verdict.failure for verdict in judge.judge(cases)]


def _ops_of(candidate: Candidate) -> frozenset[str]:
    return frozenset(u.op.name for u in computed(candidate.root))


def _dtypes_of(root: UOp) -> tuple[str, ...]:
    """The dtypes of inputs and computing nodes in topological order, without void and shapes."""
    read = (u for u in root.toposort() if is_computing(u) or u.dtype is not dtypes.index)
    return tuple(dict.fromkeys(u.dtype.name for u in read if u.dtype is not dtypes.void))


def _element_sets(
    candidate: Candidate, accepted: Sequence[Accepted]
) -> dict[int, tuple[ElementSet, ...]]:
    try:
        keys = output_keys(candidate.root, candidate.inputs)
    except UndefinedError:
        # The source of these kernels is defined, so undefined kernels are a failure.
        keys = sorted(written_buffers(candidate.root))
    return {key: element_sets(a) for key, a in zip(keys, accepted, strict=True)}


def _alike(failure: CaseFailure, other: CaseFailure) -> bool:
    return failure.symptom is other.symptom or {failure.symptom, other.symptom} <= WRONG_RESULTS


def _rejection(case: InvalidCase, failure: CaseFailure) -> Failure:
    """Write the repro of an invalid program: its text as it is, which ends with the broken node."""
    *nodes, broken = case.text.strip().splitlines()
    comment = f"; {failure.message}".splitlines()[0]
    text = "\n".join([f"case {case.id}", comment, *nodes, f"invalid {case.label}", broken]) + "\n"
    return _failure(case.id, failure, case.label, (case.op,), (case.dtype,), text)


def _failure(
    id: CaseId,
    failure: CaseFailure,
    label: str,
    ops: tuple[str, ...],
    dtypes: tuple[str, ...],
    text: str,
) -> Failure:
    """Build a failure with its signature, which failures of one cause should share."""
    kind = "result" if failure.symptom in WRONG_RESULTS else failure.symptom.value
    broken = "" if label == failure.symptom else label
    signature = " ".join(filter(None, (kind, broken, "+".join(ops), "+".join(dtypes))))
    return Failure(
        str(id), signature, label, id.level, ops, dtypes, failure.message, "", text, failure.values
    )
