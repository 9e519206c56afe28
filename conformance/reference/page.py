"""Builds the page of a subject, or of two, as sections, which the terminal and docs/ print."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from uop.conformance.reference import find
from uop.conformance.reference.answers.specials import (
    differing_values,
    knob_sections,
    knobs_of,
    special_values,
)
from uop.conformance.reference.examples import (
    Example,
    decomposition_of,
    example_of,
    gradient_of,
    readings,
    undefined_example,
)
from uop.conformance.reference.glossary import Legend, Term, chapters, facts, legend
from uop.conformance.reference.words import (
    Section,
    decisions_of,
    differences,
    grouped,
    latitude_words,
    property_words,
    signature,
    word_signature,
)
from uop.conformance.suite.levels import invalid
from uop.spec.args import Arg
from uop.spec.conditions.labels import Condition
from uop.spec.documents.decisions import Decision, decisions
from uop.spec.documents.rows import Row, rows, rows_of
from uop.spec.editions.edition import Word
from uop.spec.errors import InvalidError, UopError
from uop.spec.latitude import KNOBS
from uop.spec.ops.names import Op
from uop.spec.registry import Clause, Constraint, OpDef
from uop.spec.text.program import Unbuilt, parse

ELSE = {"u": "else no meaning", "n": "else unsupported"}
"""What a program is for which a clause does not hold, by the letter of its label."""
BY_TYPE_ALONE = (
    "No text and no JSON breaks it. Both take the type of the arg from the op: without fields {0} "
    "has its default arg, and with those of another op the text is malformed. In Python "
    "`UOp(Op.{0}, ..., arg=Arg())` breaks it."
)


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a subject: sections below a title and a leading sentence."""

    title: str
    lead: str
    sections: tuple[Section, ...] = ()
    example: Example | None = field(default=None, compare=False)


def page_of(subject: find.Subject) -> Page:
    """The page of what `find` found."""
    match subject:
        case OpDef():
            return op_page(subject)
        case Constraint():
            return label_page(subject)
        case Clause():
            return clause_page(subject)
        case find.Conditions():
            return conditions_page(subject)
        case find.Words(name, words):
            return words_page(name, words)
        case Decision(number, title, text):
            return Page(f"{number} {title}", "", (Section("", text=text),))
        case find.Knob(name):
            return Page(name, KNOBS[name], tuple(knob_sections(name)))
        case find.CompilerRule(name):
            return rule_page(name)
        case find.Rows(name, of_name):
            return Page(name, "", (_row_section(of_name),))
        case Term():
            return term_page(subject)
        case Legend(lines=lines):
            return Page("The figures under a verdict", "", (Section("", ("", ""), lines),))


def rule_page(name: str) -> Page:
    """The page of a rule of the compiler: its left sides, and what becomes of them."""
    # The compiler takes long to load, and few subjects need it.
    from uop.compiler.rewriting.patterns import patterns
    from uop.compiler.rewriting.simplify import SIMPLIFY

    found = [p for p in patterns("simplify") if p.rule == name]
    rule = next(rule for rule in SIMPLIFY.rules if rule.__name__ == name)
    is_pattern = all(p.right for p in found)
    about = "" if is_pattern else " ".join((rule.__doc__ or "").split())
    dtype = "" if found[0].dtype is None else f" on {found[0].dtype.name}"
    header = ("before", "after", "if") if is_pattern else ("before", "if")
    shown = ((p.left, p.right, p.guard) if is_pattern else (p.left, p.guard) for p in found)
    rows = tuple(tuple(ast.unparse(e) if e else "" for e in row) for row in shown)
    return Page(f"{name}{dtype}", about, (Section("Rule of the compiler", header, rows),))


def op_page(declaration: OpDef) -> Page:
    """The page of an op."""
    name = declaration.op.name
    example = example_of(declaration.op)
    sections = [
        Section("Example", code=example.text if example else ""),
        Section("Dtypes", text=" ".join(d.name for d in declaration.dtypes)),
        *special_values(declaration),
        _latitude(declaration),
        Section("Knobs", ("knob", "about"), tuple(knobs_of(declaration.op))),
        Section("No value", text=declaration.undefined),
        Section("Words", ("word", "means"), _words_about(name)),
        _elsewhere(name),
        _constraints(declaration.constraints),
        Section(
            "When it runs",
            ("label", "holds"),
            tuple((c.label, f"{c.title}; {ELSE[c.label[-2]]}") for c in declaration.clauses),
        ),
        Section("Properties", ("property", "rule"), tuple(property_words(declaration))),
        *(() if example is None else (decomposition_of(example), gradient_of(example))),
        _editions(name),
        _row_section(rows_of(name)),
        _decision_section(rows_of(name)),
    ]
    return Page(signature(declaration), declaration.doc, _filled(sections), example)


def label_page(constraint: Constraint) -> Page:
    """The page of a constraint, with the program that must be rejected for it, or why none is."""
    op = constraint.label.partition(".")[0]
    lead = f"{op}: {constraint.title}."
    elsewhere = find.conditions().get(constraint.label)
    sections = [] if elsewhere is None else [_places(elsewhere)]
    texts = invalid.programs().get(constraint.label)
    if not texts:
        return Page(constraint.label, lead, (*sections, *_by_type_alone(Op[op])))
    sections.append(Section("Must be rejected", code=texts[0]))
    try:
        parse(texts[0])
    except InvalidError as error:
        sections.append(_error(error))
    return Page(constraint.label, lead, tuple(sections))


def _by_type_alone(op: Op) -> Iterator[Section]:
    """Why no text breaks the constraint on an arg that has a default, and what Python says."""
    example = example_of(op)
    if example is not None:
        yield Section("", text=BY_TYPE_ALONE.format(op.name))
        try:
            Unbuilt(op, example.op_node.src, Arg()).build()
        except InvalidError as error:
            yield _error(error)


def clause_page(clause: Clause) -> Page:
    """The page of a clause, with a program that breaks it and the error; none for a limit."""
    label = clause.label
    lead = f"{label.partition('.')[0]}: {clause.title}; {ELSE[label[-2]]}."
    example = undefined_example(label)
    if example is None:
        return Page(label, lead)
    text, error = example
    return Page(label, lead, (Section("Without meaning", code=text), *map(_error, error)))


def _error(error: UopError) -> Section:
    """The message of an error without the line of the user's code."""
    return Section("Said", code=str(error).partition("\n  at:")[0] + "\n")


def conditions_page(subject: find.Conditions) -> Page:
    """The page of a label that is no constraint of an op."""
    lead = f"{subject.label.partition('.')[0]}: {subject.places[0][1].title}."
    return Page(subject.label, lead, _filled([_places(subject)]))


def words_page(name: str, words: tuple[tuple[str, Word], ...]) -> Page:
    """The page of a word that the core does not have: what each edition means by it."""
    of_word = tuple(row for row in rows().values() if row.id.rpartition("/")[2] == name)
    sections = []
    for edition, word in words:
        sections.append(Section(f"Edition {edition}", text=word_signature(word)))
        sections.append(_constraints(find.own_conditions(word)))
        reading = readings(edition).get(name)
        if reading is not None:
            sections.append(Section("Example", code=reading.text))
            sections.append(Section("In core ops", code=reading.core))
    sections += [_row_section(of_word), _decision_section(of_word)]
    lead = next((row.says for row in of_word), words[0][1].doc)
    return Page(name, lead, _filled(sections))


def _filled(sections: Iterable[Section]) -> tuple[Section, ...]:
    return tuple(s for s in sections if s.table or s.code or s.text)


def _constraints(held: Iterable[Condition]) -> Section:
    rows = tuple((c.label, c.title) for c in held)
    return Section("Constraints", ("label", "holds"), rows)


def term_page(term: Term) -> Page:
    """The page of a word; with all figures where it is one of those under a verdict."""
    see = ", ".join(f"uop explain '{s}'" if " " in s else f"uop explain {s}" for s in term.see)
    figures = legend().lines if term.figure else ()
    sections = [
        Section("", text=term.more),
        Section("See", text=see),
        Section("Under a verdict", ("", ""), figures),
    ]
    return Page(term.word, term.says, _filled(sections))


def _places(subject: find.Conditions) -> Section:
    """The editions and targets that have a label, with its meaning there."""
    titles = ((c.title, place) for place, c in subject.places if place)
    return Section("Where", ("in", "holds"), grouped(titles))


def _editions(name: str) -> Section:
    """The signature of an op in each edition that has it."""
    signatures = ((word_signature(word), edition) for edition, word in find.words_of(name))
    return Section("Editions", ("edition", "signature"), grouped(signatures))


def _latitude(declaration: OpDef) -> Section:
    """What is accepted, by dtypes, and why: the problems that the decisions solve."""
    why = (f"{n}: {decisions()[n].problem}" for n in declaration.latitude.decisions)
    words = latitude_words(declaration)
    return Section("Latitude", ("dtypes", "accepted"), words, text="\n\n".join(why))


def _row_section(of_subject: tuple[Row, ...]) -> Section:
    """The rows of the documents; equal rows of several documents are one."""
    documents = (
        ((row.id.partition("/")[2], row.says, row.status), row.document) for row in of_subject
    )
    table = tuple((names, *row) for names, row in grouped(documents))
    return Section("In the documents", ("document", "row", "says", "here"), table)


def _words_about(name: str) -> tuple[tuple[str, str], ...]:
    """The words of the glossary that lead to an op."""
    about = (t for words in chapters().values() for t in words if name in t.see)
    return tuple((t.word, f"{t.says} {t.more}") for t in about if t.word.upper() != name)


def _elsewhere(name: str) -> Section:
    rows = tuple((fact.who, fact.text, fact.source) for fact in facts().get(name, ()))
    return Section("Elsewhere", ("in", "what happens", "source"), rows)


def _decision_section(of_subject: tuple[Row, ...]) -> Section:
    return Section("Decisions", ("number", "title"), tuple(decisions_of(of_subject)))


def comparison(names: tuple[str, str], first: find.Subject, second: find.Subject) -> Page:
    """The page of two subjects."""
    pages = [page_of(subject) for subject in (first, second)]
    sections = []
    if isinstance(first, OpDef) and isinstance(second, OpDef):
        names = (first.op.name, second.op.name)
        differing = (*differences(first, second), *differing_values(first, second))
        sections.append(Section("Differs", ("", *names), differing))
    meanings = tuple(
        (name, page.lead or page.title) for name, page in zip(names, pages, strict=True)
    )
    sections.append(Section("Meaning", ("", ""), meanings))
    return Page(" and ".join(names), "", tuple(s for s in sections if s.table))
