"""Writes repros: shrunk failing programs with data and accepted sets, as `.uop` cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.expected import accepted_on, written_buffers
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.storage import element_sets, output_keys, to_literal
from uop.conformance.judging.verdict import CaseFailure, Status, Verdict
from uop.conformance.report.model import Failure, When
from uop.conformance.shrink.alone import calls_alone
from uop.conformance.shrink.axes import shorter_axes
from uop.conformance.shrink.conditions import Outcome, conditions
from uop.conformance.shrink.explain import (
    Explained,
    Failing,
    Seen,
    alike,
    explain,
    remembering,
    special_classes,
)
from uop.conformance.shrink.kernels import reduce_kernels
from uop.conformance.shrink.lost import LOSSES, Sparing, reduce_elements
from uop.conformance.shrink.reduce import (
    Candidate,
    Found,
    Probe,
    is_computing,
    reduce_program,
    with_used_inputs,
)
from uop.conformance.shrink.search import PLACED, Search, Step, devices_of, repeated
from uop.conformance.shrink.signature import signature_of
from uop.conformance.suite.case import Batch, Case, CaseId, Evaluated, InvalidCase
from uop.conformance.suite.choices import CountedChoices
from uop.conformance.suite.levels.graph.pairs import fitting_data
from uop.conformance.suite.values import draw_ordinary
from uop.conformance.suite.vocabulary import computed
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.footprint import SMALL, at_most, metered
from uop.spec.args import Device
from uop.spec.case import ElementSet, FileCase, UopFile
from uop.spec.dtype import VALUES, dtypes
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.graph import ProgramKind, kind_of, slots_of
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.text.uop_file import print_file
from uop.spec.uop import UOp
from uop.spec.walk import rebuild

DRAWS = 64
"""The values that are tried for each input."""


def in_ordinary_values(
    judge: Judge, found: Found, probe: Probe, is_special: Callable[[Candidate], bool]
) -> Found:
    """The program with ordinary values if it fails alike on some, else as it is.

    A fault of ordinary values shows on special ones too, where cases of these come first.
    """
    program, failure = found
    root = program.root
    slots = slots_of(root)
    if kind_of(root).calls_kernels or failure.element is None or not is_special(program):
        return found
    choices = CountedChoices(0, print_program(root))
    drawn = (
        {slot: fitting_data(u, root, choices, draw_ordinary) for slot, u in slots.items()}
        for _ in range(DRAWS)
    )
    batches = tuple(Batch(inputs) for inputs in drawn)
    case = Case(CaseId("reduce", "MIXED", "MIXED", "ordinary", 0), root, batches)
    (verdict,) = judge.judge([case])
    if verdict.failure is None:
        return found
    ordinary = replace(program, inputs=batches[verdict.failure.batch].inputs)
    (shown,) = probe([ordinary])
    if shown is None or is_special(ordinary):
        return found

    def keeping(candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
        shown = probe(candidates)
        return [None if is_special(c) else f for c, f in zip(candidates, shown, strict=True)]

    return reduce_program((ordinary, shown), keeping)


Where = Callable[[Device], Device]


def fewer_devices(candidate: Candidate) -> Iterator[Step]:
    """The program on no device, without one, or with one in place of another."""
    nodes = candidate.root.toposort()
    devices = dict.fromkeys(name for u in nodes for name in devices_of(u))
    if devices:
        yield partial(_placed, candidate, lambda device: None)
    for gone in reversed([*devices]):
        yield partial(_placed, candidate, partial(_without, gone))
        for kept in devices:
            if kept != gone:
                yield partial(_placed, candidate, partial(_instead, gone, kept))


def _without(gone: str, device: Device) -> Device:
    """The devices of a sharded value but one."""
    if isinstance(device, tuple) and len(device) > 1:
        return tuple(name for name in device if name != gone)
    return device


def _instead(gone: str, kept: str, device: Device) -> Device:
    return kept if device == gone else device


def _placed(candidate: Candidate, where: Where) -> Candidate:
    """The program with its values on other devices, without copies that stay where they are."""

    def placed(u: UOp, src: list[UOp]) -> UOp:
        arg = replace(u.arg, device=where(u.arg.device)) if isinstance(u.arg, PLACED) else u.arg
        return src[0] if _is_copy(u, src, where) else UOp(u.op, *src, arg=arg, tag=u.tag)

    return with_used_inputs(rebuild(candidate.root, placed), candidate.inputs)


def _is_copy(u: UOp, sources: list[UOp], where: Where) -> bool:
    """Whether a node only moves a value to the device where it is."""
    if u.op is Op.REPLICATED:
        return where(u.device) is None
    is_load = u.op is Op.LOAD and u.src[0].addrspace is None
    return is_load and len(sources) == 1 and where(u.device) == sources[0].device


LEAST_WORK = 256
"""A candidate may compute so many elements, however few the failing program computes: it may have
nodes that stand for others.
"""
NOT_SHRUNK = frozenset({Symptom.LEAK, Symptom.UNSTEADY})
"""Symptoms that are random, or that the programs before have a part in."""


def find_cause(judge: Judge, failing: Failing, causes: Sequence[Failure] = ()) -> Failure:
    """Shrink a failure and write its repro, without the parts that known causes explain."""
    if failing.start is None or failing.failure.symptom in NOT_SHRUNK:
        return unshrunk(failing.case, failing.failure, judge.profile)
    with judge.session.expecting_losses():
        return _shrunk(judge, failing, causes)


def _shrunk(judge: Judge, failing: Failing, causes: Sequence[Failure]) -> Failure:
    case, failure = failing.case, failing.failure
    assert isinstance(case, Case)
    starts = failing.starts
    is_lost = failure.symptom in LOSSES
    run = probe_of(judge, starts[0])
    if is_lost:
        run = Sparing(run, failure.symptom)

    def probe(candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
        return [f if f is not None and alike(f, failure) else None for f in run(candidates)]

    found: Found | None = starts[failure.batch], failure
    is_of_any = failure.element is None
    if is_of_any or kind_of(starts[0].root).calls_kernels or failure.program:
        # An error is about all batches that were sent. A twin, and kernels that their source
        # judges, may fail by the accepted sets of these but pass by their own.
        starts = starts if is_of_any else [starts[failure.batch]]
        fail = zip(starts, probe(starts), strict=True)
        found = next(((start, f) for start, f in fail if f is not None), None)
    if found is None:
        return unshrunk(case, failure, judge.profile)
    rest = None if is_lost else explain(failing, causes, probe).rest
    reduced = _reduced(rest or found, probe)
    smallest, last_failure = in_ordinary_values(
        judge, reduced, probe, lambda candidate: bool(special_classes(candidate))
    )
    alone = Case(case.id, smallest.root, (Batch(smallest.inputs),))
    shrunk = Failing(alone, replace(last_failure, batch=0, program=0), is_shrunk=True)
    when = When()
    if not is_lost and explain(shrunk, causes, run).cause is None:
        when = conditions(
            smallest,
            [d for d in VALUES if d.name in judge.session.hello.dtypes],
            judge.session.hello.ops,
            partial(_outcomes, judge, (smallest, last_failure)),
        )
    accepted = accept(smallest.root, smallest.inputs, judge.profile)
    explanation = judge.explain(alone)
    message = "\n".join(filter(None, [last_failure.message, explanation]))
    explained = replace(last_failure, message=message)
    cause = written(case.id, smallest, accepted, explained, judge.profile)
    return replace(cause, when=when)


def _outcomes(
    judge: Judge, failing: Found, candidates: Sequence[Candidate]
) -> list[Outcome | None]:
    """How each candidate compares with a failing program; None for one that is not judged."""
    program, failure = failing
    allowed, most = judge.session.hello.ops, max(LEAST_WORK, 2 * _work_of(program))
    supported = [c for c in candidates if _ops_of(c) <= allowed]
    found = dict(zip(supported, verdicts(judge, supported, most), strict=True))
    return [_outcome(found.get(c), failure) for c in candidates]


def _outcome(verdict: Verdict | None, failure: CaseFailure) -> Outcome | None:
    if verdict is None or verdict.status is Status.SKIPPED:
        return None
    if verdict.failure is None:
        return Outcome.PASSES
    return Outcome.ALIKE if alike(verdict.failure, failure) else Outcome.OTHERWISE


def _reduced(found: Found, probe: Probe) -> Found:
    found = repeated(found, probe, fewer_devices)
    if kind_of(found[0].root) is ProgramKind.MIXED:
        search = Search(*found, probe)
        search.take_any(calls_alone(search.best))
        found = search.found
    if kind_of(found[0].root).calls_kernels:
        found = reduce_kernels(found, probe)
    if kind_of(found[0].root).calls_kernels:
        return found
    if found[1].element is not None:
        return _reduced_with_axes(found, probe)
    # Once before, so that each later run has less to do, and once where the graph is small.
    return reduce_elements(reduce_program(reduce_elements(found, probe), probe), probe)


def _reduced_with_axes(found: Found, probe: Probe) -> Found:
    """Shrink graph and axes in turns: on shorter axes more nodes can go."""
    while True:
        smaller = reduce_program(found, probe)
        found = repeated(smaller, probe, shorter_axes)
        if found[0] is smaller[0]:
            return found


def explained_by(
    judge: Judge, failing: Failing, causes: Sequence[Failure], seen: Seen
) -> Explained:
    """Find the cause that explains a failing case; `seen` gets the outcomes of probes."""
    if failing.failure.symptom in NOT_SHRUNK:
        return Explained()
    # What spares the backend leaves candidates out: that they passed must not be remembered.
    run = remembering(probe_of(judge, failing.start), seen)
    with judge.session.expecting_losses():
        is_lost = failing.failure.symptom in LOSSES
        if is_lost:
            run = Sparing(run, failing.failure.symptom)
        return explain(failing if is_lost else _of_its_batch(failing, run), causes, run)


def _of_its_batch(failing: Failing, run: Probe) -> Failing:
    """A failing case with the first batch that fails alone: an error is about all of them."""
    if isinstance(failing.case, InvalidCase) or failing.failure.element is not None:
        return failing
    found = run(failing.starts)
    fails = (k for k, f in enumerate(found) if f is not None and alike(f, failing.failure))
    failure = replace(failing.failure, batch=next(fails, failing.failure.batch))
    return replace(failing, failure=failure)


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
    case = FileCase(
        str(id),
        candidate.root,
        {slot: to_literal(a) for slot, a in candidate.inputs.items()},
        accept=_element_sets(candidate, accepted),
        profile=profile,
        comment=failure.message,
    )
    about = _about(Case(id, candidate.root, ()), failure)
    cause = _failure(id, failure, about, print_file(UopFile((case,))))
    return replace(cause, ordinary=not special_classes(candidate))


def signature_now(case: Case | InvalidCase, failure: CaseFailure) -> str:
    """The signature of a failure of a case that was shrunk before."""
    return _about(case, failure).signature(failure)


def probe_of(judge: Judge, start: Candidate | None) -> Probe:
    """The probe of the candidates for a failing program.

    A candidate fails, or it passes, is skipped or is undefined. One with ops that neither the
    backend lists nor the failing program has is not sent, nor one that computes more than that.
    """
    allowed = judge.session.hello.ops | (frozenset() if start is None else _ops_of(start))
    most = LEAST_WORK if start is None else max(LEAST_WORK, _work_of(start))

    def run(candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
        supported = [c for c in candidates if _ops_of(c) <= allowed]
        found = dict(zip(supported, failures(judge, supported, most), strict=True))
        return [found.get(c) for c in candidates]

    return run


def _work_of(start: Candidate) -> int:
    """The elements that a program computes, up to where it is undefined."""
    with metered() as meter, at_most(SMALL), suppress(UndefinedError, UnsupportedError):
        evaluate_full(start.root, start.inputs)
    return meter.spent


def failures(
    judge: Judge, candidates: Sequence[Candidate], most: int | None = None
) -> list[CaseFailure | None]:
    """The failures of candidates among their verdicts."""
    return [None if v is None else v.failure for v in verdicts(judge, candidates, most)]


def verdicts(
    judge: Judge, candidates: Sequence[Candidate], most: int | None = None
) -> list[Verdict | None]:
    """Judge candidates of ops that the backend lists.

    One without a meaning is not sent: it may end the backend, or leave its memory damaged. Nor is
    one that computes more than `most` elements.
    """
    cases: dict[int, Case] = {}
    for k, c in enumerate(candidates):
        with metered(most), at_most(SMALL), suppress(UndefinedError, UnsupportedError):
            batch = Batch(c.inputs, Evaluated(c.root, evaluate_full(c.root, c.inputs)))
            id = CaseId("reduce", "MIXED", "MIXED", "candidate", k)
            cases[k] = Case(id, c.root, (batch,))
    found = dict(zip(cases, judge.judge(list(cases.values())), strict=True))
    return [found.get(k) for k in range(len(candidates))]


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


def _rejection(case: InvalidCase, failure: CaseFailure) -> Failure:
    """Write the repro of an invalid program: its text as it is, which ends with the broken node."""
    *nodes, broken = case.text.strip().splitlines()
    comment = f"; {failure.message}".splitlines()[0]
    text = "\n".join([f"case {case.id}", comment, *nodes, f"invalid {case.label}", broken]) + "\n"
    return _failure(case.id, failure, _about(case, failure), text)


@dataclass(frozen=True, slots=True)
class About:
    """What a signature is made of, beside the kind of the symptom."""

    label: str
    ops: tuple[str, ...]
    dtypes: tuple[str, ...]

    def signature(self, failure: CaseFailure) -> str:
        return signature_of(failure.symptom, self.label, self.ops, self.dtypes)


def _about(case: Case | InvalidCase, failure: CaseFailure) -> About:
    if isinstance(case, InvalidCase):
        return About(case.label, (case.op,), (case.dtype,))
    nodes = [u for u in case.root.toposort() if is_computing(u)] or [case.root]
    ops = tuple(sorted({u.op.name for u in nodes}))
    return About(failure.symptom.value, ops, _dtypes_of(case.root))


def _failure(id: CaseId, failure: CaseFailure, about: About, text: str) -> Failure:
    """Build a failure with its signature."""
    return Failure(
        str(id),
        about.signature(failure),
        about.label,
        id.level,
        about.ops,
        about.dtypes,
        failure.message,
        "",
        text,
        failure.values,
    )
