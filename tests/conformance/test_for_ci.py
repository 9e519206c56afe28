"""Options that a CI job uses: stop early, judge what has failed, and bisect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uop.conformance.run.exits import Exit

WRONG, SELECTED = "backends_for_tests:Inaccurate", ("--op", "ADD,SUB,MUL")


def conform(uop: Any, folder: Path, *words: object) -> Any:
    output = ("--output", folder / "found", "-n", 1)
    return uop("conform", WRONG, "--effort", "smoke", *SELECTED, *output, *words)


def judged(report: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(report.read_text())["summary"]
    return summary


def wrong(report: Path) -> int:
    return int(judged(report)["failed"] + judged(report)["crashed"])


def test_a_run_that_fails_fast_judges_fewer_programs(uop: Any, tmp_path: Path) -> None:
    every, few = tmp_path / "every.json", tmp_path / "few.json"
    assert conform(uop, tmp_path, "--json", every).code == Exit.FAILED
    assert conform(uop, tmp_path, "--json", few, "--fail-fast").code == Exit.FAILED
    assert 0 < judged(few)["failed"] < judged(every)["failed"]
    assert judged(few)["programs"] < judged(every)["programs"]


def test_what_failed_is_judged_again(uop: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    conform(uop, tmp_path, "--json", first, "--seed", 5)
    again = ("--last-failed", first, "--json", second, "--output", tmp_path / "found", "-n", 1)
    assert uop("conform", WRONG, *again).code == Exit.FAILED
    assert judged(second)["programs"] == wrong(second) == wrong(first) > 0
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
