"""Mutants: each fits its module, does something, and the machinery tells kills from crashes."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from uop.conformance.mutants.catalogue import (
    JUDGE,
    CatalogueError,
    Mutant,
    find_mutant,
    mutants,
    mutated,
)
from uop.conformance.mutants.hunt import Fate, hunt

MUTANTS = list(mutants().values())


def text_of(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_the_place_of_a_mutant_stands_once_in_its_module_and_the_fault_is_python(
    mutant: Mutant,
) -> None:
    before = text_of(mutant.module)
    after = mutated(mutant, before)
    assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_hint_does_not_give_the_place_away(mutant: Mutant) -> None:
    assert mutant.hint.endswith(".")
    assert mutant.module not in mutant.hint
    assert mutant.before not in mutant.hint
    assert mutant.breaks


def test_a_mutant_dies_of_a_case_about_what_it_breaks() -> None:
    hunted = hunt(find_mutant("quotients-of-unlike-signs"))
    assert (hunted.fate, hunted.by_name) == (Fate.KILLED, True)
    assert hunted.case.startswith("op/IDIV/")


def test_a_place_that_has_moved_is_an_error() -> None:
    mutant = find_mutant("quotients-of-unlike-signs")
    with pytest.raises(CatalogueError, match="found it 0 times"):
        mutated(mutant, "another text")
    with pytest.raises(CatalogueError, match="found it 2 times"):
        mutated(mutant, mutant.before * 2)


def test_what_judges_is_no_backend() -> None:
    assert all(m.backend in (JUDGE, "interpreter", "opencl", "cuda-host") for m in MUTANTS)
