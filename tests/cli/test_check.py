"""`uop compile --check`: the verdict on each stage, its JSON, and bad usage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uop.compiler import pipeline
from uop.compiler.rewriting.rewrite import Fired, RuleSet, rewrite, rewrites
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.stages.stage import Setting, Stage
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

PROGRAM = """\
%0 = PARAM [3] {slot=0, dtype=int32} : int32[3]
%1 = ADD %0, %0 : int32[3]
"""
INPUT = "input 0 = [2,3,5]\n"


@rewrites(Op.ADD)
def subtract(u: UOp) -> UOp | None:
    return UOp(Op.SUB, *u.src) if u.dtype is dtypes.int32 else None


def select_with_fault(u: UOp, setting: Setting, fired: Fired) -> UOp:
    return rewrite(u, RuleSet(subtract), fired)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.uop"
    path.write_text(PROGRAM + INPUT)
    return path


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [
        Stage("expand", select_with_fault, s.form) if s.name == "expand" else s
        for s in pipeline.STAGES
    ]
    monkeypatch.setattr(pipeline, "STAGES", stages)


def test_a_right_program(uop: Any, program: Path, opencl: OpenCLDevice) -> None:
    outcome = uop("compile", program, "--check")
    assert outcome.code == 0
    *stages, last = outcome.out.splitlines()
    assert [line.split()[0] for line in stages] == [*(s.name for s in pipeline.STAGES), "run"]
    assert last.startswith("every stage keeps the meaning: 8 stages, ")
    assert last.endswith(f"{9 * 3} elements checked")


def test_the_stage_and_the_rule_of_a_fault(uop: Any, program: Path, faulty: None) -> None:
    outcome = uop("compile", program, "--check")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert "expand     WRONG: output 0[0] is 0, accepted 4" in lines
    where = "(at RANGE 0 = 0: before 4, after 0)"
    assert f"to blame: expand/subtract changes a value {where}" in lines
    shown = [line.split("= ")[1].split()[0] for line in lines if line.startswith("    %")]
    assert shown[-1] == "SUB"


def test_the_same_as_json(uop: Any, program: Path, faulty: None) -> None:
    outcome = uop("compile", program, "--check", "--json")
    found = json.loads(outcome.out)
    assert outcome.code == 1
    assert (found["schema"], found["ok"]) == ("uop-check/1", False)
    assert [stage["name"] for stage in found["stages"]] == ["callify", "rangeify", "optimize"]
    blame = found["blame"]
    assert (blame["stage"], blame["rule"], blame["where"]) == ("expand", "subtract", "RANGE 0 = 0")
    assert (blame["value_before"], blame["value_after"]) == ("4", "0")
    assert "ADD" in blame["before"]
    assert "SUB" in blame["after"]


def test_inputs_that_a_file_lacks_are_drawn(uop: Any, tmp_path: Path, opencl: OpenCLDevice) -> None:
    path = tmp_path / "program.uop"
    path.write_text(PROGRAM)
    outcome = uop("compile", path, "--check")
    assert outcome.code == 0
    assert "input 0 was drawn: the file has none" in outcome.out


def test_optimizations_are_those_of_the_option(
    uop: Any, program: Path, opencl: OpenCLDevice
) -> None:
    outcome = uop("compile", program, "--check", "--opt", "PADTO(0, 4)")
    assert outcome.code == 0
    plain, padded = (uop("compile", program, *more).out for more in ((), ("--opt", "PADTO(0, 4)")))
    assert plain != padded


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--json"], "expected --check too"),
        (["--check", "--stage", "plan"], "--check prints a verdict"),
        (["--check", "--binary"], "--check prints a verdict"),
        (["--opt", "SPLIT(0)"], "--opt: expected SPLIT(axis, factor, type, [side])"),
        (["--check", "--opt", "SPLIT(7, 2, LOCAL, INNER)"], "SPLIT"),
        (["--check", "--target", "metal"], "metal"),
    ],
)
def test_bad_usage(uop: Any, program: Path, options: list[str], said: str) -> None:
    outcome = uop("compile", program, *options)
    assert outcome.code == 2
    assert said in outcome.err
