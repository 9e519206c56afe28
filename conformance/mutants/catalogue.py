"""Reads the catalogue of mutants from the .toml files in this folder.

A mutant is a change to the code of one module, as a real fault is: it reaches tables, rules,
classes and strings alike, and the catalogue shows all of it. This module imports nothing that may
hold a fault.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from uop.conformance.mutants.place import PlaceError, with_fault
from uop.spec.errors import UopError

FOLDER = Path(__file__).parent
JUDGE = "judge"
"""The `backend` of a mutant whose fault is in the judge."""
ALIAS = 6
"""An alias has this many characters."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One seeded fault.

    `kind` is its class. The mutant replaces the code `before`, which stands once `inside` a
    definition of its `module`, with `after`. `backend` runs with the fault, or is JUDGE. `breaks`
    lists the ops and labels of the fault: a case about one of them kills it by name. `hint`
    describes the fault without the answer. The cases of `level` run first. A faulty judge judges by
    `profile`. A judge that accepts too much is killed by wrong results that it accepts: those of
    the backends `against`, which are mutants, or adversaries that push an op outside
    (`adversary:MAX`) or take the liberties of another profile (`adversary::max_nan=number`) in the
    cases of `level`. `equivalent` proves that no program shows the fault; empty for other mutants.
    `source` names an issue of another project with such a fault, or the class of bugs; empty where
    it was made up.
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
    source: str = ""

    @property
    def alias(self) -> str:
        """Another name, which does not describe the fault."""
        return sha256(self.name.encode()).hexdigest()[:ALIAS]


class NoSuchMutantError(UopError):
    """No mutant has this name."""


class CatalogueError(Exception):
    """The code of a mutant is not in its module exactly once, or two mutants share a name."""


@cache
def mutants() -> Mapping[str, Mutant]:
    """Every mutant by name, in the order of the files."""
    catalogue: dict[str, Mutant] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            lists = {name: tuple(table.get(name, ())) for name in ("breaks", "against")}
            mutant = Mutant(**{"inside": "", **table, **lists})
            if mutant.name in catalogue:
                raise CatalogueError(f"two mutants are named {mutant.name}")
            catalogue[mutant.name] = mutant
    return catalogue


def find_mutant(name: str) -> Mutant:
    """The mutant of that name or alias. NoSuchMutantError where there is none."""
    mutant = mutants().get(name) or _by_alias().get(name)
    if mutant is None:
        raise NoSuchMutantError(f"no mutant {name!r}: `uop mutants --list` names them")
    return mutant


def find_mutants(names: str) -> tuple[Mutant, ...]:
    """The mutants of names or aliases that commas separate. Raises as `find_mutant` does."""
    return tuple(find_mutant(name) for name in names.split(","))


@cache
def _by_alias() -> Mapping[str, Mutant]:
    by_alias: dict[str, Mutant] = {}
    for mutant in mutants().values():
        other = by_alias.setdefault(mutant.alias, mutant)
        if other is not mutant:
            raise CatalogueError(f"{mutant.name} and {other.name} have one alias")
    return by_alias


def mutated(mutant: Mutant, text: str) -> str:
    """The text of its module with the fault. CatalogueError unless its code is there once."""
    try:
        return with_fault(text, mutant.inside, mutant.before, mutant.after)
    except PlaceError as error:
        raise CatalogueError(f"{mutant.name}: {mutant.module}: {error}") from None
