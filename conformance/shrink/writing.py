"""Writes repros: failing programs with data and accepted sets, as `.uop` cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from uop.conformance.judging.expected import accepted_on, written_buffers
from uop.conformance.judging.storage import element_sets, file_text, output_keys, to_literals
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.report.model import Failure
from uop.conformance.shrink.explain import special_classes
from uop.conformance.shrink.reduce import Candidate, is_computing
from uop.conformance.shrink.signature import signature_of
from uop.conformance.suite.case import Case, CaseId, InvalidCase
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.spec.case import FileCase
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError
from uop.spec.latitude import Profile


def unshrunk(case: Case | InvalidCase, failure: CaseFailure, profile: Profile) -> Failure:
    """Write the repro of a failure without shrinking it.

    That of an invalid program is its text as it is, which ends with the broken node.
    """
    if isinstance(case, InvalidCase):
        *nodes, broken = case.text.strip().splitlines()
        comment = f"; {failure.message}".splitlines()[0]
        lines = [f"case {case.id}", comment, *nodes, f"invalid {case.label}", broken]
        return _failure(case, failure, "\n".join(lines) + "\n")
    program = case.programs[failure.program]
    candidate = Candidate(program.root, program.batches[failure.batch].inputs)
    accepted = accepted_on(program, failure.batch, profile)
    return written(case.id, candidate, failure, profile, accepted)


def written(
    id: CaseId,
    candidate: Candidate,
    failure: CaseFailure,
    profile: Profile,
    accepted: Sequence[Accepted] | None = None,
) -> Failure:
    """Write the repro of a failing program; by default the accepted sets are its own."""
    root, inputs = candidate.root, candidate.inputs
    if accepted is None:
        accepted = accept(root, inputs, profile)
    try:
        keys = output_keys(root, inputs)
    except UndefinedError:
        # The source of these kernels is defined, so undefined kernels are a failure.
        keys = sorted(written_buffers(root))
    case = FileCase(
        str(id),
        root,
        to_literals(inputs),
        accept={key: element_sets(a) for key, a in zip(keys, accepted, strict=True)},
        profile=profile,
        comment=failure.message,
    )
    cause = _failure(Case(id, root, ()), failure, file_text(case))
    return replace(cause, ordinary=not special_classes(candidate))


def signature_now(case: Case | InvalidCase, failure: CaseFailure) -> str:
    """The signature of a failure of a case that was shrunk before."""
    return _failure(case, failure, "").signature


def _failure(case: Case | InvalidCase, failure: CaseFailure, text: str) -> Failure:
    """A failure with its signature: by the broken label, or by what a program computes on."""
    ops: tuple[str, ...]
    names: tuple[str, ...]
    if isinstance(case, InvalidCase):
        label, ops, names = case.label, (case.op,), (case.dtype,)
    else:
        order = case.root.toposort()
        nodes = [u for u in order if is_computing(u)] or [case.root]
        # Inputs count too, in topological order; shapes and what has no value do not.
        typed = (u.dtype for u in order if is_computing(u) or u.dtype is not dtypes.index)
        label, ops = failure.symptom.value, tuple(sorted({u.op.name for u in nodes}))
        names = tuple(dict.fromkeys(d.name for d in typed if d is not dtypes.void))
    return Failure(
        str(case.id),
        signature_of(failure.symptom, label, ops, names),
        label,
        case.id.level,
        ops,
        names,
        failure.message,
        "",
        text,
        failure.values,
    )
