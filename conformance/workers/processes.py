"""Starts and ends processes, and measures the memory of those that belong together."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO, TypeVar

from uop.conformance.protocol import wire
from uop.spec.distribution import importable

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE = 5.0
"""The seconds that a process has to end its children and itself."""
T = TypeVar("T")


class Module:
    """A module of the suite in its own process, which exchanges messages of `wire`."""

    def __init__(
        self,
        *command: str,
        environment: Mapping[str, str] | None = None,
        stderr: IO[bytes] | None = None,
    ) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-P", "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=importable(os.environ if environment is None else environment),
            # Ctrl-C must reach the run alone, which still collects the finished cases.
            start_new_session=True,
        )
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.pipes = (self.popen.stdin, self.popen.stdout)
        self.requests, self.replies = (pipe.fileno() for pipe in self.pipes)

    def write(self, message: object) -> None:
        """Send a message. ClosedError where the process has gone."""
        wire.write(self.requests, message)

    def read(self, *kinds: type[T], deadline: float | None = None) -> T:
        """The next message, of one of these types. Raises the errors of `wire.read`."""
        return wire.read(self.replies, *kinds, deadline=deadline)

    def terminate(self) -> None:
        """Send SIGTERM to the process."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Let the process end itself and its children; kill it where that takes too long."""
        self.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(PATIENCE)
        self.kill()

    def kill(self) -> None:
        """Kill the process and its group."""
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        for pipe in self.pipes:
            pipe.close()


def environment(folder: Path) -> dict[str, str]:
    """The environment of a backend's process: no cached kernels, unless the user names a cache.

    Its temporary files lie in `folder`: where it is killed, they are removed with the folder.
    """
    return {"POCL_CACHE_DIR": str(folder / "pocl"), **os.environ, "TMPDIR": str(folder)}


@dataclass(frozen=True, slots=True)
class Tree:
    """The processes of a session and below its leader, and the memory of all in bytes."""

    pids: tuple[int, ...]
    resident: int


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """The fields of `/proc/PID/stat` that are read; memory in bytes."""

    pid: int
    parent: int
    session: int
    resident: int


def tree_of(leader: int) -> Tree:
    """The processes that belong to the leader of a session; none where there is no /proc."""
    entries = list(_entries())
    pids = {e.pid for e in entries if e.pid == leader or e.session == leader}
    while children := {e.pid for e in entries if e.parent in pids} - pids:
        pids |= children
    resident = sum(e.resident for e in entries if e.pid in pids)
    return Tree(tuple(sorted(pids)), resident)


def own_stdout() -> int:
    """Take stdout as the pipe to the parent; prints go to stderr from now on."""
    out = os.dup(1)
    os.dup2(2, 1)
    return out


def when_alone(leave: Callable[[], None]) -> None:
    """Call `leave` from a thread once stdin is closed: the parent has ended.

    It does not wait for unread messages in the pipe.
    """

    def wait() -> None:
        watch = select.poll()
        # An empty mask still reports POLLHUP.
        watch.register(0, 0)
        watch.poll()
        leave()

    Thread(target=wait, daemon=True).start()


def end(leader: int, mark: str = "") -> None:
    """Kill the leader of a session and all that belongs to it, this process last.

    `mark` in its environment identifies a process that has left the session and its parent.
    """
    pids = {*tree_of(leader).pids, *(_marked(mark) if mark else ())}
    for pid in pids - {os.getpid()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def how_it_ended(code: int | None) -> str:
    """Describe an exit code; None means that the process still runs."""
    if code is None:
        return "closed its pipe"
    return (
        f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    )


def _marked(mark: str) -> Iterator[int]:
    """The ids of the processes whose environment has this variable."""
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def _entries() -> Iterator[ProcessInfo]:
    for folder in PROC.glob("[0-9]*"):
        try:
            # The program's name may contain spaces and parentheses: read behind the last one.
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        yield ProcessInfo(int(folder.name), int(fields[1]), int(fields[3]), int(fields[21]) * PAGE)
