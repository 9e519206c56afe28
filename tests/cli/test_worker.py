"""`uop worker check` and the lines of `uop replay --emit-requests`."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from uop.__main__ import main
from uop.conformance.protocol.check import _shown
from uop.conformance.run import Exit

HERE = Path(__file__).resolve().parent
WORKER = HERE.parent / "conformance" / "worker_for_tests.py"
CASE = """\
case sum
%0 = PARAM [2] {slot=0, dtype=float32}
%1 = PARAM [2] {slot=1, dtype=float32}
%2 = ADD %0, %1
input 0 = [1.0, 2.0]
input 1 = [0.5, 0.25]
"""


def check(fault: str, *options: str) -> int:
    words = ["worker", "check", *options, "--", sys.executable, "-I", "-S", str(WORKER), fault]
    return main(words)


def test_a_good_worker_has_no_deviation(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("none") == Exit.OK
    said = capsys.readouterr().out
    assert "hello: faulty 1, 3 ops, 1 dtypes, forms tensor; started in " in said
    assert "run: 3 of 3 ops are right on their first programs" in said
    assert "memory: at most " in said
    assert f"no deviation; next: uop conform 'command:{sys.executable}" in said


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("fault", "deviation"),
    [
        ("unknown-dtype", "did not start: hello: dtypes: expected some of bool, "),
        ("unflushed", "it does not flush stdout after each line"),
        ("later", "expected an error of class unsupported, found id, outputs"),
        (
            "exit",
            "op/MUL/float32/edges/0@2 under the profile strict: the process ended with exit code 7",
        ),
        (
            "unsupported",
            "MUL: hello lists it, yet run of op/MUL/float32/edges/0@2 says: no MUL here",
        ),
        (
            "wrong-shape",
            "MUL: op/MUL/float32/edges/0@2 under the profile strict: protocol: outputs: expected a",
        ),
        ("changing", "3 equal sets of inputs: expected equal outputs, found different ones"),
        (
            "one-shape",
            "ADD: op/ADD/float32/shapes/0@2 under the profile strict: internal: shapes differ",
        ),
        ("stays", "stdin is closed: expected the process to end within 1.5 s, it stays"),
        ("garbage", "nothing else, found 'loading...'"),
        ("twice", 'stdout: expected one reply to each request and nothing else, found \'{"id": '),
        ("farewell", "nothing else, found 'bye'"),
        ("ends-badly", "stdin is closed: expected exit code 0, found 3"),
        ("knows-too-little", "hello lists too little: no op has a program of "),
    ],
)
def test_each_deviation_is_a_line(
    fault: str, deviation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(fault, "--timeout", "1s") == Exit.FAILED
    lines = [line for line in capsys.readouterr().out.splitlines() if "deviates: " in line]
    assert len(lines) == 1
    assert deviation in lines[0]


def test_a_program_that_fails_is_shown_with_all_that_one_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert check("zeros") == Exit.FAILED
    said = capsys.readouterr().out
    name = f"'command:{sys.executable} -I -S {WORKER} zeros'"
    case = "op/MUL/float32/edges/0@2"
    # 0 times -0 among other products, shrunk to a product of ones.
    assert said.splitlines()[-10:-1] == [
        f"deviates: MUL: {case} under the profile strict: output 0[] is 0x0p+0, accepted 0x1p+0",
        "    program   %0 = PARAM [] {slot=0, dtype=float32} : float32[]",
        "              %1 = PARAM [] {slot=1, dtype=float32} : float32[]",
        "              %2 = MUL %0, %1 : float32[]",
        "    input 0   0x1p+0",
        "    input 1   0x1p+0",
        "    came      output 0[] = 0x0p+0",
        "    accepted  output 0 = 0x1p+0",
        f"    next      uop conform {name} --case {case} --profile strict --timeout 10",
    ]


def test_lines_of_a_failure_are_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("trap") == Exit.FAILED
    lines = capsys.readouterr().out.splitlines()
    assert any("accepted  output 0 = " in line for line in lines)
    assert max(map(len, lines)) < 300


def test_a_large_input_is_shown_in_part() -> None:
    assert _shown(np.zeros((40, 50), np.int8)).endswith(",0,... 2,000 elements]")
    assert len(_shown(np.zeros((40, 50), np.int8))) < 300


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "times"),
    [("silent", 2), ("hangs-on-equal", 1)],  # that it deviates, and of one program what came
)
def test_a_worker_that_hangs_is_waited_for_once(
    fault: str, times: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(fault, "--timeout", "1s") == Exit.FAILED
    said = capsys.readouterr().out
    assert said.count("no reply within 1 s") == times
    assert "not checked further: it gives no reply" in said


@pytest.mark.slow
def test_a_wrong_id_is_told_without_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    """For the time that a reply may take: here more than a test may."""
    assert check("text-as-id", "--timeout", "1h") == Exit.FAILED
    said = capsys.readouterr().out
    assert re.search(r'protocol: reply: expected the id (\d+), found the id "\1"', said)


def test_a_timeout_is_a_duration(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("none", "--timeout", "soon") == Exit.USAGE
    assert "--timeout: expected a duration" in capsys.readouterr().err


def test_requests_run_a_worker_without_this_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sum.uop").write_text(CASE)
    name = "command:" + shlex.join([sys.executable, "-I", "-S", str(WORKER), "none"])
    assert main(["replay", str(tmp_path / "sum.uop"), name, "--emit-requests"]) == Exit.OK
    lines = capsys.readouterr().out
    command = [sys.executable, "-I", "-S", str(WORKER), "none"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    hello, run = (json.loads(line) for line in done.stdout.splitlines())
    assert hello["name"] == "faulty"
    # 1.5 and 2.25 in little-endian bytes.
    assert run["outputs"] == [[{"node": 4, "dtype": "float32", "shape": [2],
                               "data": "0000c03f00001040"}]]  # fmt: skip


def test_requests_need_no_worker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    invalid = "case bad\n%0 = PARAM [2] {slot=0, dtype=bool}\ninvalid RECIP.c1\n%1 = RECIP %0\n"
    (tmp_path / "both.uop").write_text(CASE + "\n" + invalid)
    assert main(["replay", str(tmp_path / "both.uop"), "--emit-requests"]) == Exit.OK
    requests = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [request["do"] for request in requests] == ["hello", "run", "check"]
    assert [request["id"] for request in requests] == [0, 1, 2]
    assert requests[2]["program"]["nodes"][-1] == {"op": "RECIP", "src": [2], "arg": None}


def test_requests_go_on_behind_a_case_that_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASE.replace("case sum", "case right")
    (tmp_path / "a.uop").write_text(case.replace("right", "other").replace("ADD", "MAX"))
    (tmp_path / "b.uop").write_text(case)
    name = "command:" + shlex.join([sys.executable, "-I", "-S", str(WORKER), "none"])
    assert main(["replay", str(tmp_path), name, "--emit-requests"]) == Exit.OK
    said = capsys.readouterr()
    assert [json.loads(line)["id"] for line in said.out.splitlines()] == [0, 1]
    assert said.err == f"left out: {tmp_path / 'a.uop'} other: faulty does not support MAX\n"


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("interpreter", "expected command:PROGRAM or no backend"),
        ("command:{worker} unknown-op", "did not start"),
        ("command:{worker} knows-too-little", "sum.uop sum: faulty does not support ADD"),
    ],
)
def test_requests_that_cannot_be_made_say_why(
    tmp_path: Path, backend: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sum.uop").write_text(CASE)
    name = backend.format(worker=shlex.join([sys.executable, "-I", "-S", str(WORKER)]))
    assert main(["replay", str(tmp_path / "sum.uop"), name, "--emit-requests"]) != Exit.OK
    assert said in capsys.readouterr().err
