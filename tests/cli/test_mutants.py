"""`uop mutants`: what is chosen, written and said, and what is left of it after Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from uop.cli.suite.mutants import WIDTH, line_of, selected
from uop.conformance.mutants.catalogue import find_mutant, mutants
from uop.conformance.mutants.hunt import Fate, Hunted
from uop.conformance.run import Exit

SCHEMA = json.loads(
    files("uop.conformance.mutants").joinpath("uop-mutants-1.schema.json").read_text()
)


def test_a_mutant_that_dies_is_exit_0_and_the_sums_are_written(uop: Any, tmp_path: Path) -> None:
    file = tmp_path / "new" / "sums.json"
    outcome = uop("mutants", "trunc-rounds-down", "--json", file, "-n", 1)
    assert outcome.code == Exit.OK, outcome
    assert "killed" in outcome.out
    assert "op/TRUNC/" in outcome.out
    assert "1 mutants: 1 killed, 1 of them by a check about what was broken" in outcome.out
    sums = json.loads(file.read_text())
    jsonschema.validate(sums, SCHEMA)
    assert sums["summary"]["killed"] == 1
    assert not sums["summary"]["interrupted"]


def test_the_list_says_what_they_look_like_and_nothing_more(uop: Any) -> None:
    outcome = uop("mutants", "--list")
    assert outcome.code == Exit.OK
    lines = [line.split(maxsplit=2) for line in outcome.out.splitlines() if line.startswith("  ")]
    assert [*map(tuple, lines)] == [(m.alias, m.backend, m.hint) for m in mutants().values()]
    for mutant in mutants().values():
        # The small backend stands in the module that has the fault.
        assert mutant.module not in outcome.out or mutant.module in mutant.backend
        assert mutant.name not in outcome.out
        assert find_mutant(mutant.alias) is find_mutant(mutant.name) is mutant


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no-such",), "no mutant 'no-such': `uop mutants --list` names them"),
        (("--class", "no such"), "--class: expected one of absent elements, "),
        (("--list", "--json", "sums.json"), "--json: expected no --list"),
        (("-n", 0), "-n: expected a positive number"),
        (("--json", f"{__file__}/sums.json"), f"cannot write {__file__}/sums.json"),
    ],
)
def test_bad_input_is_one_line(uop: Any, arguments: tuple[Any, ...], said: str) -> None:
    outcome = uop("mutants", *arguments)
    assert outcome.code == Exit.USAGE
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_a_name_that_is_given_twice_is_one() -> None:
    one = find_mutant("trunc-rounds-down")
    assert selected([one.name, one.alias, one.name], []) == [one]


def test_a_mutant_of_another_backend_is_no_mutant_of_this_one(uop: Any) -> None:
    outcome = uop("conform", "opencl", "--mutant", "trunc-rounds-down")
    assert outcome.code == Exit.USAGE
    assert "trunc-rounds-down is a fault of interpreter, not of opencl" in outcome.err
    outcome = uop("conform", "interpreter", "--mutant", "bits-or-nothing")
    assert outcome.code == Exit.USAGE
    assert "is a fault of the suite: `uop mutants bits-or-nothing`" in outcome.err


def test_a_line_fits_on_a_screen() -> None:
    one = Hunted("a-mutant", "a class", Fate.EQUIVALENT, note="A proof. " * 40)
    assert len(line_of(one)) == WIDTH
    assert line_of(one).endswith("...")
    assert line_of(Hunted("a", "b", Fate.SURVIVED)) == "survived   a"


def test_an_id_is_not_cut_and_a_kill_by_something_else_is_told() -> None:
    case = f"op/ADD/int32/{'long' * 20}/0"
    assert line_of(Hunted("a", "b", Fate.KILLED, case, True, 1.5)).endswith(f"   1.50 s  {case}")
    assert line_of(Hunted("a", "b", Fate.KILLED, case)).endswith(f"{case}  (about something else)")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_the_sums_are_written_though_nothing_can_be_printed(tmp_path: Path) -> None:
    file = tmp_path / "sums.json"
    command = [sys.executable, "-P", "-m", "uop", "mutants", "trunc-rounds-down", "-n", "1"]
    with open("/dev/full", "wb") as full:
        command += ["--json", str(file)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == Exit.USAGE
    assert done.stderr == b"error: the output: No space left on device\n"
    assert json.loads(file.read_text())["summary"]["killed"] == 1


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_found(tmp_path: Path) -> None:
    file = tmp_path / "sums.json"
    command = [sys.executable, "-P", "-m", "uop", "mutants", "--class", "rules of integers"]
    process = subprocess.Popen(
        [*command, "--json", str(file), "-n", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("killed")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED
    assert "(interrupted) mutants: " in out
    assert "Traceback" not in err
    sums = json.loads(file.read_text())
    jsonschema.validate(sums, SCHEMA)
    assert sums["summary"]["interrupted"]
    assert sums["summary"]["killed"] >= 1
