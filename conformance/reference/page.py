"""What is said about a subject, as sections: the terminal and the pages in docs/ print the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from uop.conformance.reference.answers.knobs import knob_sections, knobs_of
from uop.conformance.reference.answers.specials import special_values
from uop.conformance.reference.elsewhere import facts
from uop.conformance.reference.examples import Example, example_of
from uop.conformance.reference.find import (
    Conditions,
    Knob,
    Rows,
    Subject,
    Words,
    conditions,
    own_conditions,
    words_of,
)
from uop.conformance.reference.glossary import Legend, Term, chapters, legend
from uop.conformance.reference.meaningless import clause_sections
from uop.conformance.reference.readings import reading_of
from uop.conformance.reference.section import Section
from uop.conformance.reference.words import (
    latitude_words,
    property_words,
    signature,
    word_signature,
)
from uop.conformance.suite.levels import invalid
from uop.spec.decisions import Decision, decisions
from uop.spec.documents.rows import Row, rows, rows_of
from uop.spec.editions.edition import Word
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.latitude import KNOBS
from uop.spec.ops.names import Op
from uop.spec.registry import Clause, Constraint, OpDef
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, param

T = TypeVar("T")

ELSE = {"u": "else no meaning", "n": "else unsupported"}
"""What becomes of a program for which a clause does not hold, by the letter of its label."""


@dataclass(frozen=True, slots=True)
class Page:
    """All that is said about a subject."""

    title: str
    lead: str
    sections: tuple[Section, ...] = ()
    example: Example | None = field(default=None, compare=False)


def page_of(subject: Subject) -> Page:
    match subject:
        case OpDef():
            return op_page(subject)
        case Constraint():
            return label_page(subject)
        case Clause(label, title):
            lead = f"{label.partition('.')[0]}: {title}; {ELSE[label[-2]]}."
            return Page(label, lead, tuple(clause_sections(subject)))
        case Conditions():
            return conditions_page(subject)
        case Words(name, words):
            return words_page(name, words)
        case Decision(number, title, text):
            return Page(f"{number} {title}", "", (Section("", text=text),))
        case Knob(name):
            return Page(name, KNOBS[name], tuple(knob_sections(name)))
        case Rows(name, found):
            return Page(name, "", (_row_section(found),))
        case Term():
            return term_page(subject)
        case Legend(lines=lines):
            return Page("The figures under a verdict", "", (Section("", ("", ""), lines),))


def op_page(declaration: OpDef) -> Page:
    """The page of an op."""
    name = declaration.op.name
    example = example_of(declaration.op)
    sections = [
        Section("Example", code=example.text if example else ""),
        _dtypes(declaration),
        *special_values(declaration),
        Section("Latitude", ("dtypes", "accepted"), tuple(latitude_words(declaration))),
        Section("Knobs", ("knob", "about"), tuple(knobs_of(declaration.op))),
        Section("No value", text=declaration.undefined),
        Section("Words", ("word", "means"), _words_about(name)),
        _elsewhere(name),
        Section(
            "Constraints",
            ("label", "holds"),
            tuple((c.label, c.title) for c in declaration.constraints),
        ),
        Section(
            "When it runs",
            ("label", "holds"),
            tuple((c.label, f"{c.title}; {ELSE[c.label[-2]]}") for c in declaration.clauses),
        ),
        Section("Properties", ("property", "rule"), tuple(property_words(declaration))),
        _decomposition(declaration, example.op_node if example else None),
        _gradient(declaration, example.op_node if example else None),
        _editions(name),
        _row_section(rows_of(name)),
        _decision_section(rows_of(name)),
    ]
    kept = tuple(s for s in sections if s.table or s.code or s.text)
    return Page(signature(declaration), declaration.doc, kept, example)


def label_page(constraint: Constraint) -> Page:
    """The page of a constraint, with the program that must be rejected for it."""
    op = constraint.label.partition(".")[0]
    lead = f"{op}: {constraint.title}."
    elsewhere = conditions().get(constraint.label)
    sections = [] if elsewhere is None else [_places(elsewhere)]
    texts = invalid.programs().get(constraint.label)
    if not texts:
        return Page(constraint.label, lead, tuple(sections))
    sections.append(Section("Must be rejected", code=texts[0]))
    try:
        parse(texts[0])
    except InvalidError as error:
        said = str(error).partition("\n  at:")[0]
        sections.append(Section("Said", code=said + "\n"))
    return Page(constraint.label, lead, tuple(sections))


def conditions_page(subject: Conditions) -> Page:
    """The page of a label that is no constraint of an op."""
    where = subject.label.partition(".")[0]
    places = _places(subject)
    lead = f"{where}: {subject.found[0][1].title}."
    return Page(subject.label, lead, (places,) if places.table else ())


def words_page(name: str, words: tuple[tuple[str, Word], ...]) -> Page:
    """The page of a word that the core does not have: what each edition means by it."""
    found = tuple(row for row in rows().values() if row.id.rpartition("/")[2] == name)
    sections = []
    for edition, word in words:
        sections.append(Section(f"Edition {edition}", text=word_signature(word)))
        own = own_conditions(word)
        sections.append(
            Section("Constraints", ("label", "holds"), tuple((c.label, c.title) for c in own))
        )
        reading = reading_of(edition, name)
        if reading is not None:
            sections.append(Section("Example", code=reading.text))
            sections.append(Section("In core ops", code=reading.core))
    sections += [_row_section(found), _decision_section(found)]
    lead = next((row.says for row in found), words[0][1].doc)
    kept = tuple(s for s in sections if s.table or s.code or s.text)
    return Page(name, lead, kept)


def term_page(term: Term) -> Page:
    """The page of a word; of one that stands under a verdict, with all that stands there."""
    sections = []
    if term.more:
        sections.append(Section("", text=term.more))
    if term.see:
        sections.append(
            Section("See", text=", ".join(f"uop explain {_quoted(s)}" for s in term.see))
        )
    if term.figure:
        sections.append(Section("Under a verdict", ("", ""), legend().lines))
    return Page(term.word, term.says, tuple(sections))


def _quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name


def _places(subject: Conditions) -> Section:
    """Where a label is one of an edition or a target, with what it says there."""
    table = tuple((place, c.title) for place, c in subject.found if place)
    return Section("Where", ("in", "holds"), table)


def _editions(name: str) -> Section:
    """How the editions write a node of this name; one without such a word is not listed."""
    written = ((word_signature(word), edition) for edition, word in words_of(name))
    return Section("Editions", ("edition", "signature"), _by_said(written))


def _dtypes(declaration: OpDef) -> Section:
    return Section("Dtypes", text=" ".join(d.name for d in declaration.dtypes))


def _decomposition(declaration: OpDef, u: UOp | None) -> Section:
    if declaration.decomposition is None or u is None:
        return Section("Decomposition")
    made = u.decompose()
    return Section("Decomposition", code="" if made is None else print_program(made))


def _gradient(declaration: OpDef, u: UOp | None) -> Section:
    """What each operand gets of the gradient g of the example's node."""
    if declaration.gradient is None or u is None or not u.dtype.is_float:
        return Section("Gradient")
    slot = max((*slots_of(u), 0)) + 1
    g = param(slot, u.shape, u.dtype)
    try:
        parts = declaration.gradient(UOp, u, g)  # type: ignore[arg-type]
    except UnsupportedError as error:
        return Section("Gradient", text=f"None: {error}.")
    names = [declaration.src[min(k, len(declaration.src) - 1)] for k in range(len(u.src))]
    reached = [(name.rstrip("?*"), part) for name, part in zip(names, parts, strict=True) if part]
    if not reached:
        return Section("Gradient", text="It stops here.")
    head = f"; g is PARAM {slot}; the TUPLE holds that of {', '.join(n for n, _ in reached)}"
    made = UOp(Op.TUPLE, *(cast(UOp, part) for _, part in reached))
    return Section("Gradient", code=f"{head}\n{print_program(made)}")


def _row_section(found: tuple[Row, ...]) -> Section:
    """The rows of the documents; what several say in the same words stands once."""
    documents = (((row.id.partition("/")[2], row.says, row.status), row.document) for row in found)
    rows = tuple((said[0], *said[1]) for said in _by_said(documents))
    return Section("In the documents", ("document", "row", "says", "here"), rows)


def _by_said(pairs: Iterable[tuple[T, str]]) -> tuple[tuple[str, T], ...]:
    """What was said, each once, behind the names of those who say it."""
    found: dict[T, list[str]] = {}
    for said, name in pairs:
        found.setdefault(said, []).append(name)
    return tuple((" ".join(names), said) for said, names in found.items())


def _words_about(name: str) -> tuple[tuple[str, str], ...]:
    """The words of the glossary that lead to an op."""
    about = (t for words in chapters().values() for t in words if name in t.see)
    return tuple((t.word, f"{t.says} {t.more}") for t in about if t.word.upper() != name)


def _elsewhere(name: str) -> Section:
    """What others do."""
    rows = tuple((fact.who, fact.text, fact.source) for fact in facts().get(name, ()))
    return Section("Elsewhere", ("in", "what happens", "source"), rows)


def _decision_section(found: tuple[Row, ...]) -> Section:
    numbers = sorted({n for row in found for n in row.decisions if n in decisions()})
    return Section(
        "Decisions", ("number", "title"), tuple((n, decisions()[n].title) for n in numbers)
    )
