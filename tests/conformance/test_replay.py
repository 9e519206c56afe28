"""Replaying files: by what they accept, expect or reject, else by the spec; on the command line."""

from dataclasses import replace
from pathlib import Path

import pytest

from uop.__main__ import main
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.judging.elements import Element
from uop.conformance.judging.verdict import Status
from uop.conformance.report.model import Failure, Tried, digest_of
from uop.conformance.run import Exit
from uop.conformance.run.replay import judge_files, tried
from uop.conformance.workers.transport import Local
from uop.spec.latitude import STRICT, Profile
from uop.spec.text.uop_file import parse_file

ADD = """\
%0 = PARAM [3] {slot=0, dtype=float32} : float32[3]
%1 = ADD %0, %0 : float32[3]
input 0 = [1.0, -0.0, 0x1p127]
"""
BUFFERS = """\
%0 = PARAM [2] {slot=0, dtype=int32} : int32[2]
%1 = BUFFER [2] {slot=3, dtype=int32, addrspace=GLOBAL} : int32[2] &GLOBAL
%2 = STORE %1, %0 : void[]
%3 = SINK %2 : void[]
input 0 = [4,5]
"""
NAN = """\
%0 = PARAM [2] {slot=0, dtype=float32} : float32[2]
%1 = ADD %0, %0 : float32[2]
input 0 = [nan:0x7fc00000, 1.0]
"""
MEAN = """\
%0 = PARAM [] {slot=0, dtype=index, min=1, max=8}
%1 = STACK %0
%2 = PARAM %1 {slot=1, dtype=float32}
%3 = REDUCE %2 {op=ADD, axes=(0)}
%4 = CAST %0 {dtype=float32}
%5 = DIV %3, %4
%6 = TUPLE %5
%7 = PARAM [3] {slot=0, dtype=float32}
%8 = FUNCTION %6, 3, %7
%9 = GETTUPLE %8 {idx=0}
input 0 = [1.0, 2.0, 6.0]
"""
REJECT = """\
%0 = PARAM [2,3] {slot=0, dtype=int32} : int32[2,3]
invalid PERMUTE.c1
%1 = PERMUTE %0 {order=(0,0)}
"""


def status(text: str) -> Status:
    file = parse_file(text)
    (verdict,) = judge_files(file.cases, Local(InterpreterBackend()))
    return verdict.status


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (ADD, True),
        (ADD + "accept 0 = 2.0, -0.0, inf\n", True),
        (ADD + "accept 0 = 2.0, 0.0, inf\n", False),
        (ADD + "accept 0 = [1.0,3.0], any, any\n", True),
        (ADD + "accept 0 = nan, any, any\n", False),
        (ADD + "expect 0 = [2.0,-0.0,inf]\n", True),
        (ADD + "expect 0 = [2.0,0.0,inf]\n", False),
        (NAN + "accept 0 = nan, 2.0\n", True),
        (NAN + "accept 0 = nan:0x7fc00001, 2.0\n", False),
        (NAN + "accept 0 = [1.0,2.0] | nan, 2.0\n", True),
        (NAN + "accept 0 = [1.0,2.0], 2.0\n", False),
        (NAN + "expect 0 = [nan:0xffc12345,2.0]\n", True),
        (BUFFERS, True),
        (BUFFERS + "expect 3 = [4,5]\n", True),
        (BUFFERS + "expect 3 = [5,4]\n", False),
        (BUFFERS + "accept 3 = 4, [0,9]\n", True),
        (MEAN + "expect 0 = [3.0]\n", True),
        (MEAN + "expect 0 = [1.125]\n", False),
        (REJECT, True),
    ],
)
def test_a_case_is_judged_by_what_its_file_says(text: str, passes: bool) -> None:
    assert status(text) is (Status.PASSED if passes else Status.FAILED)


def test_a_program_without_meaning_is_not_run() -> None:
    assert status(ADD + "undefined\n") is Status.SKIPPED


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "some" / "below"
    folder.mkdir(parents=True)
    (folder / "add.uop").write_text(ADD)
    (folder / "wrong.uop").write_text(ADD + "expect 0 = [0.0,0.0,0.0]\n")
    (tmp_path / "two.uop").write_text(f"case a\n{ADD}case b\n{REJECT}")
    return tmp_path


def test_files_and_folders_are_replayed(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(files / "two.uop"), "interpreter"]) == Exit.OK
    assert "2 passed" in capsys.readouterr().out
    assert main(["replay", str(files / "some"), str(files / "two.uop"), "interpreter"]) == 1
    out = capsys.readouterr().out
    assert "3 passed, 1 failed" in out
    first = out.splitlines()[0]
    assert first.startswith("FAILED")
    assert "wrong.uop" in first


def test_a_backend_of_the_same_name_as_a_folder_is_the_backend(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "interpreter").mkdir()
    monkeypatch.chdir(files)
    assert main(["replay", "two.uop", "interpreter"]) == Exit.OK
    assert "interpreter: conforms" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no file or folder"),
        ("%0 = PARAM [3", "1:"),
        (ADD.replace("input 0 = [1.0, -0.0, 0x1p127]\n", ""), "INPUT.c3"),
        ("", "no program"),
    ],
)
def test_bad_files_are_one_clear_message(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.uop"
    if text is not None:
        file.write_text(text)
    assert main(["replay", str(file), "interpreter"]) == Exit.USAGE
    captured = capsys.readouterr()
    assert said in captured.err
    assert "bad.uop" in captured.err
    assert "Traceback" not in captured.err


def test_a_folder_without_files_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path), "interpreter"]) == Exit.USAGE
    assert "no .uop file" in capsys.readouterr().err


FAILURE = Failure("op/A/float32/a/0@2", "s", "value", "op", (), (), "m", "")
CHOSEN = """profile max_nan=number
%0 = PARAM [1] {slot=0, dtype=float32} : float32[1]
%1 = PARAM [1] {slot=1, dtype=float32} : float32[1]
%2 = MAX %0, %1 : float32[1]
input 0 = [nan:0x7fc00000]
input 1 = [1.0]
accept 0 = 1.0
"""


def test_repros_of_others_are_judged_by_the_profile_of_the_backend() -> None:
    """What the file accepts was computed by another profile."""
    wrong = Element("output 0[0]", (), "0x1p+1", "0x1p+0")
    causes = [
        replace(FAILURE, text=CHOSEN, values=(wrong,)),
        replace(FAILURE, text="no program"),
        replace(FAILURE, text=REJECT),
        replace(FAILURE, text=CHOSEN, values=(replace(wrong, place="output 7[5,5]"),)),
        replace(FAILURE, text=CHOSEN, values=(replace(wrong, place="anywhere"),)),
    ]
    came = list(tried(causes, "interpreter", STRICT))
    digest = digest_of(CHOSEN)
    assert came == [
        Tried(digest, Status.PASSED, "nan:0x7fc00000"),
        Tried(digest_of(REJECT), Status.PASSED, ""),
        *[Tried(digest, Status.PASSED, "")] * 2,
    ]
    (number,) = tried(causes[:1], "interpreter", Profile(max_nan="number"))
    assert number.status is Status.FAILED
    assert number.gives == "nan:0x7fc00000"
