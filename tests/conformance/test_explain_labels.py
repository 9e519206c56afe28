"""Every label that an error can carry, and every word of an edition, is explained."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

import uop
from uop.conformance.reference import glossary
from uop.conformance.reference.find import Conditions, Words, conditions, find, own_conditions
from uop.conformance.reference.page import page_of
from uop.spec.conditions.clauses import clauses
from uop.spec.conditions.labels import CONDITIONS, Condition
from uop.spec.documents.rows import rows
from uop.spec.editions import EDITIONS, parse
from uop.spec.editions.edition import edition_of
from uop.spec.kernel import optimization
from uop.spec.latitude import KNOBS
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, labels
from uop.spec.text.program import parse as parse_core

PACKAGES = ("spec", "interpreter", "compiler", "conformance", "cli")
FILES = [
    path
    for name in PACKAGES
    for path in sorted(Path(import_module(f"uop.{name}").__path__[0]).rglob("*.py"))
]
WORDS = sorted({name for edition in EDITIONS.values() for name in edition.words})


def calls(*names: str) -> list[tuple[str, ast.Call]]:
    """The calls of functions by these names in all files, with the place of each."""
    return [
        (f"{path.name}:{node.lineno}", node)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]


@pytest.mark.slow
def test_an_invalid_error_takes_its_label_from_a_table() -> None:
    found = calls("InvalidError")
    assert found
    for place, call in found:
        first = call.args[0]
        assert isinstance(first, ast.Attribute), place
        assert first.attr == "label", place


@pytest.mark.slow
def test_every_clause_that_is_broken_somewhere_is_declared() -> None:
    found = calls("undefined", "lacking")
    assert found
    for place, call in found:
        first = call.args[0]
        if isinstance(first, ast.Constant):
            assert first.value in clauses(), place


@pytest.mark.slow
def test_every_condition_that_is_broken_somewhere_is_in_its_table() -> None:
    for name, table in (("invalid", CONDITIONS), ("illegal", optimization.CONDITIONS)):
        found = [(place, call.args[0]) for place, call in calls(name)]
        assert found
        for place, label in found:
            if isinstance(label, ast.Constant):
                assert label.value in table, place


def test_every_condition_stands_in_a_table() -> None:
    assert uop.__path__
    for name, module in list(sys.modules.items()):
        if name.startswith("uop."):
            for value in vars(module).values():
                assert not isinstance(value, Condition), f"{value.label} stands in no table"


@pytest.mark.parametrize("label", sorted({*labels(), *clauses(), *conditions()}))
def test_every_label_is_found_and_says_what_holds(label: str) -> None:
    for name in (label, label.lower()):
        page = page_of(find(name))
        assert page.title == label
        assert page.lead.startswith(label.partition(".")[0])
    for known in (labels().get(label), clauses().get(label)):
        assert known is None or known.title in page.lead
    if label not in labels() and label not in clauses():
        found = find(label)
        assert isinstance(found, Conditions)
        said = page.lead + str(page.sections)
        assert all(c.title in said for _, c in found.places)


@pytest.mark.parametrize("name", WORDS)
def test_every_word_of_an_edition_is_explained(name: str) -> None:
    # Of an op and a knob of one name the knob is the one in small letters.
    found = find(name if name.lower() in {*KNOBS, *glossary.terms()} else name.lower())
    page = page_of(found)
    assert page.lead
    having = [edition for edition in EDITIONS.values() if name in edition.words]
    if name in Op.__members__:
        assert isinstance(found, OpDef)
        (table,) = [s.table for s in page.sections if s.title == "Editions"]
        named = [name for row in table for name in row[0].split()]
        assert sorted(named) == sorted(edition.name for edition in having)
        assert all(row[1].startswith(f"{name}(") for row in table)
        return
    assert isinstance(found, Words)
    titles = {s.title for s in page.sections}
    assert {f"Edition {edition.name}" for edition in having} <= titles
    said = {row[0] for s in page.sections if s.title == "Constraints" for row in s.table}
    assert said == {c.label for _, word in found.words for c in own_conditions(word)}


@pytest.mark.parametrize("name", [name for name in WORDS if name not in Op.__members__])
def test_the_example_of_a_word_has_it_and_reads_into_what_is_shown(name: str) -> None:
    sections = page_of(find(name)).sections
    examples = [s.code for s in sections if s.title == "Example"]
    cores = [s.code for s in sections if s.title == "In core ops"]
    assert len(examples) == len([e for e in EDITIONS.values() if name in e.words])
    for text, core in zip(examples, cores, strict=True):
        assert f"= {name} " in text
        assert parse(text, edition_of(text)) is parse_core(core)


def test_every_op_that_the_ledger_names_is_explained() -> None:
    named = {op for row in rows().values() for op in row.ops}
    assert named == {op.name for op in DECLARATIONS}
    for op in named:
        assert page_of(find(op)).lead == DECLARATIONS[Op[op]].doc


def test_ops_that_an_edition_keeps_are_shown_with_their_operands() -> None:
    (table,) = [s.table for s in page_of(DECLARATIONS[Op.ADD]).sections if s.title == "Editions"]
    assert table == ((" ".join(EDITIONS), "ADD(A, B)"),)
