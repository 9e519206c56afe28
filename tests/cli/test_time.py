"""`uop time`: its rows, its JSON, the inputs that it draws, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uop.compiler import timing

SUM = """\
%0 = PARAM [4,6] {slot=0, dtype=float32} : float32[4,6]
%1 = REDUCE %0 {op=ADD, axes=(1)} : float32[4,1]
%2 = RESHAPE %1, [4] : float32[4]
"""
SIZED = """\
%0 = PARAM [] {slot=0, dtype=index, min=1, max=5} : index[]
%1 = STACK %0 : index[1]
%2 = PARAM %1 {slot=1, dtype=int32} : int32[v0]
%3 = NEG %2 : int32[v0]
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "TURN", 0)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.uop"
    path.write_text(SUM)
    return path


def test_one_row_for_each_kernel(uop: Any, program: Path) -> None:
    outcome = uop("time", program, "--backend", "cuda-host")
    assert outcome.code == 0
    head, titles, *rows = outcome.out.splitlines()
    assert head.startswith("CPU: a copy of 16 MiB at ")
    assert titles.split("  ")[0] == "kernel"
    assert [row.split()[0] for row in rows] == ["kernel_0_4", "kernel_1_4"][: len(rows)]
    assert all("%" in row and " x " in row for row in rows)


def test_figures_as_json(uop: Any, program: Path) -> None:
    outcome = uop("time", program, "--backend", "cuda-host", "--json")
    found = json.loads(outcome.out)
    kernel = found["kernels"][0]
    assert (kernel["flops"], kernel["bytes"]) == (24, 4 * (24 + 4))
    assert kernel["flops_per_second"] == pytest.approx(24 / kernel["seconds"])
    assert found["copy_bytes_per_second"] > 0


def test_optimizations_are_those_of_each_kernel(uop: Any, program: Path) -> None:
    sequence = ["--opt", "SPLIT(0, 2, LOCAL, INNER)"]
    outcome = uop("time", program, "--backend", "cuda-host", "--json", *sequence)
    kernel = json.loads(outcome.out)["kernels"][0]
    assert (kernel["groups"], kernel["items"]) == ([2], [2])
    assert "lidx0" in uop("compile", program, "--target", "cuda", *sequence).out
    for command in ("time", "compile"):
        refused = uop(command, program, "--opt", "SPLIT(0, 2)")
        assert refused.code == 2
        assert "--opt: expected SPLIT(axis, factor, type, [side])" in refused.err


def test_a_size_that_is_lacking_is_the_largest(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "sized.uop"
    path.write_text(SIZED)
    outcome = uop("time", path, "--backend", "cuda-host", "--json")
    assert json.loads(outcome.out)["kernels"][0]["bytes"] == 2 * 5 * 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backend", "interpreter"], "--backend: expected opencl, cuda or cuda-host"),
        (["--backend", "nothing"], "no backend"),
        (["--case", "x"], "holds no case 'x'"),
    ],
)
def test_what_it_refuses(uop: Any, program: Path, words: list[str], said: str) -> None:
    outcome = uop("time", program, *words)
    assert outcome.code == 2
    assert said in outcome.err
