"""Forks processes of the suite: `python -m uop.conformance.workers.fork_server`, a socket as stdin.

What a judging process and a backend import takes most of a second; to fork a process that has
imported it takes milliseconds. This one has neither threads nor drivers. It starts a process for
each message on the socket, and says in the pipe of that process how it ended. It ends, with all
below it, once nobody holds the other end of the socket.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import NoReturn

from uop.conformance.workers import GARBAGE, forked, guard
from uop.conformance.workers.forked import DESCRIPTORS, LONGEST, PYTHONPATH, Start

LOADED = (
    forked.MEMBER,
    forked.SERVE,
    "uop.conformance.judging.judging",
    "uop.conformance.backends.compiled",
    "uop.conformance.backends.interpreter",
)
"""What the processes import, as far as it starts no thread and opens no driver."""

NAME = "fork server"


def load() -> None:
    """Import all of it."""
    for name in LOADED:
        import_module(name)


def main(channel: socket.socket) -> NoReturn:
    """Serve, and be each new process until that ends."""
    code = 1
    try:
        load()
        # What is there now stays: no process looks for garbage in it.
        gc.freeze()
        gc.set_threshold(*GARBAGE)
        start = Server(channel).serve()
        sys.argv = list(start.command)
        import_module(start.command[0]).main(*start.command[1:])
        code = 0
    except SystemExit as end:
        # As Python ends: None is success, and what is no number is printed.
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    finally:
        # Below may be the frames of the process that has forked the server.
        try:
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


@dataclass(slots=True, eq=False)
class Server:
    """The processes that were started and have not ended, with the pipe of each."""

    channel: socket.socket
    pipes: dict[int, int] = field(default_factory=dict)
    ended: tuple[int, int] = (-1, -1)
    """A pipe that is written to when a process ends."""

    def serve(self) -> Start:
        """Answer messages. Returns in each new process: what it runs."""
        guard.adopt()
        guard.rename(NAME)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.ended = os.pipe()
        for end in self.ended:
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.ended[1])
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while True:
            ready = select.select([self.channel.fileno(), self.ended[0]], [], [])[0]
            if self.ended[0] in ready:
                os.read(self.ended[0], LONGEST)
                self.reap()
            if self.channel.fileno() in ready:
                message, pipes, *_ = socket.recv_fds(self.channel, LONGEST, DESCRIPTORS)
                if not message:
                    guard.kill_all()
                    os._exit(0)
                start = Start(**json.loads(message))
                if not (pid := os.fork()):
                    return self.become(start, pipes)
                *others, self.pipes[pid] = pipes
                for pipe in others:
                    os.close(pipe)
                with suppress(BrokenPipeError):
                    os.write(self.pipes[pid], b"%d\n" % pid)

    def reap(self) -> None:
        """Say how processes have ended; kill what they have left behind."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if (pipe := self.pipes.pop(pid, None)) is not None:
                guard.kill(guard.below([os.getpid()]) - guard.below(self.pipes) - {*self.pipes})
                with suppress(BrokenPipeError):
                    os.write(pipe, b"%d\n" % os.waitstatus_to_exitcode(status))
                os.close(pipe)

    def become(self, start: Start, pipes: list[int]) -> Start:
        """Be the new process, in a session of its own."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        guard.rename(start.name)
        *streams, channel, pipe = pipes
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for unused in (*streams, pipe, *self.ended, *self.pipes.values()):
            os.close(unused)
        self.channel.close()
        os.chdir(start.folder)
        before = os.environ.get(PYTHONPATH, "").split(os.pathsep)
        os.environ.clear()
        os.environ.update(start.environment)
        # What modules have read of the environment, and kept.
        tempfile.tempdir = None
        own = filter(None, os.environ.get(PYTHONPATH, "").split(os.pathsep))
        sys.path[:] = [*own, *(path for path in sys.path if path not in before)]
        if start.is_kept:
            # What may belong to others starts no process of the suite.
            os.close(channel)
            guard.keep_fork()
        else:
            forked.share(socket.socket(fileno=channel))
        return start


if __name__ == "__main__":
    main(socket.socket(fileno=os.dup(0)))
