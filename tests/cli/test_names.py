"""Names on the command line: any case of letters, near ones suggested, completed by a shell."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from uop.cli import COMMANDS
from uop.conformance.backends import names
from uop.conformance.suite.case import ALL_LEVELS, EFFORTS
from uop.spec.dtype import DTYPES
from uop.spec.nearest import did_you_mean
from uop.spec.ops.names import Op

GEMM = str(Path(__file__).parents[2] / "examples" / "gemm.uop")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("AD", "; did you mean ADD?"),
        ("add", "; did you mean ADD?"),
        ("mul2", "; did you mean MUL?"),
        ("xyzzy", ""),
        ("", ""),
    ],
)
def test_what_is_near(found: str, said: str) -> None:
    assert did_you_mean(found, ["ADD", "MUL"]) == said


def test_case_does_not_matter(uop: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    select = ("--op", "add,mul", "--dtype", "INT8,Int16", "--level", "OP", "--effort", "SMOKE")
    outcome = uop("conform", "InterPreter", *select, "-n", "1")
    assert outcome.code == 0
    assert "verdict: interpreter conforms" in outcome.out
    assert "uop conform interpreter " in outcome.out
    for arguments in (("idiv", "-7", "2", "--dtype", "INT8"), ("Cast", "300", "--to", "U8")):
        assert uop("explain", *arguments).code == 0
    assert uop("explain", "add", "1", "2", "--backend", "INTERPRETER").code == 0
    assert uop("compile", GEMM, "--target", "CUDA", "--stage", "Plan").code == 0
    for name in ("Instruction Selection", "instruction_selection", "SELECT"):
        outcome = uop("compile", GEMM, "--stage", name)
        assert outcome.out.startswith("; select: rewrites kernels to ops that the target has.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("confrom", "x"), "error: no command 'confrom'; did you mean conform?\ntry: uop --help\n"),
        (("worker", "chek"), "error: no command 'chek'; did you mean check?\n"),
        (("profile", "shw"), "error: no command 'shw'; did you mean show?\n"),
        (("conform", "opncl"), "; did you mean opencl?\n"),
        (("conform", "tinygard:CPU"), "; did you mean tinygrad?\n"),
        (("conform", "interpreter", "--op", "MULL"), "found 'MULL'; did you mean MUL"),
        (("conform", "interpreter", "--dtype", "float23"), "; did you mean float32"),
        (("conform", "interpreter", "--skip-op", "add,MULL"), "found 'MULL'; did you mean MUL"),
        (("conform", "interpreter", "--skip-dtype", "int9"), "; did you mean int8"),
        (("conform", "interpreter", "--level", "grph"), "; did you mean graph?\n"),
        (("conform", "interpreter", "--effort", "fall"), "; did you mean full?\n"),
        (("conform", "interpreter", "--profile", "max_nam=number"), "; did you mean max_nan"),
        (("explain", "ADD", "1", "2", "--dtype", "flot32"), "; did you mean float32"),
        (("explain", "PERMUT"), "near: PERMUTE"),
        (("compile", GEMM, "--target", "opnecl"), "found 'opnecl'; did you mean opencl?\n"),
        (("compile", GEMM, "--stage", "linearise"), "; did you mean linearize?\n"),
    ],
)
def test_a_mistyped_name_is_told_with_what_is_near(
    uop: Any, arguments: tuple[str, ...], said: str
) -> None:
    outcome = uop(*arguments)
    assert outcome.code in (2, 3)
    assert outcome.out == ""
    assert said in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("conform",), "error: missing argument 'BACKEND...'.\ntry: uop conform --help\n"),
        (("conform", "x", "--seed", "y"), "error: --seed: 'y' is not a valid integer."),
        (("conform", "interpreter", "--effort", "none"), "error: --effort: expected one of "),
        (("conform", "interpreter", "--time", "soon"), "error: --time: expected a duration "),
        (("conform", "interpreter", "--nothing"), "error: no such option '--nothing'"),
        (("compile", GEMM, "--stage", "x"), "error: --stage: expected one of callify, "),
        (("compile", GEMM, "--target", "x"), "error: --target: expected one of opencl, "),
        (("run", "no.uop"), "error: FILE: File 'no.uop' does not exist."),
        (("diff", "a"), "error: missing argument 'B.json'."),
    ],
)
def test_every_error_has_one_form(uop: Any, arguments: tuple[str, ...], said: str) -> None:
    outcome = uop(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(said)


def test_help_shows_the_choices(uop: Any) -> None:
    told = "".join(uop("conform", "--help").out.split())
    assert f"--level[{'|'.join(ALL_LEVELS)}]" in told
    assert f"--effort[{'|'.join(EFFORTS)}]" in told


def completed(line: str) -> list[str]:
    """What bash is told for the last word of a line."""
    words = line.split(" ")
    told = {"_UOP_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "uop"],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=True,
    )
    return [item.partition(",")[2] for item in done.stdout.splitlines()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("uop co", [name for name in COMMANDS if name.startswith("co")]),
        ("uop conform ", names()),
        ("uop conform OPEN", ["opencl", "openvino"]),
        ("uop conform opencl --op ad", [op.name for op in Op if op.name.startswith("AD")]),
        ("uop conform opencl --op ADD,mu", ["ADD,MUL", "ADD,MULACC"]),
        ("uop conform opencl --dtype fl", [name for name in DTYPES if name.startswith("fl")]),
        ("uop conform opencl --level ", list(ALL_LEVELS)),
        ("uop conform opencl --effort s", ["smoke"]),
        ("uop run x.uop --backend in", ["interpreter"]),
        ("uop compile x.uop --target cu", ["cuda", "cuda-host"]),
        ("uop compile x.uop --stage R", ["rangeify", "render"]),
        ("uop explain PERMU", ["PERMUTE"]),
    ],
)
def test_a_shell_completes_names(line: str, expected: list[str]) -> None:
    if "mu" in line:
        expected = [f"ADD,{op.name}" for op in Op if op.name.startswith("MU")]
    assert completed(line) == expected


def test_bash_is_told_how_to_complete(uop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_UOP_COMPLETE", "bash_source")
    outcome = uop()
    assert (outcome.code, "complete -o nosort -F" in outcome.out) == (0, True)
