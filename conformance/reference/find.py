"""Finds the subject of a name: an op, a label, a decision; and its place in the manual."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from uop.compiler.rewriting.rules import RULES
from uop.conformance.reference import glossary
from uop.conformance.reference.glossary import LEGEND, Legend, Term
from uop.spec.conditions.clauses import OF_ALL_OPS, clauses
from uop.spec.conditions.labels import CONDITIONS, Condition
from uop.spec.documents.decisions import Decision, decisions
from uop.spec.documents.rows import Row, rows
from uop.spec.editions import EDITIONS
from uop.spec.editions.edition import Word
from uop.spec.errors import UopError
from uop.spec.kernel import optimization
from uop.spec.kernel.forms import FORMS
from uop.spec.latitude import KNOBS
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Clause, Constraint, OpDef, labels

NEAREST = 4
LONGEST = 60
"""A message quotes this many characters of a name."""
BASE = "UOP_DOCS"
"""The environment variable with the address of the site."""
_NAMED = re.compile(r"D-\d{3}(?= )|\w+\.\w+$")


class NoSuchNameError(UopError):
    """Nothing has this name; says the nearest ones."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the ledger with a name."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """A word that only editions have: by edition, in their order."""

    name: str
    words: tuple[tuple[str, Word], ...]


@dataclass(frozen=True, slots=True)
class Conditions:
    """The condition of a label in each place: an edition, a target, or "" for everywhere."""

    label: str
    places: tuple[tuple[str, Condition], ...]


@dataclass(frozen=True, slots=True)
class Knob:
    """A field of a profile."""

    name: str


@dataclass(frozen=True, slots=True)
class CompilerRule:
    """A rule of the compiler's table."""

    name: str


Subject = (
    CompilerRule
    | OpDef
    | Constraint
    | Clause
    | Conditions
    | Words
    | Decision
    | Rows
    | Knob
    | Term
    | Legend
)


def find(name: str) -> Subject:
    """The subject of a name, in any case of letters. NoSuchNameError where there is none.

    Words may be spelled as types: BufferView is BUFFER_VIEW. Where an op and a knob or a word of
    the glossary share a name, such as `WMMA` and `wmma`, capitals name the op.
    """
    if name in KNOBS:
        return Knob(name)
    if name in glossary.terms():
        return glossary.terms()[name]
    if op := Op.__members__.get(name.upper()):
        if op not in DECLARATIONS:
            raise NoSuchNameError(f"the op {op.name} is not declared: a package has named it alone")
        return DECLARATIONS[op]
    known = _known()
    subject = known.get(name.casefold())
    if subject is None or isinstance(subject, Rows):
        subject = _joined(known).get(name.casefold(), subject)
    if subject is not None:
        return subject
    if not name.strip():
        raise NoSuchNameError("expected a name, found nothing")
    near = get_close_matches(name.casefold(), known, NEAREST, 0.6)
    shown = name if len(name) <= LONGEST else f"{name[:LONGEST]}..."
    raise NoSuchNameError(
        f"nothing is called {shown!r}"
        + (f"; near: {', '.join(dict.fromkeys(_written(n, known[n]) for n in near))}" * bool(near))
    )


def _joined(known: Mapping[str, Subject]) -> dict[str, Subject]:
    """Ops and words of editions, by their names without underscores."""
    named = ((name, s) for name, s in known.items() if isinstance(s, OpDef | Words))
    return {name.replace("_", ""): s for name, s in named if "_" in name}


@cache
def words_of(name: str) -> tuple[tuple[str, Word], ...]:
    """The word of this name in each edition that has it."""
    return tuple((e.name, e.words[name]) for e in EDITIONS.values() if name in e.words)


def own_conditions(word: Word) -> tuple[Condition, ...]:
    """The conditions on reading a word, besides the constraints of the core nodes."""
    counted = (word.arity,) if word.least or word.most is not None else ()
    typed = (word.typed,) if word.needs_arg else ()
    return (*counted, *typed, *word.conditions)


@cache
def conditions() -> dict[str, Conditions]:
    """Every label that is no constraint of an op alone."""
    by_label: dict[str, list[tuple[str, Condition]]] = {}
    for place, condition in _conditions_by_place():
        by_label.setdefault(condition.label, []).append((place, condition))
    return {label: Conditions(label, tuple(places)) for label, places in by_label.items()}


def _conditions_by_place() -> Iterator[tuple[str, Condition]]:
    # The compiler takes long to load, and few subjects need it.
    from uop.compiler.pipeline import TARGETS
    from uop.compiler.stages.select.stage import selected_for

    for condition in (*CONDITIONS.values(), *optimization.CONDITIONS.values()):
        yield "", condition
    for form in FORMS.values():
        yield from (("", condition) for condition in form.conditions.values())
    for target in TARGETS.values():
        yield target.name, selected_for(target).conditions["target"]
    for edition in EDITIONS.values():
        for word in edition.words.values():
            yield from ((edition.name, condition) for condition in own_conditions(word))


def rule_names() -> list[str]:
    """The rules of the compiler's table, in their order."""
    return [name for stage in RULES.values() for rules in stage.values() for name in rules]


def _known() -> dict[str, Subject]:
    """Every name in lower case. Where subjects share one, the op wins, then the label."""
    table: dict[str, Subject] = {}
    by_tail: dict[str, list[Row]] = {}
    for row in rows().values():
        table[row.id.casefold()] = Rows(row.id, (row,))
        by_tail.setdefault(row.id.rpartition("/")[2].casefold(), []).append(row)
    for tail, same in by_tail.items():
        table[tail] = Rows(same[0].id.rpartition("/")[2], tuple(same))
    for edition in EDITIONS.values():
        table |= {name.casefold(): Words(name, words_of(name)) for name in edition.words}
    table |= glossary.terms()
    table[glossary.LEGEND] = glossary.legend()
    table |= {number.casefold(): d for number, d in decisions().items()}
    for rule in rule_names():
        # As a report names it too, after the stage in which it fired.
        table |= dict.fromkeys([rule, *(f"{stage}/{rule}" for stage in FORMS)], CompilerRule(rule))
    table |= {name.casefold(): Knob(name) for name in KNOBS}
    table |= {label.casefold(): c for label, c in conditions().items()}
    table |= {label.casefold(): c for label, c in clauses().items()}
    table |= {label.casefold(): c for label, c in labels().items()}
    table |= {op.name.casefold(): d for op, d in DECLARATIONS.items()}
    return table


def _written(name: str, subject: Subject) -> str:
    match subject:
        case OpDef(op=op):
            return op.name
        case Decision(number=number):
            return number
        case Constraint(label=label) | Clause(label=label) | Conditions(label=label):
            return label
        case Rows(rows=(row,)) if row.id.casefold() == name:
            return row.id
        case Rows(name=written) | Words(name=written) | Knob(name=written) | Term(word=written):
            return written
        case CompilerRule(written):
            return written
    return name


def place_of(subject: Subject) -> str:
    """The page of a subject and its anchor, as `ops/PERMUTE#c1`."""
    match subject:
        case OpDef(op=op):
            return f"ops/{op.name}"
        case Conditions(label=label):
            return f"labels#{label}"
        case Clause(label=label) if subject in OF_ALL_OPS:
            return f"labels#{label}"
        case Constraint(label=label) | Clause(label=label):
            return f"ops/{label.replace('.', '#')}"
        case Decision(number=number):
            return f"decisions#{number}"
        case CompilerRule(name=name):
            return f"rules#{name}"
        case Term(word=word):
            return f"glossary#{slug(word)}"
        case Legend():
            return f"glossary#{LEGEND}"
        case Knob(name=name):
            return f"profiles#{name}"
        case Words(name=name):
            return f"editions#{slug(name)}"
        case Rows(rows=same):
            return f"documents#{same[0].id}"


def address_of(subject: Subject) -> str:
    """The place of a subject; its whole address where UOP_DOCS has that of the site."""
    place, base = place_of(subject), os.environ.get(BASE)
    if not base:
        return place
    page, mark, anchor = place.partition("#")
    return f"{base.rstrip('/')}/{page}.html{mark}{anchor}"


def anchor(page: str, heading: str) -> str:
    """The anchor of a heading: `c1` for a label on the page of its op, `D-012` for a decision, a
    label elsewhere as it is, and a slug for other headings.
    """
    named = _NAMED.match(heading)
    if named is None:
        return slug(heading)
    return named[0].removeprefix(f"{page.removeprefix('ops/')}.")


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
