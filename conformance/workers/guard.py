"""Ends processes that nobody else can: two scripts, which start without site-packages, in a few
milliseconds.

`python guard.py clean FOLDER MARK`, with a pipe as stdin, cleans up behind a process that is
killed: once the other end of the pipe is closed, it kills every process that has the mark in its
environment or is named after it, where the system shows that, with all below it, and removes the
folder.

`python guard.py keep COMMAND...` runs a command and ends as that does. All below the command stays
below this process, where the system can (Linux): also what has left its session, its parent and
its environment. It is killed with the command, and on SIGTERM.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

PROC = Path("/proc")
PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 15, 36
"""Of Linux, in `sys/prctl.h`."""
PATIENCE = 2.0
"""The most seconds of killing what starts itself again and again."""
CANNOT_START = 127


def clean(folder: str, mark: str) -> None:
    sys.stdin.buffer.read()
    marked, ending = set(), name_of(mark)
    for place in PROC.glob("[0-9]*"):
        with suppress(OSError):
            # The environment of a fork is shown as that of its server.
            variables = (place / "environ").read_bytes().split(b"\0")
            name = (place / "comm").read_text("ascii", "replace").strip()
            if mark.encode() in variables or (ending and name.endswith(ending)):
                marked.add(int(place.name))
    kill(below(marked) | marked)
    shutil.rmtree(folder, ignore_errors=True)


def name_of(mark: str) -> str:
    """What the names of forks with a mark end with: 10 of the 15 bytes that the system shows."""
    return mark.rpartition("=")[2][:10]


def rename(name: str) -> None:
    """Name this process, and all that it will fork, where the system can."""
    _prctl(PR_SET_NAME, name.encode())


def keep(*command: str) -> None:
    begin_to_keep()
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        print(f"cannot start {command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(CANNOT_START)
    keep_until(process.wait)


def keep_fork() -> None:
    """Fork, and return in the new process, which this one keeps as `keep` does."""
    begin_to_keep()
    if pid := os.fork():
        keep_until(lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def begin_to_keep() -> None:
    adopt()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, kill_all_and_leave)


def keep_until(ended: Callable[[], int]) -> NoReturn:
    """Wait for the exit code of what is kept, kill what it has left, and end as it did."""
    # The pipes belong to the command: whoever reads them sees when it closes them.
    nothing = os.open(os.devnull, os.O_RDWR)
    for pipe in range(3):
        os.dup2(nothing, pipe)
    code = ended()
    kill_all()
    end_as(code)


def adopt() -> bool:
    """Make this process the parent of all below it that lose theirs, where the system can."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, argument: int | bytes) -> bool:
    from ctypes import CDLL  # takes as long to load as all the rest

    with suppress(OSError, AttributeError):
        return not CDLL(None).prctl(option, argument, 0, 0, 0)
    return False


def below(leaders: Iterable[int]) -> set[int]:
    """The processes that these have started, and so on."""
    children: dict[int, list[int]] = {}
    for place in PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            # The name of a process may have spaces and parentheses.
            fields = (place / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
            parent = int(fields[1])
            children.setdefault(parent, []).append(int(place.name))
    found: set[int] = set()
    left = [child for leader in leaders for child in children.get(leader, ())]
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += children.get(pid, ())
    return found


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def kill_all() -> None:
    """Kill all below this process, and what that has started in between."""
    deadline = time.monotonic() + PATIENCE
    while (pids := below([os.getpid()])) and time.monotonic() < deadline:
        kill(pids)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def kill_all_and_leave(number: int, frame: FrameType | None) -> None:
    kill_all()
    os._exit(128 + number)


def end_as(code: int) -> NoReturn:
    """End with an exit code, or by the signal of a negative one."""
    if code < 0:
        import resource  # only where there are signals

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


SCRIPTS: dict[str, Callable[..., None]] = {"clean": clean, "keep": keep}

if __name__ == "__main__":
    SCRIPTS[sys.argv[1]](*sys.argv[2:])
