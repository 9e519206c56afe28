"""Starts and ends processes, with all that belongs to them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import FrameType
from typing import IO, TypeVar

import psutil

from uop.conformance.protocol import wire
from uop.conformance.workers import forked, guard
from uop.conformance.workers.watch import tree_of
from uop.spec.distribution import importable

MARK = "UOP_RUN"
"""The environment variable that marks all processes of a run."""
GUARD = (sys.executable, "-I", "-S", guard.__file__)
KEEPER = (*GUARD, "keep")
"""In front of a command: what it starts, and leaves behind, ends with it."""
PATIENCE = 5.0
"""The seconds that a process has to end its children and itself."""
T = TypeVar("T")
_adopts = False
"""Whether this process adopts: all that is below it then belongs to its backend."""


class Module:
    """A module of the suite in its own process, which exchanges messages of `wire`."""

    def __init__(
        self,
        *command: str,
        is_kept: bool = False,
        environment: Mapping[str, str] | None = None,
        stderr: IO[bytes] | None = None,
    ) -> None:
        """`is_kept`: what it starts, and leaves behind, ends with it."""
        environment = importable(os.environ if environment is None else environment)
        log, mark = 2 if stderr is None else stderr.fileno(), environment.get(MARK, "")
        self.popen = forked.start(command, environment, log, mark=mark, is_kept=is_kept) or (
            subprocess.Popen(
                [*(KEEPER if is_kept else ()), sys.executable, "-P", "-m", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                # Ctrl-C must reach the run alone, which still collects the finished cases.
                start_new_session=True,
            )
        )
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.pipes = (self.popen.stdin, self.popen.stdout)
        self.requests, self.replies = (pipe.fileno() for pipe in self.pipes)

    def write(self, message: object) -> None:
        """Send a message. ClosedError where the process has gone."""
        wire.write(self.requests, message)

    def read(self, *kinds: type[T], left: wire.Left | None = None) -> T:
        """The next message, of one of these types. Raises the errors of `wire.read`."""
        return wire.read(self.replies, *kinds, left=left)

    def terminate(self) -> None:
        """Send SIGTERM to the process."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Let the process end itself and its children; kill it where that takes too long."""
        self.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(PATIENCE)
        self.kill()

    def kill(self) -> None:
        """Kill the process and all that belongs to it."""
        # What a fork has left its server has killed, and its number may be another's by now.
        if isinstance(self.popen, subprocess.Popen) or self.popen.poll() is None:
            end(self.popen.pid)
        self.popen.wait()
        for pipe in self.pipes:
            pipe.close()


@dataclass(frozen=True, slots=True)
class Workplace:
    """A folder for processes, and what marks them; without a mark that of this process."""

    folder: Path
    mark: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of these processes.

        Their temporary files lie in the folder: where they are killed, they are removed with it.
        """
        marked = {MARK: self.mark} if self.mark else {}
        return {**os.environ, **marked, "TMPDIR": str(self.folder)}

    @property
    def of_backend(self) -> dict[str, str]:
        """The same of a backend: no cached kernels, unless the user names a cache."""
        return {"POCL_CACHE_DIR": str(self.folder / "pocl"), **self.environment}


@contextmanager
def workplace() -> Iterator[Workplace]:
    """A place for processes: it ends with the block, and with this process if that is killed.

    What has its mark then is killed, and its folder is removed.
    """
    with TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as folder:
        mark = uuid.uuid4().hex
        command = [*GUARD, "clean", folder, f"{MARK}={mark}"]
        # Ctrl-C must not reach it.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        try:
            yield Workplace(Path(folder), mark)
        finally:
            process.communicate()


def begin() -> int:
    """Begin as a process below another one; returns the pipe to that, as `own_stdout` does.

    It ends, by SystemExit in its main thread, on SIGTERM and once the other one has ended.
    """
    global _adopts
    out, _adopts = own_stdout(), guard.adopt()
    signal.signal(signal.SIGTERM, _leave)
    when_alone(partial(os.kill, os.getpid(), signal.SIGTERM))
    return out


def _leave(number: int, frame: FrameType | None) -> None:
    ends_already()
    sys.exit(128 + number)


def ends_already() -> None:
    """Ignore SIGTERM while this process ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


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

    `mark` in its environment identifies a process that has left the session and its parent. What
    has left that too belongs to a process that adopts.
    """
    pids = tree_of(leader) | set(_marked(mark) if mark else ())
    adopted = psutil.Process().children(recursive=True) if _adopts else []
    for pid in pids | {child.pid for child in adopted} - {os.getpid()}:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    psutil.wait_procs([child for child in adopted if child.pid != leader], PATIENCE)


def how_it_ended(code: int | None) -> str:
    """Describe an exit code; None means that the process still runs."""
    if code is None:
        return "closed its pipe"
    return (
        f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    )


def _marked(mark: str) -> Iterator[int]:
    """The ids of the processes whose environment has this variable."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            name, _, value = mark.partition("=")
            if process.environ().get(name) == value:
                yield process.pid
