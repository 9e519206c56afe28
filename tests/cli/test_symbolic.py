"""Programs whose sizes are variables: run, traced, compiled, and run by a backend."""

from pathlib import Path
from typing import Any

import pytest

PROGRAM = """\
%0 = PARAM [] {slot=0, dtype=index, min=1, max=8} : index[]
%1 = STACK %0
%2 = PARAM %1 {slot=1, dtype=int32}
%3 = NEG %2
"""
INPUTS = "input 0 = [3]\ninput 1 = [5,7,11]\n"
RESULT = "0 : int32[3] = [-5, -7, -11]"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "symbolic.uop"
    path.write_text(PROGRAM + INPUTS)
    return path


def test_a_trace_shows_the_nodes_of_these_sizes(uop: Any, program: Path) -> None:
    outcome = uop("run", "--trace", program)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines() == [
        "%0 = PARAM [3] {slot=1, dtype=int32} : int32[3]",
        "    = [5, 7, 11]",
        "%1 = NEG %0 : int32[3]",
        "    = [-5, -7, -11]",
        RESULT,
    ]


def test_a_backend_gets_numbers_for_the_variables(uop: Any, program: Path) -> None:
    assert uop("run", "--backend", "adversary", program).out.splitlines() == [RESULT]


@pytest.mark.usefixtures("opencl")
def test_a_device_gets_numbers_for_the_variables(uop: Any, program: Path) -> None:
    outcome = uop("run", "--backend", "opencl", program)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines() == [RESULT]


@pytest.mark.parametrize("target", ["opencl", "cuda"])
def test_sizes_are_arguments_of_the_kernel(uop: Any, program: Path, target: str) -> None:
    outcome = uop("compile", "--target", target, program)
    assert outcome.code == 0, outcome.err
    assert "i64 v2) {" in outcome.out
    assert "if (gidx0 < v2) {" in outcome.out
    program.write_text(PROGRAM)
    assert uop("compile", "--target", target, program).out == outcome.out


@pytest.mark.parametrize("stage", ["callify", "rangeify", "select", "linearize", "render"])
def test_what_a_stage_leaves_runs(uop: Any, program: Path, tmp_path: Path, stage: str) -> None:
    """On the inputs of the case, and on others: the program of a stage is that of all sizes."""
    left, text = tmp_path / "left.uop", uop("compile", "--stage", stage, program).out
    left.write_text(text)
    assert uop("run", left).out.splitlines()[-1].endswith("int32[3] = [-5, -7, -11]")
    bare = "".join(line for line in text.splitlines(True) if not line.startswith("input"))
    for data in ([4], [*range(8)]):
        left.write_text(f"{bare}input 0 = [{len(data)}]\ninput 1 = {data}\n")
        outcome = uop("run", left)
        assert outcome.code == 0, outcome.err
        assert outcome.out.splitlines()[-1].endswith(f"= {[-x for x in data]}")


def test_a_variable_without_a_value_is_named(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "open.uop"
    path.write_text(PROGRAM)
    outcome = uop("run", path)
    assert outcome.code == 2
    assert "INPUT.c3" in outcome.err


def test_a_value_outside_its_range_is_refused_by_all(uop: Any, program: Path) -> None:
    program.write_text(PROGRAM + INPUTS.replace("[3]", "[9]"))
    for command in (["run"], ["run", "--trace"], ["run", "--backend", "adversary"], ["compile"]):
        outcome = uop(*command, program)
        assert outcome.code == 2, command
