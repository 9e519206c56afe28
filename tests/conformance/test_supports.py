"""Backends that list cells: what they do not take on a dtype is neither sent nor expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.coverage.ledger import Ledger
from uop.conformance.judging.lowering import submission_of, unsupported
from uop.conformance.protocol.codec import from_json, to_json
from uop.conformance.protocol.hello import DeviationError, checked
from uop.conformance.protocol.messages import read_hello
from uop.conformance.protocol.types import Hello, Outcome, Program
from uop.conformance.report.format import parse_report, report_text
from uop.conformance.report.tally import Tally
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.selection import selected
from uop.conformance.suite.case import Case
from uop.conformance.suite.catalogue import RANDOM
from uop.conformance.suite.generate import case_by_id, groups
from uop.conformance.suite.levels.nodes import cast
from uop.conformance.suite.vocabulary import (
    Vocabulary,
    cells_of,
    computed,
    vocabulary_of,
    whole,
)
from uop.spec.args import ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.text.program import parse
from uop.spec.uop import UOp, const, param

OPS = (
    "PARAM BUFFER CONST ADD MUL MAX NEG CMPLT WHERE CAST AND STACK RESHAPE EXPAND REDUCE INDEX "
    "STORE SHRINK FLIP AFTER SINK TUPLE"
)
RAGGED = {
    "MAX": frozenset({"float32"}),
    "CAST": frozenset({"int8", "int32"}),
    "STORE": frozenset({"int32", "float32"}),
    "CONST": frozenset({"bool", "float32"}),
}


def ragged(supports: Mapping[str, frozenset[str]] = RAGGED, **more: Any) -> Hello:
    listed = frozenset(OPS.split()), frozenset({"bool", "int8", "int32", "float32"})
    hello = InterpreterBackend().hello()
    return replace(hello, name="ragged", ops=listed[0], dtypes=listed[1], supports=supports, **more)


class Ragged(InterpreterBackend):
    """The interpreter, which is sent nothing that it does not list."""

    def hello(self) -> Hello:
        return ragged()

    def run(self, programs: tuple[Program, ...]) -> list[Outcome]:  # type: ignore[override]
        for program in programs:
            try:
                root = parse(program.text)
            except InvalidError:
                continue
            assert not unsupported(root, ragged()), program.text
        return super().run(programs)


X, Y = (param(slot, (2, 3), dtypes.int8) for slot in range(2))
TRUE = param(2, (2, 3), dtypes.bool)


@pytest.mark.parametrize(
    ("u", "cells"),
    [
        (X, [("PARAM", "int8")]),
        (UOp(Op.MAX, X, Y), [("MAX", "int8")]),
        (UOp(Op.CMPLT, X, Y), [("CMPLT", "int8")]),
        (UOp(Op.WHERE, TRUE, X, Y), [("WHERE", "int8")]),
        (cast(X, dtypes.float32), [("CAST", "int8")]),
        (UOp(Op.REDUCE, X, arg=ReduceArg(Op.MAX, (0,))), [("REDUCE", "int8"), ("MAX", "int8")]),
        (UOp(Op.TUPLE, X, TRUE), [("TUPLE", "int8")]),
        (UOp(Op.SINK), []),
    ],
)
def test_a_cell_has_the_dtype_of_the_first_operand(u: UOp, cells: list[tuple[str, str]]) -> None:
    assert list(cells_of(u)) == cells


@pytest.mark.parametrize("op", ["ADD", "CAST", "CMPLT", "WHERE", "REDUCE", "SHL", "MAX"])
def test_the_cell_of_a_case_is_a_cell_of_its_program(op: str) -> None:
    about = [g for g in groups("op") if g.op == op and g.count("smoke")]
    drawn = [g for g in about if not g.name.startswith(("twin", "hand", "large"))]
    assert drawn
    for group in drawn:
        case = group.case(0, 0)
        assert isinstance(case, Case)
        cells = {cell for u in case.root.toposort() for cell in cells_of(u)}
        assert (op, group.dtype) in cells, case.id


@pytest.mark.parametrize(
    ("id", "reason"),
    [
        ("op/MAX/int8/edges/0", "MAX int8"),
        ("op/CAST/float32/to-int8/0", "CAST float32"),
        ("op/MAX/float32/edges/0", ""),
    ],
)
def test_a_case_of_an_unlisted_cell_is_not_sent(id: str, reason: str) -> None:
    case = case_by_id(id)
    assert isinstance(case, Case)
    said = ragged()
    assert submission_of(case, said).reason == (f"ragged does not support {reason}" * bool(reason))
    ids = {(i.level, i.op, i.dtype) for i in selected(Options("x"), vocabulary_of([said]), said)}
    assert (("op", *id.split("/")[1:3]) in ids) == (not reason)


def test_a_constant_of_an_unlisted_cell_comes_as_an_input() -> None:
    root = UOp(Op.ADD, param(0, (2,), dtypes.int32), const(1, dtypes.int32))
    made = case_by_id("op/ADD/int32/edges/0")
    assert isinstance(made, Case)
    batches = tuple(replace(b, inputs={0: b.inputs[0][:2]}) for b in made.batches[:1])
    submission = submission_of(Case(made.id, root, batches), ragged())
    assert not submission.reason
    assert "CONST" not in submission.program.text


def test_random_programs_need_no_unlisted_cell() -> None:
    vocabulary = vocabulary_of([ragged()])
    assert vocabulary.key not in ("", vocabulary_of([ragged({})]).key)
    seen = 0
    for level in RANDOM:
        for group in groups(level, vocabulary):
            if group.count("smoke") and "+" in group.name:
                case = group.case(0, 0)
                assert isinstance(case, Case)
                cells = {cell for u in computed(case.root) for cell in cells_of(u)}
                assert all(vocabulary.has_cell(*cell) for cell in cells), case.id
                seen += 1
    assert seen > 20


def test_the_list_of_several_backends_is_what_all_of_them_take() -> None:
    one, other = (
        ragged({"MAX": frozenset({"int8", "int32"})}),
        ragged({"MAX": frozenset({"int32", "float32"}), "ADD": frozenset({"int8"})}),
    )
    both = vocabulary_of([one, other])
    assert both.supports == {"MAX": frozenset({"int32"}), "ADD": frozenset({"int8"})}
    assert hash(both) == hash(vocabulary_of([other, one]))
    assert from_json(Vocabulary, to_json(both)) == both
    every = InterpreterBackend().hello()
    assert vocabulary_of([replace(every, supports={"MAX": every.dtypes})]) is whole()


def test_an_unlisted_cell_is_not_expected() -> None:
    said = ragged()
    ids = selected(Options("x", levels=("op",)), vocabulary_of([said]), said)
    ledger = Ledger(tuple(ids), narrowed=True)
    cells = {(p.about, p.dtype) for p in ledger.cells(said)}
    assert ("MAX", "float32") in cells
    assert ("MAX", "int8") not in cells
    assert not any(m.startswith("MAX int8") for m in ledger.missing(said, Tally()))


@pytest.mark.slow
def test_a_ragged_backend_conforms(tmp_path: Any) -> None:
    options = Options("test_supports:Ragged", profile="strict", effort="smoke", examples=1)
    report = conform(replace(options, workers=1, output=tmp_path))
    assert report.conclusion == "conforms", report.summary
    assert not any(why.startswith(("MAX", "CAST", "STORE")) for why in report.summary.untried)
    vocabulary = parse_report(report_text(report), "r").generator.vocabulary
    assert vocabulary is not None
    assert vocabulary.supports == RAGGED
    reasons = {why for cell in report.cells for why in cell.skipped}
    assert "ragged does not support MAX int8" in reasons


@pytest.mark.parametrize(
    ("supports", "said"),
    [
        ({"SIN": ["float32"]}, "ops that `ops` lists, found SIN"),
        ({"MAX": ["float64"]}, "MAX: expected dtypes that `dtypes` lists, found float64"),
        ({"MAX": []}, "MAX: expected a list of dtypes"),
        ({"MAX": "int8"}, "a list of names, found int8"),
        (["MAX"], "expected an object"),
    ],
)
def test_what_is_no_list_of_cells_is_told(supports: Any, said: str) -> None:
    reply = {
        **{"protocol": 1, "name": "w", "version": "1", "ops": ["PARAM", "MAX"]},
        **{"dtypes": ["int8", "float32"], "supports": supports},
    }
    with pytest.raises(DeviationError, match=said):
        read_hello(reply)
    read = read_hello({**reply, "supports": {"MAX": ["int8"]}})
    assert read.supports == {"MAX": frozenset({"int8"})}
    assert read.takes("PARAM", "float32")
    assert not read.takes("MAX", "float32")


def test_an_adapter_is_checked_too() -> None:
    wrong: Any = {"MAX": ["float99"]}
    with pytest.raises(DeviationError, match="MAX: expected dtypes that `dtypes` lists"):
        checked(ragged(wrong))
