"""`uop replay FILE --emit-python`: scripts that run, on special values and kernels too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TENSOR = """\
case op/NEG/float32/edges/0@2
; a "comment" \\ of
; two lines
%0 = PARAM [7] {slot=0, dtype=float32}
%1 = BITCAST %0 {dtype=uint32}
%2 = TUPLE %0, %1
input 0 = [nan:0x7fc00001, nan:0xff800001, -0x0p+0, 0x0p+0, inf, -inf, -0x1p-149]
"""
TENSOR_SHOWN = ["nan:0x7fc00001", "nan:0xff800001", "-0x0p+0", "0x0p+0", "inf", "-inf", "-0x1p-149"]
INTEGERS = """\
%0 = PARAM [2,1] {slot=0, dtype=int64}
%1 = PARAM [] {slot=1, dtype=bool}
%2 = WHERE %1, %0, %0
input 0 = [[-9223372036854775808], [9223372036854775807]]
input 1 = true
"""
INTEGERS_SHOWN = ["-9223372036854775808", "9223372036854775807"]
SMALL = """\
%0 = PARAM [2] {slot=0, dtype=bfloat16}
%1 = PARAM [2] {slot=1, dtype=fp8e4m3}
%2 = TUPLE %0, %1
input 0 = [nan:0xffc1, -0x0p+0]
input 1 = [-0x0p+0, 0x1p-9]
"""
SMALL_SHOWN = ["nan:0xffc1", "-0x0p+0", "-0x0p+0", "0x1p-9"]
KERNEL = """\
%0 = PARAM [4] {slot=0, dtype=uint32, addrspace=GLOBAL}
%1 = SPECIAL 4 {name="gidx0"}
%2 = INDEX %0, %1
%3 = LOAD %2
%4 = ADD %3, %3
%5 = STORE %2, %4
%6 = SINK %5
%7 = BUFFER [4] {slot=0, dtype=uint32}
%8 = CALL %6, %7
%9 = SINK %8
input 0 = [0, 1, 4294967295, 3]
"""
KERNEL_SHOWN = ["0", "2", "4294967294", "6"]
PROGRAMS = [
    (TENSOR, TENSOR_SHOWN),
    (INTEGERS, INTEGERS_SHOWN),
    (SMALL, SMALL_SHOWN),
    (KERNEL, KERNEL_SHOWN),
]


@pytest.fixture
def script(uop: Any, tmp_path: Path) -> Any:
    def of(text: str, *backend: str) -> str:
        path = tmp_path / "repro.uop"
        path.write_text(text)
        outcome = uop("replay", path, *backend, "--emit-python")
        assert outcome.code == 0, outcome.err
        return str(outcome.out)

    return of


def lines_of(text: str, folder: Path) -> list[str]:
    """What a script prints, in a folder of its own."""
    path = folder / "script.py"
    path.write_text(text)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("text", "shown"), PROGRAMS, ids=["tensor", "int64", "small", "kernel"])
def test_a_script_runs_and_keeps_all_bits(
    text: str, shown: list[str], script: Any, tmp_path: Path
) -> None:
    found = lines_of(script(text), tmp_path)
    assert all(line.startswith("ok    output ") for line in found)
    assert [line.split(": ")[1].split(",")[0] for line in found[: len(shown)]] == shown


def test_a_script_runs_on_a_target(script: Any, tmp_path: Path, opencl: object) -> None:
    text = script(KERNEL, "opencl")
    assert 'compile(root, target="opencl").run(inputs)' in text
    assert [line[:6] for line in lines_of(text, tmp_path)] == ["ok    "] * 4


def test_what_is_not_accepted_is_marked(script: Any, tmp_path: Path) -> None:
    wrong = "{0: np.array([0, 2, 3, 6], np.uint32)}"
    found = lines_of(script(KERNEL).replace("evaluate(root, inputs)", wrong), tmp_path)
    assert found[2] == "WRONG output 0 element 2: 3, accepted 4294967294"
    assert [line.split()[0] for line in found] == ["ok", "ok", "WRONG", "ok"]


def test_the_text_of_a_program_may_hold_quotes_and_backslashes(script: Any, tmp_path: Path) -> None:
    odd = KERNEL.replace("gidx0", 'gidx0\\"\\"\\"')
    plain = script(odd).partition("found = ")[0] + "print([u.arg for u in root.toposort()])\n"
    assert 'gidx0"""' in lines_of(plain, tmp_path)[0]


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (KERNEL, ("tinygrad:PYTHON",), "expected one of interpreter, "),
        ("%0 = PARAM [2,3] {slot=0, dtype=int32}\ninvalid REDUCE.c2\n"
         "%1 = REDUCE %0 {op=ADD, axes=(1,0)}\n", (), "must be rejected"),
        (f"case a\n{KERNEL}case b\n{KERNEL}", (), "expected one program, found 2"),
    ],
)  # fmt: skip
def test_what_has_no_script_is_said(
    text: str, words: tuple[str, ...], said: str, uop: Any, tmp_path: Path
) -> None:
    path = tmp_path / "repro.uop"
    path.write_text(text)
    outcome = uop("replay", path, *words, "--emit-python")
    assert outcome.code != 0
    assert outcome.err.startswith("error: --emit-python: ")
    assert said in outcome.err
