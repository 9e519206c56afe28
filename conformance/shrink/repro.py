"""Repros: a failing program shrunk, with its data and what it may give, as one `.uop` case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.elements import Element, element_from_json
from uop.conformance.judging.expected import accepted_on, written_buffers
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.storage import element_sets, output_keys, to_literal
from uop.conformance.judging.verdict import Fault
from uop.conformance.protocol.wire import Json
from uop.conformance.shrink.reduce import Candidate, is_computing, reduce_program
from uop.conformance.suite.case import Batch, CaseId, InvalidCase
from uop.conformance.suite.case import Case as SuiteCase
from uop.conformance.suite.vocabulary import computed
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.spec.case import Case, ElementSet, UopFile
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError
from uop.spec.graph import kind_of
from uop.spec.latitude import Profile
from uop.spec.text.uop_file import print_file
from uop.spec.uop import UOp

WRONG_RESULTS = frozenset({Symptom.VALUE, Symptom.SPECIAL, Symptom.ULP})
NOT_SHRUNK = frozenset({Symptom.HANG, Symptom.LEAK, Symptom.UNSTEADY})
"""Every try would cost as much as the failure did, or show it by chance."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure ready for the report: what it is about, and the text of its repro."""

    id: str
    symptom: Symptom
    label: str
    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    message: str
    text: str
    values: tuple[Element, ...] = ()

    @property
    def signature(self) -> str:
        """Equal for failures of one cause, as far as one can tell."""
        kind = "result" if self.symptom in WRONG_RESULTS else self.symptom.value
        broken = "" if self.label == self.symptom else self.label
        about = (kind, broken, "+".join(self.ops), "+".join(self.dtypes))
        return " ".join(filter(None, about))


def find_cause(judge: Judge, case: SuiteCase | InvalidCase, fault: Fault) -> Finding:
    """Shrink a failure and write it down."""
    if isinstance(case, InvalidCase):
        return _rejection(case, fault)
    program = case.programs[fault.program]
    start = Candidate(program.root, program.batches[fault.batch].inputs)
    if fault.symptom in NOT_SHRUNK or kind_of(program.root).calls_kernels:
        return as_found(case, fault, judge.profile)

    # What is delivered without an op that is not listed does not come to hold one.
    known = judge.session.hello.ops | _ops_of(start)

    def probe(candidates: Sequence[Candidate]) -> list[Fault | None]:
        spoken = [c for c in candidates if _ops_of(c) <= known]
        found = dict(zip(spoken, faults(judge, spoken), strict=True)) if spoken else {}
        return [f if (f := found.get(c)) and _alike(f, fault) else None for c in candidates]

    # By the set of what it stands for a twin may fail, and not by its own.
    if fault.program and probe([start])[0] is None:
        return as_found(case, fault, judge.profile)
    smallest, shown = reduce_program(start, fault, probe)
    accepted = accept(smallest.root, smallest.inputs, judge.profile)
    told = judge.explain(SuiteCase(case.id, smallest.root, (Batch(smallest.inputs),)))
    found = replace(shown, message="\n".join(filter(None, [shown.message, told])))
    return written(case.id, smallest, accepted, found, judge.profile)


def as_found(case: SuiteCase | InvalidCase, fault: Fault, profile: Profile) -> Finding:
    """A failure written down without shrinking it."""
    if isinstance(case, InvalidCase):
        return _rejection(case, fault)
    program = case.programs[fault.program]
    candidate = Candidate(program.root, program.batches[fault.batch].inputs)
    return written(case.id, candidate, accepted_on(program, fault.batch, profile), fault, profile)


def finding_from_json(found: Json) -> Finding:
    """The inverse of dataclasses.asdict, after JSON."""
    lists: Json = {name: tuple(found[name]) for name in ("ops", "dtypes")}
    lists["values"] = tuple(map(element_from_json, found["values"]))
    return Finding(**{**found, **lists, "symptom": Symptom(found["symptom"])})


def written(
    id: CaseId,
    candidate: Candidate,
    accepted: Sequence[Accepted],
    fault: Fault,
    profile: Profile,
) -> Finding:
    """A failing program as a finding, as it is."""
    nodes = [u for u in candidate.root.toposort() if is_computing(u)] or [candidate.root]
    case = Case(
        str(id),
        candidate.root,
        {slot: to_literal(a) for slot, a in candidate.inputs.items()},
        accept=_element_sets(candidate, accepted),
        profile=profile,
        comment=fault.message,
    )
    ops = tuple(sorted({u.op.name for u in nodes}))
    text = print_file(UopFile((case,)))
    symptom, values, kinds = fault.symptom, fault.values, _dtypes_of(candidate.root)
    return Finding(str(id), symptom, symptom.value, ops, kinds, fault.message, text, values)


def faults(judge: Judge, candidates: Sequence[Candidate]) -> list[Fault | None]:
    """The fault of each candidate, None where it passes, is skipped or has no meaning."""
    cases = [
        SuiteCase(CaseId("reduce", "MIXED", "MIXED", "candidate", k), c.root, (Batch(c.inputs),))
        for k, c in enumerate(candidates)
    ]
    return [verdict.fault for verdict in judge.judge(cases)]


def _ops_of(candidate: Candidate) -> frozenset[str]:
    return frozenset(u.op.name for u in computed(candidate.root))


def _dtypes_of(root: UOp) -> tuple[str, ...]:
    """The dtypes of what is read and of what is computed, in that order; shapes and axes aside."""
    read = (u for u in root.toposort() if is_computing(u) or u.dtype is not dtypes.index)
    return tuple(dict.fromkeys(u.dtype.name for u in read if u.dtype is not dtypes.void))


def _element_sets(
    candidate: Candidate, accepted: Sequence[Accepted]
) -> dict[int, tuple[ElementSet, ...]]:
    try:
        keys = output_keys(candidate.root, candidate.inputs)
    except UndefinedError:
        # Kernels that were made of what has a meaning: they are wrong if they have none.
        keys = sorted(written_buffers(candidate.root))
    return {key: element_sets(a) for key, a in zip(keys, accepted, strict=True)}


def _alike(found: Fault, wanted: Fault) -> bool:
    return found.symptom is wanted.symptom or {found.symptom, wanted.symptom} <= WRONG_RESULTS


def _rejection(case: InvalidCase, fault: Fault) -> Finding:
    """A program to be rejected is small already; its text ends with the broken node."""
    *nodes, broken = case.text.strip().splitlines()
    comment = f"; {fault.message}".splitlines()[0]
    text = "\n".join([f"case {case.id}", comment, *nodes, f"invalid {case.label}", broken]) + "\n"
    return Finding(
        str(case.id), fault.symptom, case.label, (case.op,), (case.dtype,), fault.message, text
    )
