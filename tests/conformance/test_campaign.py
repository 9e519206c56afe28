"""Whole runs: the same verdicts however divided, faults found, bad input told, Ctrl-C kept."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from uop.__main__ import main
from uop.conformance.checks import OptionError, parse_duration
from uop.conformance.report.format import as_json
from uop.conformance.report.model import Conclusion, Report
from uop.conformance.run import Exit
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.selection import selected
from uop.conformance.suite.case import LEVELS

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


def without_time(report: Report) -> dict[str, Any]:
    found = as_json(report)
    for key in ("seconds", "searching", "peak_bytes", "judge_bytes"):
        del found["summary"][key]
    del found["origin"]
    return found


def test_the_interpreter_conforms(judged: Conform) -> None:
    report = judged(ops=("ADD", "MAX", "PAD", "CAST"), dtypes=("float32", "uint8"))
    assert report.conclusion is Conclusion.CONFORMS
    assert {cell.op for cell in report.cells} == {"ADD", "MAX", "PAD", "CAST"}


@pytest.mark.slow
def test_the_division_among_processes_changes_nothing(judged: Conform) -> None:
    chosen = {"ops": ("ADD", "SIN"), "dtypes": ("float32", "int8"), "levels": LEVELS}
    one, three = (judged("backends_for_tests:Inaccurate", **chosen, workers=n) for n in (1, 3))
    assert one.conclusion is Conclusion.DOES_NOT
    assert without_time(one) == without_time(three)


def test_another_seed_gives_other_data_under_the_same_ids() -> None:
    first, second = (selected(Options("interpreter", seed=seed)) for seed in (0, 1))
    assert first == second
    assert len(set(first)) == len(first) > 1000


def test_a_wrong_result_is_a_failure_with_a_repro(judged: Conform) -> None:
    report = judged("backends_for_tests:Inaccurate", ops=("ADD",), dtypes=("int32",))
    (failure,) = report.failures
    assert failure.ops == ("ADD",)
    assert failure.dtypes == ("int32",)
    assert failure.level == "op"
    text = Path(failure.repro).read_text()
    assert f"case {failure.id}" in text
    assert "accept 0 = " in text


@pytest.mark.slow
def test_what_many_ops_read_wrong_is_one_cause_beside_others(judged: Conform) -> None:
    ops = ("CMPLT", "CMPNE", "CMPGT", "XOR")
    report = judged("backends_for_tests:Flushing", ops=ops, dtypes=("float16", "int32"))
    found = {f.signature for f in report.failures}
    assert found == {"result CAST float16+float32", "result XOR int32"}


@pytest.mark.slow
def test_a_crash_is_a_failure_of_one_case_and_the_others_are_judged(judged: Conform) -> None:
    report = judged("backends_for_tests:Crashing", ops=("SIN", "SQRT"), dtypes=("float32",))
    assert report.summary.crashed >= 1
    assert report.summary.passed >= 1
    assert report.failures[0].label == "crash"
    assert "SIGSEGV" in report.failures[0].message


def test_a_failure_that_batching_causes_says_so(judged: Conform) -> None:
    several = {"ops": ("SUB",), "dtypes": ("int16",), "effort": "default", "examples": 2}
    report = judged("backends_for_tests:WrongTogether", **several)
    assert report.conclusion is Conclusion.DOES_NOT
    assert "only together with other programs" in report.failures[0].message


def test_what_a_backend_does_not_list_has_no_cell(judged: Conform) -> None:
    report = judged("backends_for_tests:Poor", ops=("ADD",), dtypes=("float32", "int8"))
    assert report.conclusion is Conclusion.CONFORMS
    cells = {cell["dtype"]: cell for cell in as_json(report)["cells"]}
    assert cells["float32"]["programs"] >= 1
    # What is not listed has no row.
    assert "int8" not in cells


@pytest.mark.slow
def test_a_listed_op_that_no_program_judges_is_named(judged: Conform) -> None:
    report = judged("backends_for_tests:Poorer", ops=("ADD", "MUL"))
    assert report.conclusion is Conclusion.INCONCLUSIVE
    assert as_json(report)["summary"]["untried"] == ["ADD: poorer does not support PARAM"]


def test_the_memory_of_a_backend_is_reported(judged: Conform) -> None:
    report = judged(ops=("ADD",), dtypes=("int8",))
    assert 1 << 20 < as_json(report)["summary"]["peak_bytes"] < 1 << 40


def test_a_run_that_skipped_everything_is_inconclusive(judged: Conform) -> None:
    report = judged("backends_for_tests:Poor", ops=("SIN",))
    assert report.conclusion is Conclusion.INCONCLUSIVE


def test_one_case_can_be_asked_for(judged: Conform) -> None:
    ids = [str(id) for id in selected(Options("interpreter", ops=("MUL",), dtypes=("int8",)))]
    report = judged(cases=(ids[0],))
    assert report.summary.programs == 1


@pytest.mark.slow
def test_time_ends_a_run_early_and_it_is_inconclusive(judged: Conform) -> None:
    report = judged("backends_for_tests:Slow", seconds=8.0, profile="strict")
    assert report.conclusion is Conclusion.INCONCLUSIVE
    assert any("the run ended before" in why for why in report.summary.missing)
    assert report.summary.programs < 200


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("30s", 30), ("5m", 300), ("1.5m", 90), ("1h", 3600)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "5 parsecs", "0", "m5", "1e3"])
def test_a_bad_duration_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="--time"):
        parse_duration(text)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nonsense"], Exit.USAGE, "no backend 'nonsense'"),
        (["interpreter", "--case", "op/ADD"], Exit.USAGE, "op/ADD"),
        (["interpreter", "--case", "op/ADD/int8/nothing/0"], Exit.USAGE, "no case"),
        (["interpreter", "--op", "FOO"], Exit.USAGE, "FOO"),
        (["interpreter", "--dtype", "float31"], Exit.USAGE, "float31"),
        (["interpreter", "--level", "all"], Exit.USAGE, "all"),
        (["interpreter", "--effort", "some"], Exit.USAGE, "some"),
        (["interpreter", "--time", "soon"], Exit.USAGE, "soon"),
        (["interpreter", "--profile", "lax"], Exit.USAGE, "lax"),
        (["interpreter", "-n", "-2"], Exit.USAGE, "-n"),
        (["interpreter", "-n", "0"], Exit.USAGE, "-n"),
        (["interpreter", "--examples", "0"], Exit.USAGE, "--examples"),
        (["interpreter", "--json", "{file}/report.json"], Exit.USAGE, "cannot write"),
        (["interpreter", "--output", "{file}/failures"], Exit.USAGE, "cannot write"),
        (["backends_for_tests:Missing"], Exit.NO_BACKEND, "pip install driver"),
        (["no_such_module:Backend"], Exit.NO_BACKEND, "no_such_module"),
    ],
)
def test_bad_input_is_one_clear_message(
    arguments: list[str],
    code: Exit,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file"
    file.write_text("a file, no folder")
    given = [argument.format(file=file) for argument in arguments]
    assert main(["conform", *given]) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert len(captured.err.splitlines()) <= 2
    assert "Traceback" not in captured.err


@pytest.mark.slow
def test_the_exit_code_and_the_files_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(backend: str, op: str) -> int:
        output = ["--json", str(tmp_path / "new" / "report.json"), "--output", str(tmp_path / "f")]
        chosen = ["--op", op, "--dtype", "float32,int8", "--effort", "smoke", "-n", "1"]
        return main(["conform", backend, *chosen, *output])

    assert run("interpreter", "SUB") == Exit.OK
    report = json.loads((tmp_path / "new" / "report.json").read_text())
    assert report["summary"]["verdict"] == "conforms"
    assert not (tmp_path / "f").exists()
    assert run("backends_for_tests:Poor", "SIN") == Exit.INCONCLUSIVE
    assert run("backends_for_tests:Inaccurate", "ADD") == Exit.FAILED
    report = json.loads((tmp_path / "new" / "report.json").read_text())
    repros = [Path(failure["repro"]) for failure in report["failures"]]
    assert repros
    assert all(repro.is_file() for repro in repros)
    shown = capsys.readouterr().out
    assert f"uop replay {repros[0]} backends_for_tests:Inaccurate" in shown


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_found(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    command = [sys.executable, "-m", "uop", "conform", "backends_for_tests:Slow"]
    process = subprocess.Popen(
        [*command, "--json", str(file), "--level", "op", "-n", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    lines = [process.stdout.readline(), process.stdout.readline()]
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED
    assert "inconclusive so far (interrupted), too little evidence" in out
    assert "programs" in lines[1]
    assert err == ""
    report = json.loads(file.read_text())
    assert report["summary"]["passed"] >= 1
    assert report["summary"]["interrupted"] is True


@pytest.mark.slow
def test_the_verdict_is_by_the_declared_profile(judged: Conform) -> None:
    chosen: dict[str, Any] = {"ops": ("MAX",), "dtypes": ("float32",)}
    assert judged(profile="max_nan=propagate", **chosen).conclusion is Conclusion.CONFORMS
    report = judged(profile="max_nan=number", **chosen)
    assert report.conclusion is Conclusion.DOES_NOT
    assert as_json(report)["profile"] == "max_nan=number"
    assert "profile max_nan=number" in Path(report.failures[0].repro).read_text()
