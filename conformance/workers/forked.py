"""Starts processes of the suite by a fork server, where the system can (Linux)."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import IO

from uop.conformance.workers.guard import name_of
from uop.spec.distribution import importable

SERVER = "uop.conformance.workers.fork_server"
MEMBER = "uop.conformance.run.pool_member"
"""The module that a judging process runs."""
SERVE = "uop.conformance.workers.serve"
"""The module that the process of a backend runs."""
PLAYGROUND = "uop.conformance.playground.worker"
"""The module that a process of the playground runs."""
MODULES = {MEMBER: "judge", SERVE: "serve", PLAYGROUND: "play"}
"""What a fork server runs, with what the names of the processes begin with."""
AT_START = ("PYTHON", "LD_", "MALLOC_", "OMP_", "OPENBLAS_")
"""What a process reads when it starts: a fork of one that read something else will not do."""
PYTHONPATH = "PYTHONPATH"
"""The exception: the server sets the path of a fork."""
LONGEST = 1 << 17
"""The most bytes of a message."""
DESCRIPTORS = 5
"""Those that come with it: three streams, the socket, and the pipe that says how it ended."""
PATIENCE = 5.0
"""The seconds that the server has to end."""
_channel: socket.socket | None = None
"""The socket of the server, which this process and what it starts share."""
_at_start: Mapping[str, str] = {}
"""What the server read when it started."""


@dataclass(frozen=True, slots=True)
class Start:
    """A message to the server: a process to start.

    `is_kept`: what it starts, and leaves behind, ends with it.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    name: str
    is_kept: bool


class Forked:
    """A process that a fork server has started, with the part of Popen that is used of it."""

    def __init__(self, pid: int, pipe: IO[bytes], stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid, self._pipe, self.stdin, self.stdout = pid, pipe, stdin, stdout
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code. TimeoutExpired where it takes longer."""
        if self.returncode is None:
            if not select.select([self._pipe], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(SERVER, timeout or 0.0)
            if not (line := self._pipe.readline()):
                # The server was killed. What it has started is lost with it.
                with suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            self.returncode = int(line or -signal.SIGKILL)
            self._pipe.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def prepare() -> bool:
    """Start a server, unless there is one; whether there is one now.

    It is a fork of this process where that is the command `uop`, which loads much of the same.
    """
    if _channel is None and sys.platform == "linux":
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        streams = (sys.stdin, sys.stdout, sys.stderr)
        with theirs:
            if _is_command() and threading.active_count() == 1 and None not in streams:
                _fork(theirs)
            else:
                _spawn(theirs)
        share(ours)
    return _channel is not None


def _is_command() -> bool:
    """Whether this process is the command `uop`, not one that has imported it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec.name == "uop.__main__" if spec else Path(sys.argv[0]).name == "uop"


def _fork(channel: socket.socket) -> None:
    server = import_module(SERVER)
    server.load()
    with later_signals():
        pid = os.fork()
    if pid:
        atexit.register(_end, lambda: os.waitpid(pid, os.WNOHANG)[0])
        return
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(2):
        os.dup2(nothing, stream)
    # Others wait until all have closed theirs.
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number != channel.fileno():
            with suppress(OSError):
                os.close(number)
    server.main(channel)


@contextmanager
def later_signals() -> Iterator[None]:
    """Handle what ends a command after the block, in the process that has entered it.

    Python prints what a handler raises in a hook of a fork, and goes on.
    """
    came: list[int] = []
    entered = os.getpid()
    handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    replaced = {s: handler for s, handler in handlers.items() if callable(handler)}
    for each in replaced:
        signal.signal(each, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for each, handler in replaced.items():
            signal.signal(each, handler)
    for number in came if os.getpid() == entered else ():
        signal.raise_signal(number)


def _spawn(channel: socket.socket) -> None:
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", SERVER],
        stdin=channel.fileno(),
        stdout=subprocess.DEVNULL,
        env=importable(os.environ),
        # Ctrl-C must not reach it.
        start_new_session=True,
    )
    atexit.register(_end, lambda: server.poll() is not None)


def _end(has_ended: Callable[[], object]) -> None:
    """Let the server of this process end."""
    if _channel is not None:
        _channel.close()
    deadline = time.monotonic() + PATIENCE
    while not has_ended() and time.monotonic() < deadline:
        time.sleep(0.001)


def share(channel: socket.socket) -> None:
    """Start processes by the server at the other end, which began with the same environment."""
    global _channel, _at_start
    _channel, _at_start = channel, _read(os.environ)


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    stderr: int,
    *,
    mark: str,
    is_kept: bool,
) -> Forked | None:
    """Start a module. None where a server cannot do it; nothing has been started then."""
    global _channel
    if command[0] not in MODULES or not prepare() or _read(environment) != _at_start:
        return None
    with suppress(OSError):
        name = MODULES[command[0]] + name_of(mark)
        start = Start(command, environment, os.getcwd(), name, is_kept)
        message = json.dumps(asdict(start)).encode()
        # The server may have been killed: then another one.
        for _ in range(2):
            if len(message) > LONGEST or not prepare() or _channel is None:
                break
            try:
                return _started(_channel, message, stderr)
            except (BrokenPipeError, ConnectionResetError, EOFError):
                _channel = None
    return None


def _started(channel: socket.socket, message: bytes, stderr: int) -> Forked:
    (stdin, write), (read, stdout), (state, ended) = os.pipe(), os.pipe(), os.pipe()
    files = os.fdopen(state, "rb"), os.fdopen(write, "wb", 0), os.fdopen(read, "rb", 0)
    try:
        sent = (stdin, stdout, stderr, channel.fileno(), ended)
        socket.send_fds(channel, [message], sent)
    finally:
        for descriptor in (stdin, stdout, ended):
            os.close(descriptor)
    if not (line := files[0].readline()):
        raise EOFError
    return Forked(int(line), *files)


def _read(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a process reads when it starts."""
    names = (name for name in environment if name.startswith(AT_START) and name != PYTHONPATH)
    return {name: environment[name] for name in names}
