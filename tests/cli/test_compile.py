"""`uop compile`: the source for each target, what each stage leaves, and bad usage."""

import re
from pathlib import Path
from typing import Any

import pytest

from uop.compiler.runtime.opencl import OpenCLDevice

STAGES = (
    "callify",
    "rangeify",
    "optimize",
    "expand",
    "select",
    "linearize",
    "plan",
    "render",
)
# A 3-cycle of distinct values; the sum is exact in any order.
PROGRAM = """\
%0 = PARAM [2,3,2] {slot=0, dtype=int32} : int32[2,3,2]
%1 = PERMUTE %0 {order=(1,2,0)} : int32[3,2,2]
%2 = REDUCE %1 {op=ADD, axes=(1)} : int32[3,1,2]
%3 = RESHAPE %2, [3,2] : int32[3,2]
input 0 = [[[1,2],[3,4],[5,6]],[[70,80],[90,100],[110,120]]]
"""
LINES = ["[[3, 150],", "[7, 190],", "[11, 230]]"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.uop"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize(
    ("target", "word"), [("opencl", "kernel void"), ("cuda", 'extern "C" __global__ void')]
)
def test_the_source_is_in_the_language_of_the_target(
    uop: Any, program: Path, target: str, word: str
) -> None:
    outcome = uop("compile", program, "--target", target)
    assert outcome.code == 0
    assert word in outcome.out


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_stage_leaves_is_a_file_that_runs_and_agrees(
    uop: Any, program: Path, tmp_path: Path, stage: str
) -> None:
    left = tmp_path / f"{stage}.uop"
    left.write_text(uop("compile", program, "--stage", stage).out)
    *_, first, second, third = uop("run", left).out.splitlines()
    assert first.endswith(LINES[0])
    assert [line.strip() for line in (second, third)] == LINES[1:]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_says_what_it_is_about_and_what_it_has_changed(
    uop: Any, program: Path, stage: str
) -> None:
    about, changed, *_ = uop("compile", program, "--stage", stage).out.splitlines()
    assert re.fullmatch(rf"; {stage}: [a-z].*\.", about)
    assert re.fullmatch(r"; changed: (nothing|\d+ nodes to \d+, \d+ of them new.*)", changed)


def test_a_file_with_machine_code_runs_from_it(
    uop: Any, program: Path, tmp_path: Path, opencl: OpenCLDevice
) -> None:
    filled = tmp_path / "filled.uop"
    filled.write_text(uop("compile", program, "--binary").out)
    first, *rest = filled.read_text().splitlines()
    assert first == f"; each BINARY is for {opencl.machine}"
    assert any(re.match(r"%\d+ = BINARY \{data=hex:[0-9a-f]{100}", line) for line in rest)
    found = uop("run", filled, "--backend", "opencl", "--native")
    assert found.code == 0
    assert all(line in found.out for line in LINES)
    refused = uop("compile", program, "--binary", "--stage", "plan")
    assert refused.code == 2
    assert "--binary prints what render leaves" in refused.err


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_needs_no_input_is_a_file_that_runs(
    uop: Any, tmp_path: Path, stage: str
) -> None:
    empty = tmp_path / "empty.uop"
    empty.write_text(
        "%0 = PARAM [0,3] {slot=0, dtype=int8} : int8[0,3]\n"
        "%1 = REDUCE %0 {op=MUL, axes=(0)} : int8[1,3]\n"
        "input 0 = []\n"
    )
    left = tmp_path / f"{stage}.uop"
    left.write_text(uop("compile", empty, "--stage", stage).out)
    assert uop("run", left).out.endswith("int8[1,3] = [[1, 1, 1]]\n")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--target", "abacus"], "expected one of opencl, cuda"),
        (["--stage", "polish"], f"expected one of {', '.join(STAGES)}"),
        (["--case", "two"], "no case 'two'"),
    ],
)
def test_wrong_usage(uop: Any, program: Path, option: list[str], said: str) -> None:
    outcome = uop("compile", program, *option)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_a_broken_constraint_is_said_by_label_and_place(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.uop"
    path.write_text("%0 = PARAM [2] {slot=0, dtype=int8}\n%1 = PERMUTE %0 {order=(1,)}\n")
    outcome = uop("compile", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert "PERMUTE.c1" in outcome.err
    assert f"{path}:2:1" in outcome.err


KERNEL = """\
%0 = PARAM [4] {slot=0, dtype=int32, addrspace=GLOBAL}
%1 = SPECIAL 4 {name="gidx0"}
%2 = INDEX %0, %1
%3 = CONST {value=7, dtype=int32}
%4 = STORE %2, %3
%5 = SINK %4
%6 = BUFFER [4] {slot=0, dtype=int32}
%7 = CALL %5, %6
%8 = SINK %7
"""


def test_a_stage_that_a_kernel_does_not_need_is_refused_with_those_that_it_does(
    uop: Any, program: Path
) -> None:
    program.write_text(KERNEL)
    refused = uop("compile", program, "--stage", "callify")
    assert refused.code == 2
    stages = "select, linearize, plan, render"
    assert f"the kernels of this program need no callify: expected one of {stages}" in refused.err
