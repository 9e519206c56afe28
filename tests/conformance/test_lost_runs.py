"""Runs that lose a process, a backend or their time: what the report says then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from uop.conformance.report.format import read_report
from uop.conformance.report.model import Conclusion
from uop.conformance.run import Exit
from uop.conformance.run.causes import CauseSearch
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.run import UNCOMPARED

UOP = (sys.executable, "-P", "-u", "-m", "uop")
LATE = """
import sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == "uop.cli.program":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)

import os, runpy, signal, time
sys.meta_path.insert(0, Interrupts())
sys.argv[1:] = ["eval", "1"]
runpy.run_module("uop", run_name="__main__", alter_sys=True)
"""


def test_a_backend_that_becomes_another_one_ends_the_run_as_inconclusive(tmp_path: Path) -> None:
    backend = f"backends_for_tests:Once:changes={tmp_path / 'done'}=99"
    options = Options(backend, ops=("SIN", "NEG"), dtypes=("float32",), levels=("op",), workers=1)
    report = conform(options)
    assert report.conclusion is Conclusion.INCONCLUSIVE
    for said in ("expected Once 1 on test", "found Once 1 on another device"):
        assert said in report.summary.open_because


def test_a_judging_process_that_is_killed_costs_no_verdict(tmp_path: Path) -> None:
    command = [*UOP, "conform", "interpreter", "--op", "ADD", "--effort", "smoke", "-n", "1"]
    run = subprocess.Popen(
        [*command, "--json", "r.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
    )
    assert run.stdout is not None
    # It has begun to judge.
    head = [run.stdout.readline() for _ in range(2)]
    below = psutil.Process(run.pid).children(recursive=True)
    judges = [process for process in below if process.name().startswith("judge")]
    for judge in judges:
        judge.kill()
    said = "".join(head) + run.communicate(timeout=120)[0]
    assert judges
    assert run.returncode == Exit.OK, said
    assert read_report(tmp_path / "r.json").conclusion is Conclusion.CONFORMS


@pytest.mark.slow
def test_known_failures_fail_no_run_whose_time_is_short(
    uop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cast = ("--op", "CAST", "--dtype", "float32", "-n", "1", "--profile", "strict")
    chosen = ("conform", "backends_for_tests:WrongByte", *cast)
    assert uop(*chosen, "--level", "op", "--update-known").code == Exit.OK
    for seconds in ("3s", "12s"):
        outcome = uop(*chosen, "--time", seconds, "--json", "r.json")
        assert outcome.code in (Exit.OK, Exit.INCONCLUSIVE), outcome.out
        report = read_report(Path("r.json"))
        assert report.failures == () == report.unexplained
        assert report.summary.failed == 0


def test_failures_that_no_time_compares_with_known_ones_are_not_judged(
    uop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cast = ("--op", "CAST", "--dtype", "float32", "-n", "1", "--profile", "strict")
    chosen = ("conform", "backends_for_tests:WrongByte", *cast, "--level", "op")
    assert uop(*chosen, "--update-known").code == Exit.OK
    monkeypatch.setattr(CauseSearch, "compare", lambda search, failed: None)
    monkeypatch.setattr(CauseSearch, "run", lambda search, failed: None)
    outcome = uop(*chosen, "--json", "r.json")
    assert outcome.code == Exit.INCONCLUSIVE
    assert f"not judged: {UNCOMPARED}" in outcome.out
    report = read_report(Path("r.json"))
    assert report.failures == () == report.unexplained
    assert (report.summary.failed, set(report.summary.unjudged)) == (0, {UNCOMPARED})
    assert all(cell.failed == 0 for cell in report.cells)


def test_ctrl_c_while_the_program_loads_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (Exit.INTERRUPTED, "", "interrupted\n")


def test_nothing_is_left_of_a_run_that_is_killed(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    run = subprocess.Popen(
        [*UOP, "conform", "interpreter", "--op", "ADD", "-n", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert run.stdout is not None
    run.stdout.readline()
    below = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=60)
    _, alive = psutil.wait_procs(below, timeout=60)
    deadline = time.monotonic() + 60
    while (left := list(scratch.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (alive, left) == ([], [])
