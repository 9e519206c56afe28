"""The small backend conforms, and each of its seeded faults is one: a program shows it."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from uop.conformance import mutants as package
from uop.conformance.judging.expected import accepted_on
from uop.conformance.judging.storage import from_literal
from uop.conformance.judging.verdict import Status, Verdict, verdict_of
from uop.conformance.mutants.catalogue import Mutant, mutants
from uop.conformance.mutants.run import Finder
from uop.conformance.mutants.small import SmallBackend
from uop.conformance.protocol.types import Backend, Outputs, Program
from uop.conformance.report.model import Conclusion
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.spec.latitude import STRICT
from uop.spec.text.program import print_program
from uop.spec.text.uop_file import read_file

KIND = "small backend"
SMALL = f"{SmallBackend.__module__}:{SmallBackend.__name__}"
FAULTS = [mutant for mutant in mutants().values() if mutant.kind == KIND]
MODULES = ("small", "small_graph")


def witnesses() -> dict[str, Case]:
    """For each fault a program, on two sets of inputs: the second is the first in reverse."""
    found = {}
    for case in read_file(Path(__file__).with_name("small_faults.uop")).cases:
        assert case.root is not None
        first = {slot: from_literal(a) for slot, a in case.inputs.items()}
        second = {slot: np.flip(a) for slot, a in first.items()}
        id = CaseId("graph", "MIXED", "MIXED", case.id, 0)
        found[case.id] = Case(id, case.root, (Batch(first), Batch(second)))
    return found


WITNESSES = witnesses()


def judged(backend: Backend, case: Case) -> Verdict:
    """The verdict on a case that is sent whatever the backend lists."""
    batches = tuple(batch.inputs for batch in case.batches)
    (outcome,) = backend.run([Program(print_program(case.root), batches)])
    assert isinstance(outcome, Outputs), outcome
    return verdict_of(case, [accepted_on(case, k, STRICT) for k in range(len(batches))], outcome)


def with_fault(mutant: Mutant, patch: pytest.MonkeyPatch) -> Backend:
    """The small backend, loaded anew with a fault in one of its modules."""
    for name in MODULES:
        patch.setattr(package, name, getattr(package, name))
        patch.delitem(sys.modules, f"{package.__name__}.{name}")
    patch.setattr(sys, "meta_path", [Finder([mutant]), *sys.meta_path])
    faulty: Backend = import_module(SmallBackend.__module__).SmallBackend()
    return faulty


@pytest.mark.slow
def test_the_small_backend_conforms(tmp_path: Path) -> None:
    report = conform(Options(SMALL, effort="smoke", workers=2, output=tmp_path))
    assert report.conclusion is Conclusion.CONFORMS
    assert report.summary.passed > 0


def test_each_fault_has_a_witness() -> None:
    assert sorted(WITNESSES) == sorted(mutant.name for mutant in FAULTS)
    assert len(FAULTS) >= 45
    assert {mutant.backend for mutant in FAULTS} == {SMALL}


@pytest.mark.parametrize("mutant", FAULTS, ids=lambda mutant: mutant.name)
def test_a_fault_shows_on_its_witness_alone(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = WITNESSES[mutant.name]
    assert judged(SmallBackend(), case).status is Status.PASSED
    verdict = judged(with_fault(mutant, monkeypatch), case)
    assert verdict.status is Status.FAILED
