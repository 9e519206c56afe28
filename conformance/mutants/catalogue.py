"""Reads the catalogue of mutants from the .toml files in this folder.

A mutant is a change to the code of one module, as a real fault is: it reaches tables, rules,
classes and strings alike, and the catalogue shows all of it. The definition around it and the code
itself name the place. Code is compared as syntax trees, so edits elsewhere and changes of layout
keep a fault in place. This module imports nothing that may hold a fault.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from textwrap import indent

from uop.spec.errors import UopError

FOLDER = Path(__file__).parent
JUDGE = "judge"
"""The `backend` of a mutant whose fault is in the judge."""
ALIAS = 6
"""An alias has this many characters."""

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
Code = Sequence[ast.expr] | Sequence[ast.stmt]


class PlaceError(ValueError):
    """The code to replace is not in its module exactly once: says how often it is."""


class Text:
    """The text of a module, with the byte positions of the nodes of its syntax tree."""

    def __init__(self, text: str) -> None:
        self.bytes, self.tree = text.encode(), ast.parse(text)
        lengths = map(len, self.bytes.splitlines(keepends=True))
        self._starts = list(accumulate(lengths, initial=0))

    def span(self, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt) -> slice:
        """The bytes from one node to another; decorators belong to their definition."""
        above: ast.expr | ast.stmt = next(iter(getattr(first, "decorator_list", ())), first)
        start = self._starts[above.lineno - 1] + first.col_offset
        end_line, end_column = last.end_lineno, last.end_col_offset
        assert end_line is not None
        assert end_column is not None
        return slice(start, self._starts[end_line - 1] + end_column)

    def with_fault(self, place: slice, fault: str) -> str:
        return (self.bytes[: place.start] + fault.encode() + self.bytes[place.stop :]).decode()


def with_fault(text: str, inside: str, before: str, after: str) -> str:
    """Replace `before` with `after` in the text of a module; it stands once `inside` a definition.

    `inside` is a dotted name of classes and functions that ends in one of them or in a table; empty
    means the whole module. Code that is not Python, such as C in a string, is compared as text.
    """
    module = Text(text)
    scope = _definition(module.tree, inside)
    places = [module.span(code[0], code[-1]) for code in _equal(scope, _code(before))]
    if places:
        column = places[0].start - module.bytes.rfind(b"\n", 0, places[0].start) - 1
        if all(isinstance(node, ast.expr) for node in (*_code(before), *_code(after))):
            after = f"({after})"
        else:
            after = indent(after, " " * column)[column:]
    else:
        places = _equal_text(module, scope, before.encode())
    if len(places) != 1:
        raise PlaceError(f"expected once in {inside or 'the module'}, found {len(places)} times")
    return module.with_fault(places[0], after)


def _definition(tree: ast.Module, name: str) -> ast.Module | Definition:
    scope: ast.Module | Definition = tree
    for part in filter(None, name.split(".")):
        body = getattr(scope, "body", ())
        named = [s for s in body if isinstance(s, Definition) and _name(s) == part]
        if len(named) != 1:
            raise PlaceError(f"expected a definition {name}, found {part} {len(named)} times")
        (scope,) = named
    return scope


def _name(definition: Definition) -> str:
    if isinstance(definition, ast.FunctionDef | ast.ClassDef):
        return definition.name
    target = definition.targets[0] if isinstance(definition, ast.Assign) else definition.target
    return target.id if isinstance(target, ast.Name) else ""


def _code(text: str) -> Code:
    """Parse an expression, or statements; empty for text that is not Python."""
    try:
        return [ast.parse(f"({text})", mode="eval").body]
    except SyntaxError:
        pass
    try:
        return ast.parse(text).body
    except SyntaxError:
        return []


def _equal(scope: ast.AST, code: Code) -> Iterator[Code]:
    """The places in a scope with the same syntax tree."""
    wanted = [ast.dump(node) for node in code]
    for parent in ast.walk(scope):
        for _, held in ast.iter_fields(parent):
            nodes = held if isinstance(held, list) else [held]
            for k in range(len(nodes) - len(wanted) + 1 if wanted else 0):
                part = nodes[k : k + len(wanted)]
                if all(isinstance(n, ast.AST) for n in part) and [*map(ast.dump, part)] == wanted:
                    yield part


def _equal_text(module: Text, scope: ast.Module | Definition, wanted: bytes) -> list[slice]:
    within = (
        slice(0, len(module.bytes)) if isinstance(scope, ast.Module) else module.span(scope, scope)
    )
    places, start = [], module.bytes.find(wanted, within.start, within.stop)
    while start >= 0:
        places.append(slice(start, start + len(wanted)))
        start = module.bytes.find(wanted, start + 1, within.stop)
    return places


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
