"""Processes that a fork server starts are as those that are started anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from uop.conformance.protocol import wire
from uop.conformance.workers.forked import MEMBER, SERVE, Forked
from uop.conformance.workers.processes import Module

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a fork server")
BACKEND = """\
import os, tempfile
from uop.conformance.backends.interpreter import InterpreterBackend

class Tells(InterpreterBackend):
    def hello(self):
        open("told", "w").write(f"{tempfile.gettempdir()} {os.environ['MINE']} {os.getcwd()}")
        return super().hello()
"""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """A backend that says where it is, from a folder that only its own path has."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "telling.py").write_text(BACKEND)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    variables = {"MINE": "a b", "TMPDIR": str(tmp_path), "PYTHONPATH": str(tmp_path / "elsewhere")}
    module = Module(SERVE, "telling:Tells", is_kept=True, environment=os.environ | variables)
    yield module
    module.kill()


def test_it_has_the_folder_and_the_environment_that_it_was_given(
    started: Module, tmp_path: Path
) -> None:
    assert isinstance(started.popen, Forked)
    assert started.read(wire.Started).hello.name == "interpreter"
    here = tmp_path / "here"
    assert (here / "told").read_text() == f"{tmp_path} a b {here}"
    assert psutil.Process(started.popen.pid).name() == "serve"
    assert started.popen.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        started.popen.wait(0.01)


def test_how_it_ends_is_known() -> None:
    left = Module(MEMBER, "no_such", "strict", "0")
    with pytest.raises(wire.RefusedError, match="no backend 'no_such'"):
        left.read(wire.Started)
    assert left.popen.wait(60) == left.popen.poll() == 0
    ended = Module(MEMBER, "interpreter", "strict", "0")
    os.kill(ended.popen.pid, signal.SIGKILL)
    assert ended.popen.wait(60) == -signal.SIGKILL
    for module in (left, ended):
        module.kill()


@pytest.mark.parametrize(
    ("given", "code", "said"), [("", 0, ""), ("3", 3, ""), ("'a message'", 1, "a message\n")]
)
def test_a_backend_that_leaves_ends_as_python_does(
    given: str, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "leaving.py").write_text(f"import sys\nsys.exit({given})\n")
    with (tmp_path / "log").open("w+b") as log:
        variables = os.environ | {"PYTHONPATH": str(tmp_path)}
        module = Module(SERVE, "leaving:Any", environment=variables, stderr=log)
        assert isinstance(module.popen, Forked)
        assert module.popen.wait(60) == code
        module.kill()
        log.seek(0)
        assert log.read().decode() == said


def test_where_the_server_is_killed_its_processes_count_as_killed_and_another_one_serves() -> None:
    lost = Module(SERVE, "interpreter", is_kept=True)
    (server,) = {psutil.Process(lost.popen.pid).parent()}
    assert server is not None
    server.kill()
    server.wait(60)
    assert lost.popen.wait(60) == -signal.SIGKILL
    lost.kill()
    again = Module(SERVE, "interpreter", is_kept=True)
    assert isinstance(again.popen, Forked)
    assert again.read(wire.Started).hello.name == "interpreter"
    again.kill()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_command_without_one_of_its_streams(closed: str, tmp_path: Path) -> None:
    words = f"{sys.executable} -P -m uop conform interpreter --case op/ADD/int8/edges/0@2 {closed}"
    done = subprocess.run(words, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 4)


@pytest.mark.parametrize(
    "variables",
    [{"PYTHONHASHSEED": "7"}, {"LD_LIBRARY_PATH": "/nowhere"}, dict.fromkeys("AB", "x" * 70_000)],
    ids=" ".join,
)
def test_what_a_server_cannot_start_is_started_anew(variables: dict[str, str]) -> None:
    module = Module(SERVE, "interpreter", is_kept=True, environment=os.environ | variables)
    assert isinstance(module.popen, subprocess.Popen)
    assert module.read(wire.Started).hello.name == "interpreter"
    module.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_fork_ends_the_command(number: int, tmp_path: Path) -> None:
    """Python prints what a hook of a fork raises, and goes on."""
    program = tmp_path / "uop"
    program.write_text(f"""\
import os, sys
from uop.__main__ import main
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), {int(number)}))
sys.exit(main())
""")
    command = [sys.executable, "-P", str(program), "conform", "interpreter", "--level", "invalid"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (run.returncode, run.stderr.strip()) == (130, "interrupted")
