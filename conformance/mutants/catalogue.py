"""Reads the catalogue of mutants from the .toml files beside this one.

What may hold a fault is not imported here: of the project only its errors are.

A mutant is a change to the code of one module: that is what a real fault looks like, it reaches
tables, rules, classes and strings alike, and whoever reads the catalogue sees all of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from uop.conformance.mutants.place import PlaceError, with_fault
from uop.spec.errors import UopError

FOLDER = Path(__file__).parent
JUDGE = "judge"
"""Stands for the backend of a mutant whose fault is put into what judges."""
ALIAS = 6
"""Characters of an alias."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One seeded fault.

    `kind` is its class; in its `module`, `inside` a definition, the code `before` stands once, and
    `after` in its place once mutated. `backend` is the one whose process it is put into, or JUDGE.
    `breaks` are the ops and labels that it is about: a check of one of them kills it by name.
    `hint` says what it looks like from outside, without the answer. The cases of `level` come
    before those of the others. A fault of what judges is one of judging by `profile`. What accepts
    too much is found by results that must be accused: of the backends `against`, mutants or
    adversaries that push an op outside (`adversary:MAX`) or that take the liberties of another
    profile (`adversary::max_nan=number`, in the cases of `level`). `equivalent` is the proof that
    no program shows it, empty for the others.
    """

    name: str
    kind: str
    module: str
    inside: str
    before: str
    after: str
    breaks: tuple[str, ...]
    hint: str
    backend: str = "interpreter"
    level: str = ""
    profile: str = "strict"
    against: tuple[str, ...] = ()
    equivalent: str = ""

    @property
    def alias(self) -> str:
        """Another name, which gives nothing away."""
        return sha256(self.name.encode()).hexdigest()[:ALIAS]


class NoSuchMutantError(UopError):
    """A name that no mutant has."""


class CatalogueError(Exception):
    """A mutant whose text does not fit its module: says which, and how often it was found."""


@cache
def mutants() -> Mapping[str, Mutant]:
    """Every mutant by its name, in the order of the files."""
    found: dict[str, Mutant] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            mutant = _mutant(table)
            if mutant.name in found:
                raise CatalogueError(f"two mutants are named {mutant.name}")
            found[mutant.name] = mutant
    return found


def find_mutant(name: str) -> Mutant:
    """The mutant of that name or alias. NoSuchMutantError where there is none."""
    found = mutants().get(name) or _by_alias().get(name)
    if found is None:
        raise NoSuchMutantError(f"no mutant {name!r}: `uop mutants --list` names them")
    return found


@cache
def _by_alias() -> Mapping[str, Mutant]:
    found: dict[str, Mutant] = {}
    for mutant in mutants().values():
        other = found.setdefault(mutant.alias, mutant)
        if other is not mutant:
            raise CatalogueError(f"{mutant.name} and {other.name} have one alias")
    return found


def mutated(mutant: Mutant, text: str) -> str:
    """The text of its module with the fault. CatalogueError unless the place stands there once."""
    try:
        return with_fault(text, mutant.inside, mutant.before, mutant.after)
    except PlaceError as error:
        raise CatalogueError(f"{mutant.name}: {mutant.module}: {error}") from None


def _mutant(table: dict[str, Any]) -> Mutant:
    lists = {name: tuple(table.get(name, ())) for name in ("breaks", "against")}
    return Mutant(**{"inside": "", **table, **lists})
