"""Finds the cause of a failure: another one that explains it, or what it is shrunk to, a repro."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.report.model import Failure, When
from uop.conformance.shrink.axes import fewer_devices, reduce_elements, shorter_axes
from uop.conformance.shrink.conditions import conditions
from uop.conformance.shrink.explain import Explained, Failing, alike, explain, special_classes
from uop.conformance.shrink.kernels import calls_alone, reduce_kernels
from uop.conformance.shrink.probe import LOSSES, Seen, Sparing, probe_of, remembering
from uop.conformance.shrink.reduce import (
    Candidate,
    Found,
    Probe,
    Search,
    reduce_program,
    repeated,
)
from uop.conformance.shrink.writing import unshrunk, written
from uop.conformance.suite.case import Batch, Case, CaseId, InvalidCase
from uop.conformance.workers.again import ordinary_data
from uop.spec.graph import ProgramKind, kind_of

DRAWS = 64
"""The values that are tried for each input."""
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
    smallest, last_failure = in_ordinary_values(judge, reduced, probe)
    alone = Case(case.id, smallest.root, (Batch(smallest.inputs),))
    shrunk = Failing(alone, replace(last_failure, batch=0, program=0), is_shrunk=True)
    is_new = not is_lost and explain(shrunk, causes, run).cause is None
    when = conditions(judge, smallest, last_failure) if is_new else When()
    message = "\n".join(filter(None, [last_failure.message, judge.explain(alone)]))
    explained = replace(last_failure, message=message)
    return replace(written(case.id, smallest, explained, judge.profile), when=when)


def in_ordinary_values(judge: Judge, found: Found, probe: Probe) -> Found:
    """The program with ordinary values if it fails alike on some, else as it is.

    A fault of ordinary values shows on special ones too, where cases of these come first.
    """
    program, failure = found
    root = program.root
    if kind_of(root).calls_kernels or failure.element is None or not special_classes(program):
        return found
    batches = tuple(map(Batch, ordinary_data(root, DRAWS)))
    case = Case(CaseId("reduce", "MIXED", "MIXED", "ordinary", 0), root, batches)
    (verdict,) = judge.judge([case])
    if verdict.failure is None:
        return found
    ordinary = replace(program, inputs=batches[verdict.failure.batch].inputs)
    (shown,) = probe([ordinary])
    if shown is None or special_classes(ordinary):
        return found

    def keeping(candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
        shown = probe(candidates)
        return [None if special_classes(c) else f for c, f in zip(candidates, shown, strict=True)]

    return reduce_program((ordinary, shown), keeping)


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
