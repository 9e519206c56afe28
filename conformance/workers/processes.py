"""Processes: how they start, what they inherit, how much memory they hold, how to end them all."""

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

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE = 5.0
"""Seconds that a process has to end its own ones and itself."""
T = TypeVar("T")


class Module:
    """A module of the suite in a process of its own, which takes and gives messages."""

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
            env=environment,
            # Ctrl-C is for the run, which still wants to hear of finished cases.
            start_new_session=True,
        )
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.pipes = (self.popen.stdin, self.popen.stdout)
        self.requests, self.replies = (pipe.fileno() for pipe in self.pipes)

    def write(self, message: object) -> None:
        """Send a message. ClosedError."""
        wire.write(self.requests, message)

    def read(self, *kinds: type[T], deadline: float | None = None) -> T:
        """The next message, of one of these types. The errors of `wire.read`."""
        return wire.read(self.replies, *kinds, deadline=deadline)

    def terminate(self) -> None:
        """Tell the process to end."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Let the process end what it started and itself; kill it where that takes too long."""
        self.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(PATIENCE)
        self.kill()

    def kill(self) -> None:
        """End the process and what it started."""
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        for pipe in self.pipes:
            pipe.close()


def environment(folder: Path) -> dict[str, str]:
    """That of a backend's process: kernels are compiled anew, unless the user names a cache.

    What it leaves among the temporary files, being killed, goes with the folder.
    """
    return {"POCL_CACHE_DIR": str(folder / "pocl"), **os.environ, "TMPDIR": str(folder)}


@dataclass(frozen=True, slots=True)
class Tree:
    """The processes of a session or below its leader, and the bytes that they hold together."""

    pids: tuple[int, ...]
    resident: int


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """What the system tells of a process."""

    pid: int
    parent: int
    session: int
    resident: int


def tree_of(leader: int) -> Tree:
    """The processes that belong to the leader of a session; none where the system tells nothing."""
    entries = list(_entries())
    found = {e.pid for e in entries if e.pid == leader or e.session == leader}
    while more := {e.pid for e in entries if e.parent in found} - found:
        found |= more
    held = sum(e.resident for e in entries if e.pid in found)
    return Tree(tuple(sorted(found)), held)


def own_stdout() -> int:
    """The pipe to the parent; what this process prints from now on goes to stderr instead."""
    out = os.dup(1)
    os.dup2(2, 1)
    return out


def when_alone(leave: Callable[[], None]) -> None:
    """Call once nobody can write to stdin any more, whatever this process is at: its parent ended.

    What stands in the pipe by then may never be read.
    """

    def wait() -> None:
        watch = select.poll()
        # Of an end that is closed it tells without being asked for anything.
        watch.register(0, 0)
        watch.poll()
        leave()

    Thread(target=wait, daemon=True).start()


def end(leader: int, mark: str = "") -> None:
    """Kill the leader of a session and everything that belongs to it, this process last.

    One that has left the session and its parent is known by the mark in its environment.
    """
    pids = {*tree_of(leader).pids, *(_marked(mark) if mark else ())}
    for pid in pids - {os.getpid()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def how_it_ended(code: int | None) -> str:
    """The end of a process in words; None for one that is still there."""
    if code is None:
        return "closed its pipe"
    return (
        f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    )


def _marked(mark: str) -> Iterator[int]:
    """The processes whose environment has this variable."""
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def _entries() -> Iterator[ProcessInfo]:
    for folder in PROC.glob("[0-9]*"):
        try:
            # The name of a program may hold spaces and parentheses: the numbers stand behind it.
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        yield ProcessInfo(int(folder.name), int(fields[1]), int(fields[3]), int(fields[21]) * PAGE)
