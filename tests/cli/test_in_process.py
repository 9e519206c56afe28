"""`--in-process`: a backend in Python judged where a debugger sees it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MINE = """\
import os
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.protocol.types import Outputs


class Right(InterpreterBackend):
    def run(self, programs):
        print("in process", os.getpid())
        return super().run(programs)


class Wrong(InterpreterBackend):
    def run(self, programs):
        return [Outputs(tuple(tuple(a * 0 for a in b) for b in o.batches))
                for o in super().run(programs)]


class Raising(InterpreterBackend):
    def run(self, programs):
        raise ZeroDivisionError("mine")


class Confused(InterpreterBackend):
    def run(self, programs):
        return [None for _ in programs]


class Stopping(InterpreterBackend):
    def run(self, programs):
        breakpoint()
        return super().run(programs)
"""
SELECT = ("--op", "ADD", "--dtype", "int8", "--level", "op", "--examples", "1", "--in-process")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # What a run adds to the path goes again.
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("mine.py").write_text(MINE)


def test_the_backend_runs_in_this_process(uop: Any) -> None:
    outcome = uop("conform", "mine:Right", *SELECT, "--json", "r.json")
    assert outcome.code == 0
    assert f"in process {os.getpid()}" in outcome.out
    assert "a crash or an exception of the backend ends the run" in outcome.err
    assert json.loads(Path("r.json").read_text())["summary"]["verdict"] == "conforms"


def test_what_is_wrong_is_found_and_shrunk(uop: Any) -> None:
    outcome = uop("conform", "mine:Wrong", *SELECT)
    assert outcome.code == 1
    repros = [path.read_text() for path in Path("uop-failures").iterdir()]
    assert repros
    assert all("ADD" in repro for repro in repros)
    outcome = uop("conform", "mine:Confused", *SELECT)
    assert "protocol: run: expected Outputs or a Problem, found NoneType" in outcome.out


def test_an_exception_ends_the_run_where_it_was_raised(uop: Any) -> None:
    with pytest.raises(ZeroDivisionError, match="mine"):
        uop("conform", "mine:Raising", *SELECT)


def test_a_breakpoint_works() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "uop", "conform", "mine:Stopping", *SELECT],
        input="p len(programs)\n" + "continue\n" * 99,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "(Pdb)" in done.stdout
    assert "verdict: Stopping" in done.stdout or "verdict: interpreter conforms" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("command:./worker", "--in-process"), "expected a backend in Python, such as module:Cl"),
        (("mine:Right", "--in-process", "--timeout", "5s"), "--timeout: nothing is timed"),
        (("mine:Right", "--in-process", "--known", "k.toml"), "--known: its programs are run in"),
        (("mine:Right", "mine:Wrong", "--in-process"), "expected one backend"),
        (("mine:Right", "--in-process", "--update-known"), "no --update-known"),
        (("mine:None", "--in-process"), "cannot be imported"),
        (("no_such_module:Class", "--in-process"), "No module named 'no_such_module'"),
    ],
)
def test_what_only_processes_have_is_refused(
    uop: Any, arguments: tuple[str, ...], said: str
) -> None:
    Path("k.toml").write_text("known = []\n")
    outcome = uop("conform", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
