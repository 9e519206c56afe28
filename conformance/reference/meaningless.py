"""Programs written by hand that have no meaning, by the clause that does not hold."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files

from uop.conformance.judging import storage
from uop.conformance.reference.section import Section
from uop.interpreter.evaluate import evaluate_full
from uop.spec.case import FileCase, UopFile
from uop.spec.errors import UndefinedError
from uop.spec.registry import Clause
from uop.spec.text.uop_file import parse_file, print_file

FOLDERS = ("undefined", "op", "kernel")


@cache
def shown() -> dict[str, tuple[FileCase, ...]]:
    """The cases of the folders by the label that they say."""
    found: dict[str, tuple[FileCase, ...]] = {}
    for name in FOLDERS:
        folder = files("uop.conformance.suite") / "cases" / name
        for file in sorted(folder.iterdir(), key=lambda f: f.name):
            for case in parse_file(file.read_text("utf-8"), file.name).cases:
                if case.undefined_label:
                    label = case.undefined_label
                    found[label] = (*found.get(label, ()), case)
    return found


def clause_sections(clause: Clause) -> list[Section]:
    """A program that a clause makes meaningless, and what is said of it; none for a limit."""
    if clause.label not in shown():
        return []
    case = shown()[clause.label][0]
    sections = [Section("Without meaning", code=print_file(UopFile((replace(case, id=""),))))]
    assert case.root is not None
    try:
        evaluate_full(case.root, {k: storage.from_literal(a) for k, a in case.inputs.items()})
    except UndefinedError as error:
        sections.append(Section("Said", code=str(error).partition("\n  at:")[0] + "\n"))
    return sections
