"""No process outlives what has started it, be that told to end or killed, whatever it waits for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from uop.conformance.workers.forked import MEMBER, SERVE
from uop.conformance.workers.guard import PROC
from uop.conformance.workers.watch import tree_of

WORKER = """\
import json, pathlib, sys, time

def hang():
    pathlib.Path("hangs").touch()
    time.sleep(3600)

for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "run" or sys.argv[1] == "hello":
        hang()
    hello = {"protocol": 1, "name": "hangs", "version": "1", "ops": ["PARAM", "ADD"]}
    print(json.dumps({"id": request["id"], **hello, "dtypes": ["float32"]}), flush=True)
"""
MODULE = """\
import pathlib, time
from uop.conformance.backends.interpreter import InterpreterBackend

def hang():
    pathlib.Path("hangs").touch()
    time.sleep(3600)

class Run(InterpreterBackend):
    def run(self, programs):
        hang()

class Hello(InterpreterBackend):
    def hello(self):
        hang()
"""
COMMAND = f"command:{sys.executable} -I -S worker.py"
HANGING = [f"{COMMAND} run", f"{COMMAND} hello", "hanging:Run", "hanging:Hello"]
CONFORM = ("conform", "--op", "ADD", "--dtype", "float32", "-n", "1", "--timeout", "300")
SHOW = ("profile", "show")


def is_there(pid: int) -> bool:
    """Whether a process runs: one that has ended may wait for somebody to ask how."""
    try:
        state = (PROC / str(pid) / "stat").read_text("ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.sampled(4)
@pytest.mark.skipif(not PROC.exists(), reason="the system does not tell its processes")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "told"])
@pytest.mark.parametrize("backend", HANGING)
@pytest.mark.parametrize("command", [CONFORM, SHOW], ids=["conform", "profile"])
def test_nothing_is_left(
    tmp_path: Path, ending: int, backend: str, command: tuple[str, ...]
) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "hanging.py").write_text(MODULE)
    running = subprocess.Popen(
        [sys.executable, "-P", "-m", "uop", *command, backend],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    while not (tmp_path / "hangs").exists():
        assert running.poll() is None
        time.sleep(0.05)
    started = tree_of(running.pid)
    assert len(started) > 1
    running.send_signal(ending)
    deadline = time.monotonic() + 20
    while any(map(is_there, started)) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [pid for pid in started if is_there(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    _, said = running.communicate()
    assert b"Traceback" not in said
    assert running.returncode == (130 if ending == signal.SIGTERM else -ending)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (MEMBER, ("interpreter", "", "0")),
        (MEMBER, ("no_such:Backend", "", "0")),
        (SERVE, ("adversary",)),
    ],
)
def test_a_process_that_nobody_listens_to_ends_without_a_word(
    module: str, arguments: tuple[str, ...]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    running = subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    assert running.stderr is not None
    assert (running.stderr.read(), running.wait()) == (b"", 0)
    running.communicate()
