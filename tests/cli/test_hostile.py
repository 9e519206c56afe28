"""What a shell can do to the command: odd files, a full disk, a pipe that closes, Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from uop.cli.program import ENDINGS
from uop.conformance.report.format import read_report

PROGRAM = "%0 = PARAM [2] {slot=0, dtype=int32}\n%1 = NEG %0\ninput 0 = [1,2]\n"
COMMAND = [sys.executable, "-P", "-m", "uop"]
ONE_OP = ("--op", "NEG", "--dtype", "int32", "--level", "op", "--effort", "smoke", "-n", "1")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.uop"
    path.write_text(PROGRAM)
    return path


def odd_file(folder: Path, kind: str) -> Path:
    """A path that holds no program."""
    path = folder / f"{kind}.uop"
    contents = {
        "empty": b"",
        "cut": PROGRAM.encode()[:30],
        "bytes": bytes(range(256)) * 20,
        "latin": "%0 = é".encode("latin-1"),
        "nul": b"\0\0",
    }
    if kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind in contents:
        path.write_bytes(contents[kind])
    return path


@pytest.mark.parametrize("command", ["run", "compile", "replay"])
@pytest.mark.parametrize(
    "kind", ["missing", "folder", "loop", "empty", "cut", "bytes", "latin", "nul"]
)
def test_a_file_that_is_no_program_is_named(
    uop: Any, tmp_path: Path, command: str, kind: str
) -> None:
    outcome = uop(command, odd_file(tmp_path, kind))
    assert outcome.code == 2
    assert f"{kind}.uop" in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_a_file_as_another_system_writes_it(uop: Any, program: Path) -> None:
    program.write_bytes(PROGRAM.replace("\n", "\r\n").encode("utf-8-sig"))
    assert uop("run", program).out == "0 : int32[2] = [-1, -2]\n"
    program.write_bytes(PROGRAM.encode("utf-8-sig") + b"; \xe9")
    assert "program.uop:4:3: expected UTF-8 text" in uop("run", program).err


def test_a_case_that_is_not_there(uop: Any, program: Path) -> None:
    outcome = uop("run", program, "--case", "a")
    assert outcome.code == 2
    assert "holds no case 'a', but one without an id" in outcome.err


@pytest.mark.parametrize("target", ["program.uop", "program.uop/below"])
def test_results_into_what_is_no_folder(uop: Any, program: Path, target: str) -> None:
    outcome = uop("run", program, "--output", program.parent / target)
    assert outcome.code == 2
    assert "cannot write to" in outcome.err


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["eval", "1"], ["explain", "ADD"], ["--help"]])
def test_a_full_disk_is_one_message(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.decode() == "error: the output: No space left on device\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["eval", "1"], ["--bad"], ["diff", "none", "none"]])
def test_where_no_message_can_be_written_either_the_exit_code_is_true(arguments: list[str]) -> None:
    """1 would say that something is wrong with what was judged."""
    with open("/dev/full", "wb") as full:
        assert subprocess.run([*COMMAND, *arguments], stdout=full, stderr=full).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "ADD"],
        [
            *("conform", "interpreter", "--op", "ADD", "--dtype", "int8", "--level", "op"),
            *("--effort", "smoke", "-n", "1", "--html", "page.html"),
        ],
    ],
)
def test_where_text_is_ascii_it_is_read_and_written_all_the_same(
    arguments: list[str], tmp_path: Path
) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        env={**os.environ, **ascii_only},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_pipe_interrupts_without_a_word() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, "explain", "ADD"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (130, b"")


CONFORM = [*COMMAND, "conform", "interpreter", "--op", "NEG", "--dtype", "int8", "-n", "1"]
REPORT = ["--examples", "1", "--json", "report.json"]


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_report_is_written_though_nothing_can_be_printed(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        command = [*CONFORM, *REPORT]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path)
    assert done.stderr.decode() == "error: the output: No space left on device\n"
    assert done.returncode == 2
    assert read_report(tmp_path / "report.json").conclusion == "conforms"


def test_a_report_is_written_though_nobody_reads(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [*CONFORM, *REPORT]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path)
    os.close(writer)
    assert (done.returncode, done.stderr) == (130, b"")
    assert read_report(tmp_path / "report.json").conclusion == "conforms"


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS, ids=str)
def test_what_a_system_asks_to_end_with_is_as_ctrl_c(tmp_path: Path, ending: int) -> None:
    """Twice: a terminal that closes says so to the shell, which tells it again."""
    command = [*COMMAND, "conform", "interpreter", "--json", "report.json", "-n", "1"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert running.stdout is not None
    # The second line is the first result.
    for _ in range(2):
        running.stdout.readline()
    for _ in range(2):
        running.send_signal(ending)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (130, "")
    assert "(interrupted)" in out
    assert read_report(tmp_path / "report.json").summary.interrupted


def test_what_is_to_outlive_its_terminal_does() -> None:
    script = (
        "import signal\nfrom uop.cli.program import handle_signals\nhandle_signals(signal.SIGHUP)\n"
    )
    told = "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    ignored = f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{script}{told}"
    done = subprocess.run([sys.executable, "-P", "-c", ignored], capture_output=True, text=True)
    assert done.stdout == "True\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_an_interrupt_is_its_own_exit_code(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.uop"
    os.mkfifo(pipe)
    running = subprocess.Popen([*COMMAND, "run", str(pipe)], stderr=subprocess.PIPE)
    # It is open once the command waits for the program.
    with open(pipe, "wb"):
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    assert (running.returncode, said.strip()) == (130, b"interrupted")


@pytest.mark.slow
@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(
    ("words", "said", "cache"),
    [
        (("conform", "opencl", *ONE_OP), "conforms", ""),
        (("conform", "opencl", *ONE_OP), "conforms", "/dev/null/cache"),
        (("fuzz", "opencl", "--time", "10s", "-n", "1"), "fuzzing opencl", ""),
    ],
)
def test_a_home_that_cannot_be_written_has_no_cache(
    words: tuple[str, ...], said: str, cache: str, tmp_path: Path
) -> None:
    home = {"HOME": os.devnull, "XDG_CACHE_HOME": ""}
    without = {**home, "POCL_CACHE_DIR": "", "UOP_CACHE": cache}
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, **without}, check=False,
    )  # fmt: skip
    assert said in done.stdout, done.stderr
    assert done.returncode in (0, 4), done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("conform", "opencl", *ONE_OP), "conforms"),
        (("fuzz", "interpreter", "--time", "20s", "-n", "1"), "has shown no failure"),
    ],
)
def test_no_run_needs_a_network(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    alone = ("unshare", "--net", "--map-root-user")
    if shutil.which(alone[0]) is None or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("needs unshare, and the right to leave the network")
    done = subprocess.run(
        [*alone, *COMMAND, *words], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (said in done.stdout, done.returncode) == (True, 0), done.stderr + done.stdout
