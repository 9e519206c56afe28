"""Programs without meaning: one at least for each clause, each told with its node and its line."""

from __future__ import annotations

from pathlib import Path

import pytest

import uop.conformance
from uop.__main__ import main
from uop.conformance.judging import storage
from uop.conformance.reference.examples import UNDEFINED_CASES, undefined_cases
from uop.conformance.reference.find import find
from uop.conformance.reference.page import page_of
from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.spec.case import FileCase
from uop.spec.conditions.clauses import clauses, undefined_labels
from uop.spec.errors import UndefinedError
from uop.spec.text.uop_file import read_file

CASES = Path(uop.conformance.__path__[0]) / "suite" / "cases"
SHOWN = [
    pytest.param(path, case, id=f"{path.stem}-{case.id}")
    for folder in UNDEFINED_CASES
    for path in sorted((CASES / folder).glob("*.uop"))
    for case in read_file(path).cases
    if case.undefined_label
]


def test_every_clause_has_a_program_that_shows_it() -> None:
    assert set(undefined_cases()) == undefined_labels()
    assert all(
        case.undefined and case.undefined_label
        for case in read_file(CASES / "undefined" / "clauses.uop").cases
    )


@pytest.mark.parametrize(("path", "case"), SHOWN)
def test_the_error_names_the_clause_the_node_and_the_line(path: Path, case: FileCase) -> None:
    assert case.root is not None
    inputs = {k: storage.from_literal(a) for k, a in case.inputs.items()}
    for run in (evaluate, evaluate_full, accept):
        with pytest.raises(UndefinedError) as caught:
            run(case.root, inputs)  # type: ignore[operator]
        error = caught.value
        assert error.label == case.undefined_label
        assert error.title == clauses()[error.label].title
        assert error.found
        assert error.where.startswith(f"{__file__}:")
        assert error.node.partition("(")[0] == error.subjects[0].op.name
        for place in case.place_of(error.subjects).split():
            name, _, number = place.rpartition(":")
            line = path.read_text().splitlines()[int(number) - 1]
            assert name == path.name or Path(name) == path
            assert line.split()[2] in {u.op.name for u in error.subjects}


@pytest.mark.parametrize(("path", "case"), SHOWN)
def test_the_command_line_says_the_line_of_the_file(
    path: Path, case: FileCase, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(path), "--case", case.id]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {case.undefined_label}: ")
    place = said.rpartition("\n  at: ")[2].split()[0]
    name, _, number = place.rpartition(":")
    assert Path(name) == path
    op = said.partition("\n  node: ")[2].partition("(")[0]
    assert path.read_text().splitlines()[int(number) - 1].split()[2] == op


@pytest.mark.parametrize("label", sorted(clauses()))
def test_every_clause_is_explained(label: str) -> None:
    page = page_of(find(label.lower()))
    assert page.title == label
    assert clauses()[label].title in page.lead
    titles = [section.title for section in page.sections]
    assert titles == (["Without meaning", "Said"] if label in undefined_labels() else [])


def test_a_race_names_both_accesses_and_their_work_items() -> None:
    (case,) = (p.values[1] for p in SHOWN if p.id == "BUFFER-without_a_barrier")
    assert isinstance(case, FileCase)
    assert case.root is not None
    with pytest.raises(UndefinedError) as caught:
        evaluate(case.root, {k: storage.from_literal(a) for k, a in case.inputs.items()})
    error = caught.value
    assert [u.op.name for u in error.subjects] == ["LOAD", "STORE"]
    assert error.found == (
        "race: of two work items one writes element 1 of the LOCAL BUFFER in slot 0 (lidx0 = 1, "
        "STORE(INDEX:int32[], LOAD:int32[])), another reads it (lidx0 = 0), "
        "and no barrier orders them"
    )
    assert len(case.place_of(error.subjects).split()) == 2
