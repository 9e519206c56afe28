"""Options that a CI job uses: stop early, judge what has failed, and bisect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uop.__main__ import main
from uop.conformance.run import Exit

WRONG = "backends_for_tests:Inaccurate"
DTYPES = "int8,int16,int32,int64,uint8,uint32,float32"
SELECTED = ("--effort", "smoke", "--op", "ADD,SUB", "--dtype", DTYPES, "--seed", "5")
ALONE = ("-n", "1", "--output")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run that judges all."""
    report = tmp_path_factory.mktemp("whole") / "report.json"
    words = ("conform", WRONG, *SELECTED, "--json", str(report), *ALONE, str(report.parent))
    assert main([*words]) == Exit.FAILED
    return report


def judged(report: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(report.read_text())["summary"]
    return summary


def wrong(report: Path) -> int:
    return int(judged(report)["failed"] + judged(report)["crashed"])


def test_a_run_that_fails_fast_judges_fewer_programs(uop: Any, tmp_path: Path, whole: Path) -> None:
    few = tmp_path / "few.json"
    words = (*SELECTED, "--json", few, "--fail-fast", *ALONE, tmp_path / "found")
    assert uop("conform", WRONG, *words).code == Exit.FAILED
    assert 0 < judged(few)["failed"] < judged(whole)["failed"]
    assert judged(few)["programs"] < judged(whole)["programs"]


def test_what_failed_is_judged_again(uop: Any, tmp_path: Path, whole: Path) -> None:
    second = tmp_path / "second.json"
    again = ("--last-failed", whole, "--json", second, *ALONE, tmp_path / "found")
    assert uop("conform", WRONG, *again).code == Exit.FAILED
    assert judged(second)["programs"] == wrong(second) == wrong(whole) > 0
    assert json.loads(second.read_text())["options"]["seed"] == 5
    assert uop("conform", "interpreter", *again).code == Exit.OK
    outcome = uop("conform", WRONG, "--last-failed", second)
    assert (outcome.code, "no case of" in outcome.err) == (Exit.USAGE, True)


@pytest.mark.parametrize(
    ("backend", "program", "code"),
    [
        ("interpreter", "%0 = PARAM [1] {slot=0, dtype=int32}\n%1 = ADD %0, %0\n", Exit.OK),
        (WRONG, "%0 = PARAM [1] {slot=0, dtype=int32}\n%1 = ADD %0, %0\n", Exit.FAILED),
        ("backends_for_tests:DeadAtStart", "%0 = PARAM [1] {slot=0, dtype=int32}\n%1 = NEG %0\n",
         Exit.NOT_JUDGED),
        ("interpreter", "%0 = NEW [1]\n", Exit.NOT_JUDGED),
    ],
)  # fmt: skip
def test_a_bisection_skips_what_cannot_be_judged(
    backend: str, program: str, code: Exit, uop: Any, tmp_path: Path
) -> None:
    path = tmp_path / "repro.uop"
    path.write_text(f"{program}input 0 = [3]\n")
    assert uop("replay", path, backend, "--bisect").code == code


def test_a_bisection_skips_where_no_program_runs(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "repro.uop"
    path.write_text("%0 = PARAM [1] {slot=0, dtype=int32}\n%1 = NEG %0\ninput 0 = [3]\n")
    assert uop("replay", path, "backends_for_tests:Declining").code == Exit.INCONCLUSIVE
    assert uop("replay", path, "backends_for_tests:Declining", "--bisect").code == 125
