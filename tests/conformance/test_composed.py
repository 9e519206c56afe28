"""Backends whose adapter composes ops of others: the report says so of what fails there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.protocol.hello import DeviationError, checked
from uop.conformance.protocol.messages import read_hello
from uop.conformance.protocol.types import Hello, Outcome, Program
from uop.conformance.report.ci import junit_text, markdown
from uop.conformance.report.format import as_json, parse_report, report_text
from uop.conformance.report.html.page import page
from uop.conformance.report.text import summary
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.spec.ops.names import Op
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const

SAID = "NEG is composed of SUB by the adapter"


class Composing(InterpreterBackend):
    """NEG is 0 - x, which is not -0.0 for 0.0; SQRT is x, and its own."""

    def hello(self) -> Hello:
        return replace(super().hello(), name="composing", composed={"NEG": ("SUB",)})

    def run(self, programs: tuple[Program, ...]) -> list[Outcome]:  # type: ignore[override]
        return super().run([composed(program) for program in programs])


def composed(program: Program) -> Program:
    root, new = parse(program.text), dict[UOp, UOp]()
    for u in root.toposort():
        src = [new[s] for s in u.src]
        new[u] = u.with_src(src)
        if u.op is Op.NEG and u.dtype.is_float:
            new[u] = UOp(Op.SUB, const(0.0, u.dtype), *src)
        elif u.op is Op.SQRT:
            new[u] = src[0]
    return replace(program, text=print_program(new[root]))


def test_a_failure_of_a_composed_op_is_told_with_its_parts(tmp_path: Path) -> None:
    options = Options(
        "test_composed:Composing",
        profile="strict",
        levels=("op",),
        ops=("NEG", "SQRT"),
        dtypes=("float32",),
        effort="smoke",
        workers=1,
        output=tmp_path,
    )
    report = conform(options)
    said = {failure.ops: failure.composed for failure in report.failures}
    assert said == {("NEG",): SAID, ("SQRT",): ""}
    assert f"       {SAID}" in summary(report, 60)
    assert f"<p>{SAID}.</p>" in page(report)
    assert all(f"\n{SAID}\n" in text for text in (junit_text(report), markdown(report)))
    assert sorted(f["composed"] for f in as_json(report)["failures"]) == ["", SAID]
    read = parse_report(report_text(report), "r")
    assert (read.failures, read.composed) == (report.failures, {"NEG": ("SUB",)})


@pytest.mark.parametrize(
    ("composed", "said"),
    [
        ({"SIN": ["MUL"]}, "ops that `ops` lists, found SIN"),
        ({"DIV": ["RECIPROCAL"]}, "DIV: expected names that .*, found RECIPROCAL"),
        ({"DIV": []}, "DIV: expected a list of ops"),
        ({"DIV": "MUL"}, "a list of names, found MUL"),
        (["DIV"], "expected an object"),
    ],
)
def test_what_is_no_list_of_ops_is_told(composed: Any, said: str) -> None:
    reply = {
        **{"protocol": 1, "name": "w", "version": "1", "ops": ["PARAM", "DIV"]},
        **{"dtypes": ["float32"], "composed": composed},
    }
    with pytest.raises(DeviationError, match=said):
        read_hello(reply)
    read = read_hello({**reply, "composed": {"DIV": ["RECIP", "MUL"]}})
    assert read.composition("DIV") == "DIV is composed of RECIP, MUL by the adapter"
    assert read.composition("PARAM") == ""


def test_an_adapter_is_checked_too() -> None:
    wrong: Any = {"DIV": "MUL"}
    with pytest.raises(DeviationError, match="DIV: expected a list of ops"):
        checked(replace(InterpreterBackend().hello(), composed=wrong))
