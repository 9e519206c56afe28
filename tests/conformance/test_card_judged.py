"""Runs that judge a backend by the profile that it shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from uop.conformance.checks import OBSERVED
from uop.conformance.report.ci import junit_text
from uop.conformance.report.format import as_json
from uop.conformance.report.html.page import page
from uop.conformance.report.model import Conclusion, Report
from uop.conformance.report.text import summary
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options

pytestmark = pytest.mark.usefixtures("choosing_backends")
NUMBERS, TRUNCATING, ALTERNATING, REGROUPING = (
    f"choosing_backends:{name}" for name in ("Numbers", "Truncating", "Alternating", "Regrouping")
)


def judged(backend: str, folder: Path, op: str, dtype: str, profile: str = "") -> Report:
    options = Options(
        backend,
        levels=("op",),
        ops=(op,),
        dtypes=(dtype,),
        effort="smoke",
        workers=1,
        profile=profile,
        output=folder,
    )
    return conform(options)


def test_a_consistent_backend_conforms_under_what_it_shows(tmp_path: Path) -> None:
    report = judged(TRUNCATING, tmp_path, "IDIV", "int32")
    assert report.conclusion is Conclusion.CONFORMS
    assert (report.profile_from, as_json(report)["profile_from"]) == (OBSERVED, OBSERVED)
    assert "int_div=trunc" in report.profile
    lines = summary(report, 60)
    assert "conforms under the observed profile" in lines[0]
    assert any(line.startswith("card: ") and "int_div=trunc" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("Contracting", ("ADD", "SUB", "MULACC", "MIXED")),
        ("Flushing", ("ADD", "MUL", "CMPLT", "MIXED")),
        ("Wide", ("ADD", "MUL", "MIXED")),
        ("Trapping", ("IDIV",)),
    ],
)
def test_what_a_backend_shows_is_what_its_graphs_may_do(
    name: str, ops: tuple[str, ...], tmp_path: Path
) -> None:
    options = Options(
        f"choosing_backends:{name}",
        levels=("op", "graph"),
        ops=ops,
        dtypes=("float16", "float32", "int32", "MIXED"),
        examples=12,
        effort="smoke",
        workers=1,
        output=tmp_path,
    )
    report = conform(options)
    assert report.conclusion is Conclusion.CONFORMS
    strict = conform(replace(options, profile="strict", fail_fast=True))
    assert strict.conclusion is Conclusion.DOES_NOT


@pytest.mark.slow
def test_a_dropped_cast_is_outside_excess_precision(tmp_path: Path) -> None:
    options = Options(
        "choosing_backends:Dropping",
        levels=("op", "graph"),
        ops=("CAST", "MIXED"),
        dtypes=("float16", "float32", "MIXED"),
        effort="smoke",
        workers=1,
        output=tmp_path,
    )
    report = conform(options)
    assert report.profile_from == OBSERVED
    assert "excess_precision=float16" in report.profile
    assert report.conclusion is Conclusion.DOES_NOT
    assert any(failure.ops == ("CAST",) for failure in report.failures)


@pytest.mark.slow
def test_a_backend_that_truncates_integers_conforms_on_every_level(tmp_path: Path) -> None:
    options = Options(
        TRUNCATING,
        ops=("IDIV", "MOD", "CDIV", "CMOD", "MIXED"),
        dtypes=("int8", "int32", "index", "uint16"),
        effort="smoke",
        workers=1,
        output=tmp_path,
    )
    report = conform(options)
    assert report.conclusion is Conclusion.CONFORMS
    # A remainder in front of an INDEX may have no meaning by then: such a program is not sent.
    skipped = {reason for cell in report.cells for reason in cell.skipped}
    assert any(reason.startswith("no meaning: INDEX.u1") for reason in skipped)
    strict = judged(TRUNCATING, tmp_path, "IDIV", "int32", "strict")
    assert strict.conclusion is Conclusion.DOES_NOT


def test_what_ends_at_zero_is_judged_on_all_else(tmp_path: Path) -> None:
    report = judged("choosing_backends:Trapping", tmp_path, "IDIV", "int32", "int_div_traps=true")
    assert report.conclusion is Conclusion.CONFORMS
    rows = as_json(report)["ledger"]["kinds"]
    for kind in ("cell", "value"):
        assert rows[kind]["checked"] == rows[kind]["total"] > 0, kind


def test_what_is_declared_in_the_command_goes_before_what_is_observed(tmp_path: Path) -> None:
    report = judged(NUMBERS, tmp_path, "MAX", "float32", "max_nan=propagate")
    assert report.conclusion is Conclusion.DOES_NOT
    assert (report.profile, report.profile_from) == ("max_nan=propagate", "declared")
    assert {failure.level for failure in report.failures} == {"op"}


def test_a_backend_that_does_two_things_does_not_conform(tmp_path: Path) -> None:
    report = judged(ALTERNATING, tmp_path, "ADD", "float32")
    assert report.conclusion is Conclusion.DOES_NOT
    (failure,) = report.failures
    assert (failure.level, failure.signature) == ("card", "card max_nan")
    assert "case card/max_nan" in Path(failure.repro).read_text()
    lines = summary(report, 60)
    assert any("max_nan is propagate and number at once" in line for line in lines)
    assert any("uop profile show" in line for line in lines)
    assert '<testcase classname="card" name="max_nan">' in junit_text(report)
    declared = judged(ALTERNATING, tmp_path, "ADD", "float32", "strict")
    assert declared.conclusion is Conclusion.CONFORMS


def test_the_verdict_names_each_liberty_with_its_example(tmp_path: Path) -> None:
    report = judged(REGROUPING, tmp_path, "SUB", "float32")
    assert report.profile == "max_nan=propagate cmp_nan=ieee reassociate=ADD"
    ((liberty, example),) = as_json(report)["summary"]["liberties"].items()
    assert liberty == "reassociate=ADD"
    assert example.startswith("(x + 1e8) - 1e8")
    assert f"takes a liberty: reassociate=ADD: {example}" in summary(report, 60)
    assert f"<li><code>reassociate=ADD</code>: {example}</li>" in page(report)
