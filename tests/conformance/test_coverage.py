"""The ledger of a run: what a case exercises, what stays open and why, too little evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from uop.conformance.coverage.exercised import RULES, Exercised, exercised
from uop.conformance.coverage.ledger import Checks, Ledger, ledger_lines
from uop.conformance.coverage.points import KINDS, Point
from uop.conformance.coverage.value_classes import BIT, named
from uop.conformance.judging.compare import Counts
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.protocol.types import Hello
from uop.conformance.report.format import as_json
from uop.conformance.report.model import Conclusion, Report
from uop.conformance.report.tally import Tally
from uop.conformance.run.conform import FURTHER, FURTHER_OF_EACH, conform
from uop.conformance.run.options import Options
from uop.conformance.run.selection import selected
from uop.conformance.suite.case import LEVELS, Batch, Case, CaseId
from uop.conformance.suite.generate import case_by_id, cases
from uop.spec.args import ParamArg
from uop.spec.conditions.clauses import clauses
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, labels
from uop.spec.uop import UOp, const, dims, param

SCHEMA = json.loads(
    files("uop.conformance.report").joinpath("uop-report-1.schema.json").read_text()
)
NOTHING = Exercised("", {}, {})
ID = "op/ADD/float32/edges/0@2"
SIN = "op/SIN/float32/edges/0@2"
PASSED = Verdict(ID, Status.PASSED, 1, Counts(10, 10, 9, 10))
HELLO = Hello("some", "1", "", frozenset({"ADD", "SIN"}), frozenset({"float32", "float16"}))

Conform = Callable[..., Report]


@pytest.fixture
def judged(tmp_path: Path) -> Conform:
    """Runs the suite with small defaults."""

    def run(backend: str = "interpreter", **chosen: Any) -> Report:
        small = Options(
            backend, levels=("op",), effort="smoke", workers=1, output=tmp_path / "failures"
        )
        return conform(replace(small, **chosen))

    return run


def case(root: UOp, *inputs: dict[int, Any], level: str = "op") -> Case:
    batches = tuple(Batch({slot: np.array(a) for slot, a in given.items()}) for given in inputs)
    return Case(CaseId(level, "ADD", "int8", "edges", 0), root, batches)


def classes_of(shown: Exercised) -> dict[str, set[str]]:
    return {about: set(named(found)) for about, found in shown.values.items()}


def test_an_op_meets_the_classes_of_the_inputs_that_it_takes() -> None:
    x, y = param(0, (2,), dtypes.int8), param(1, (2,), dtypes.int8)
    inputs = [
        {0: np.array([0, 3], np.int8), 1: np.array([3, 3], np.int8)},
        {0: np.array([3, 3], np.int8), 1: np.array([-128, 3], np.int8)},
    ]
    added = UOp(Op.ADD, x, UOp(Op.RESHAPE, y, dims((2,))))
    shown = exercised(case(UOp(Op.MUL, added, const(2, dtypes.int8)), *inputs))
    one = {"zero", "beside power"}
    assert classes_of(shown)["ADD int8"] == one | {"type min", "power"}
    assert classes_of(shown)["RESHAPE int8"] == {"type min", "power", "beside power"}
    # What an op gives is no input: nothing is known of what MUL meets.
    assert "MUL int8" not in classes_of(shown)


def test_what_has_no_elements_meets_nothing() -> None:
    x = param(0, (0,), dtypes.int8)
    assert exercised(case(UOp(Op.ADD, x, x), {0: np.zeros(0, np.int8)})).values == {}
    none = UOp(Op.EXPAND, param(0, (1,), dtypes.int8), dims((0,)))
    shown = exercised(case(UOp(Op.ADD, none, none), {0: np.array([0], np.int8)}))
    assert set(shown.values) == {"EXPAND int8"}


def test_rules_count_where_they_say_something() -> None:
    on_two = UOp(Op.PARAM, dims((4,)), arg=ParamArg(0, dtypes.int8, ("A:0", "A:1")))
    root = UOp(Op.ADD, on_two, UOp(Op.MOD, on_two, const(4, dtypes.int8)))

    def rules(level: str) -> dict[str, set[str]]:
        found = exercised(case(root, {}, level=level)).rules
        return {op: {r for k, r in enumerate(RULES) if m >> k & 1} for op, m in found.items()}

    assert rules("op")["ADD"] == {"dtype", "shape", "device", "axis"}
    assert rules("property")["MOD"] == {"dtype", "shape", "device", "axis", "min_max"}
    assert rules("op")["CONST"] == {"dtype", "shape"}


def test_what_an_invalid_case_exercises_is_its_label() -> None:
    found = exercised(case_by_id("invalid/ADD/void/arity/0@2"))
    assert found == Exercised("ADD.arity", {}, {})


@pytest.mark.parametrize("id", ["op/MUL/bfloat16/edges/0@2", "op/CAST/int8/to-bool/0@2", ID])
def test_a_case_of_level_op_is_about_its_op_and_dtype(id: str) -> None:
    found = case_by_id(id)
    assert f"{found.op} {found.dtype}" in exercised(found).values


def ledger(*ids: str, narrowed: bool = True) -> Ledger:
    return Ledger([CaseId.parse(id) for id in ids], narrowed)


def test_a_point_is_checked_by_what_was_judged() -> None:
    found = ledger(ID, SIN)
    shown = replace(NOTHING, values={"ADD float32": BIT["nan"] | BIT["zero"]}, rules={"ADD": 3})
    found.add(PASSED, shown)
    found.add(replace(PASSED, id=SIN), replace(NOTHING, values={"SIN float32": BIT["zero"]}))
    points = found.points()
    assert points[Point("cell", "ADD", "float32")] == Checks(1, ((0, ID),))
    assert points[Point("value", "ADD", "float32", "nan")].checks == 1
    # Of a sum the bits of a NaN are free; of a sine that of ordinary values is.
    assert points[Point("latitude", "ADD", "float32")].checks == 1
    assert points[Point("latitude", "SIN", "float32")].checks == 1
    assert points[Point("rule", "ADD", detail="shape")].checks == 1
    assert Point("value", "ADD", "float32", "inf") not in points
    assert any(p.kind == "decision" for p in points)


def test_what_was_skipped_or_constrains_nothing_is_no_evidence() -> None:
    loose = ledger(ID)
    for shown in (None, NOTHING):
        skipped = ledger(ID)
        skipped.add(Verdict(ID, Status.SKIPPED, reason="no"), shown)
        assert skipped.points() == {}
    loose.add(replace(PASSED, counts=Counts(10, 10)), NOTHING)
    assert Point("cell", "ADD", "float32") not in loose.points()


def test_the_order_and_division_of_checks_do_not_matter() -> None:
    ids = [f"op/ADD/float32/edges/{k}@2" for k in range(5)]
    one, two = ledger(*ids), ledger(*ids)
    for id in ids:
        one.add(replace(PASSED, id=id), replace(NOTHING, values={"ADD float32": 3}))
    for id in reversed(ids):
        two.add(replace(PASSED, id=id), replace(NOTHING, values={"ADD float32": 3}))
    assert one.points() == two.points()
    shown = one.points()[Point("value", "ADD", "float32", "zero")]
    assert shown == Checks(5, ((0, ids[0]), (1, ids[1])))


def tally(*verdicts: Verdict) -> Tally:
    found = Tally()
    for verdict in verdicts:
        found.add(verdict)
    return found


@pytest.mark.parametrize(
    ("verdicts", "missing"),
    [
        ([PASSED, replace(PASSED, id=SIN)], []),
        # Not run at all.
        ([PASSED], ["SIN float32: the run ended before"]),
        # Judged, and nothing was demanded of it.
        (
            [PASSED, replace(PASSED, id=SIN, counts=Counts(10, 10, 9))],
            ["SIN float32: no case that was judged shows it"],
        ),
        # Without elements: its shape and dtype were checked.
        ([PASSED, replace(PASSED, id=SIN, counts=Counts())], []),
        # Declined: that is one of two.
        ([PASSED, Verdict(SIN, Status.SKIPPED, reason="no SIN")], []),
        (
            [Verdict(id, Status.SKIPPED, reason="no") for id in (ID, SIN)],
            ["2 of 2 ops and dtypes: no"],
        ),
    ],
)
def test_what_a_backend_lists_needs_evidence(verdicts: list[Verdict], missing: list[str]) -> None:
    found = ledger(ID, SIN)
    for verdict in verdicts:
        found.add(verdict, None if verdict.status is Status.SKIPPED else NOTHING)
    assert found.missing(HELLO, tally(*verdicts)) == tuple(missing)


def test_what_a_backend_does_not_list_needs_none() -> None:
    poor = replace(HELLO, ops=frozenset({"ADD"}))
    found = ledger(ID, SIN)
    found.add(PASSED, NOTHING)
    assert found.missing(poor, tally(PASSED)) == ()


def test_a_whole_ledger_names_every_label_op_and_decision() -> None:
    found = Ledger(selected(Options("interpreter")))
    expected = found.expected()
    assert len(expected) == len(set(expected)) == len({str(p) for p in expected})
    # What a text leaves out is the default: no text breaks these.
    unspoken = {"LOAD.arg", "PAD.arg", "STAGE.arg"}
    assert {p.about for p in expected if p.kind == "label"} == set(labels()) - unspoken
    assert {p.about for p in expected if p.kind == "rule"} == {op.name for op in DECLARATIONS}
    sums = found.sums(Tally())
    left_out = sums.not_of_runs
    (told,) = [e.points for e in left_out if "meaning" in e.reason]
    assert told == tuple(clauses())
    others = {point for e in left_out for point in e.points}
    assert unspoken <= others
    assert "rule PTRADD min_max" in others
    assert not {str(p) for p in expected} & others
    assert sums.checked == 0
    assert sum(len(e.points) for e in sums.unchecked) == sums.total
    assert {kind for kind, of in sums.kinds.items() if of.total} == set(KINDS)


@pytest.mark.slow
def test_cases_show_every_point_that_a_run_can_show() -> None:
    """By default, as if all of them were judged, and without the levels of random graphs.

    What a LOAD reads there is left to them, or to the cases for gaps.
    """
    levels = ("op", "invalid", "property", "function", "kernel", "device")
    found = Ledger(selected(Options("interpreter", levels=levels)))
    for one in cases(levels):
        found.add(replace(PASSED, id=str(one.id)), exercised(one))
    seen = found.points()
    left = {p for p in found.expected() if p not in seen}
    assert {(p.kind, p.about) for p in left} <= {("value", "LOAD")}


def test_the_section_is_as_the_schema_says_and_adds_up(judged: Conform) -> None:
    report = judged(ops=("MAX", "PAD"), dtypes=("float32", "uint8"))
    whole = as_json(report)
    jsonschema.validate(whole, SCHEMA)
    section = whole["ledger"]
    open_points = [p for e in section["unchecked"] for p in e["points"]]
    assert section["checked"] + len(open_points) == section["total"]
    assert section["evidence"]["cell MAX float32"]["first"][0] in {
        f"{name}/{k}@2" for name, marks in whole["cases"].items() for k in range(len(marks))
    }
    assert not set(open_points) & set(section["evidence"])
    assert report.ledger is not None
    lines = ledger_lines(report.ledger)
    assert re.match(r"ledger: [\d,]+ of [\d,]+ points checked", lines[0])
    assert Fraction(section["checked"], section["total"]) > Fraction(4, 5)


def test_a_run_that_is_stopped_too_early_is_inconclusive(judged: Conform) -> None:
    report = judged("backends_for_tests:Slow", ops=("ADD", "SIN"), seconds=2.0)
    assert report.conclusion is Conclusion.INCONCLUSIVE
    assert any("the run ended before" in why for why in as_json(report)["summary"]["missing"])


def test_a_narrowed_run_is_judged_on_what_was_selected(judged: Conform) -> None:
    assert (
        judged(levels=LEVELS, cases=(ID, "invalid/ADD/void/arity/0@2")).conclusion
        is Conclusion.CONFORMS
    )


def test_a_backend_that_declines_almost_everything_is_inconclusive(judged: Conform) -> None:
    report = judged("backends_for_tests:Declining", ops=("ADD", "SHL", "XOR"), dtypes=("int8",))
    assert report.summary.passed > 0
    assert report.conclusion is Conclusion.INCONCLUSIVE
    assert "declined" in report.summary.missing[0]


def test_a_run_of_copies_leaves_no_point_open(judged: Conform) -> None:
    chosen = {"ops": ("LOAD", "STORE"), "dtypes": ("float16", "int64"), "effort": "default"}
    assert as_json(judged(**chosen))["ledger"]["unchecked"] == []


@pytest.mark.slow
def test_gaps_are_aimed_at_the_same_way_however_divided(judged: Conform) -> None:
    chosen = {"ops": ("STACK", "GETTUPLE"), "dtypes": ("float16", "int64"), "effort": "default"}
    one, three = (judged(workers=n, **chosen) for n in (1, 3))
    ids = {str(id) for id in selected(Options("interpreter", levels=("op",), **chosen))}
    run = {f"{n}/{k}@2" for n, marks in as_json(one)["cases"].items() for k in range(len(marks))}
    further = run - ids
    assert ids <= run
    assert FURTHER_OF_EACH < len(further) <= FURTHER["default"]
    assert as_json(one)["cases"] == as_json(three)["cases"]
    assert as_json(one)["ledger"] == as_json(three)["ledger"]


def test_a_run_of_one_case_says_what_it_shows(judged: Conform) -> None:
    found = judged(levels=LEVELS, cases=("graph/MIXED/int8/absent/0@2",)).ledger
    assert found is not None
    assert (found.total, found.checked) == (0, 0)
    (line,) = ledger_lines(found)
    assert re.fullmatch(r"ledger: these cases show \d+ values, \d+ rules", line)
    assert ledger_lines(ledger().sums(Tally())) == []


@pytest.mark.parametrize(
    ("dtype", "value", "is_used"),
    [("float64", "nan", True), ("float64", "zero", False), ("float32", "zero", True)],
)
def test_within_half_an_ulp_only_a_nan_may_be_several(
    dtype: str, value: str, is_used: bool
) -> None:
    id, cell = f"op/RECIP/{dtype}/edges/0@2", f"RECIP {dtype}"
    found = ledger(id)
    found.add(replace(PASSED, id=id), replace(NOTHING, values={cell: BIT[value]}))
    assert (Point("latitude", "RECIP", dtype) in found.points()) is is_used


def test_what_is_stacked_is_met_by_the_op_behind() -> None:
    """Each of what is stacked, once, however often it stands there."""
    x, y = (param(k, (1,), dtypes.int8) for k in (0, 1))
    stacked = UOp(Op.STACK, x, y)
    for _ in range(40):
        twice = UOp(Op.STACK, stacked, stacked)
        stacked = UOp(Op.INDEX, twice, const(0, dtypes.index))
    inputs = {0: np.array([0], np.int8), 1: np.array([-128], np.int8)}
    shown = classes_of(exercised(case(UOp(Op.NEG, stacked), inputs)))
    assert shown["NEG int8"] == {"zero", "type min", "power"}


def test_a_report_on_all_levels_has_checks_of_each_kind(judged: Conform) -> None:
    report = judged(levels=LEVELS, ops=("ADD", "ALLREDUCE"))
    evidence = as_json(report)["ledger"]["evidence"]
    assert {name.split()[0] for name in evidence} == set(KINDS)
