"""Faults of the judge in whole runs: each fits its module, and of each class one is killed here."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest
from faults_of_judge import FOLDER, Fault, faults, is_killed

import uop
from uop.conformance.mutants.catalogue import mutants, mutated

FAULTS = list(faults().values())
FIRST = {fault.mutant.kind: fault for fault in reversed(FAULTS)}
"""Of each class the first, as all take a minute: `faults_of_judge.py` run by itself."""


def names(faults: list[Fault]) -> list[str]:
    return [fault.mutant.name for fault in faults]


@pytest.mark.parametrize("fault", FAULTS, ids=names(FAULTS))
def test_the_place_of_a_fault_stands_once_in_its_module(fault: Fault) -> None:
    spec = find_spec(fault.mutant.module)
    assert spec is not None
    assert spec.origin is not None
    before = Path(spec.origin).read_text(encoding="utf-8")
    after = mutated(fault.mutant, before)
    assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))


@pytest.mark.parametrize("fault", FAULTS, ids=names(FAULTS))
def test_what_kills_a_fault_is_a_test(fault: Fault) -> None:
    file, _, test = fault.killed_by.partition("::")
    assert f"def {test.partition('[')[0]}(" in Path(FOLDER, file).read_text(encoding="utf-8")


def test_no_fault_has_the_name_of_a_mutant() -> None:
    assert len(set(names(FAULTS))) == len(FAULTS)
    assert not mutants().keys() & set(names(FAULTS))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FIRST.values(), ids=list(FIRST))
def test_a_fault_makes_its_test_fail(fault: Fault) -> None:
    assert is_killed(fault, Path(str(uop.__file__)).resolve().parent)
