"""Runs a worker that answers JSON lines, with limits of time, memory and bytes."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence

from uop.conformance.protocol.codec import Json
from uop.conformance.protocol.hello import DeviationError
from uop.conformance.protocol.log import RECEIVED, SENT, ProtocolLog
from uop.conformance.protocol.types import ProblemKind
from uop.conformance.protocol.untrusted import sanitized
from uop.conformance.workers.processes import KEEPER, Workplace, end, how_it_ended
from uop.conformance.workers.transport import STDERR_SHOWN, LostError
from uop.conformance.workers.watch import Patience, Watch

CHUNK = 1 << 16
TICK = 0.25
"""The seconds between two measurements of memory."""
PATIENCE = 1.5
"""The most seconds for the last output of a worker whose stdin has been closed."""
MOST_PROCESSES = 256
MOST_LINES = 10_000
"""The most lines without a reply to a request."""
NO_REQUEST = -1
"""An id that no request has."""
NOTES = 3
"""The most lines that are no replies that are shown for each process."""
LINE_SHOWN = 80
MESSAGE_SHOWN = 160
BEFORE = b" \t\r\0\xef\xbb\xbf\xff\xfe"
"""Space and byte order marks, which may stand before JSON."""
MARK = "UOP_WORKER"
"""The environment variable that marks all processes of a worker."""


class LineProcess:
    """A started worker, its pipes, and the lines it printed that are no replies."""

    def __init__(
        self,
        command: Sequence[str],
        place: Workplace,
        most_bytes: int,
        log: ProtocolLog | None = None,
    ) -> None:
        self.command, self.most_bytes, self.log = tuple(command), most_bytes, log
        mark = uuid.uuid4().hex
        self.mark = f"{MARK}={mark}"
        self.process = subprocess.Popen(
            [*KEEPER, *self.command],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**place.of_backend, MARK: mark},
            start_new_session=True,
        )
        pipes = (self.process.stdin, self.process.stdout, self.process.stderr)
        self.stdin, self.stdout, self.stderr = (p.fileno() for p in pipes if p is not None)
        for fd in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(fd, False)
        self.selector = selectors.DefaultSelector()
        for fd in (self.stdout, self.stderr):
            self.selector.register(fd, selectors.EVENT_READ)
        self.received, self.stderr_text = bytearray(), bytearray()
        self.notes: list[str] = []
        """The first lines that are no replies."""
        self.stray, self.stray_at = "", 0.0
        """The wrong id of a line that looks like the awaited reply, and when it came."""
        self.lines = 0
        """How many of them have come since the last request."""
        self.most = 0
        """The most bytes of the reply."""
        self.watch = Watch(self.process.pid)
        self.watch.look()

    def ask(
        self, request: bytes, id: int, seconds: float, most: int, *, is_wall: bool = False
    ) -> Json:
        """The reply to a request, of at most `most` bytes, in the seconds of a `Patience`.

        LostError where there is none, DeviationError where it is no JSON or has a wrong id.
        """
        patience = Patience(self.watch, seconds, is_wall)
        self.most, self.lines = most, 0
        self.stderr_text.clear()
        self.stray = ""
        self._log(SENT, request)
        before = self.watch.resident
        pending, taken = memoryview(request), 0
        while True:
            if (reply := self._reply(id)) is not None:
                return reply
            if taken > most:
                raise self.lost(ProblemKind.PROTOCOL, f"more than {most} bytes without a reply")
            if self.lines > MOST_LINES:
                message = f"more than {MOST_LINES} lines without a reply"
                raise self.lost(ProblemKind.PROTOCOL, message)
            self._check(before)
            left = patience.left()
            if self.stray:
                # The right reply may follow at once; wait no longer for it.
                left = min(left, self.stray_at + TICK - time.monotonic())
            if left <= 0 and self.stray:
                raise DeviationError("reply", f"the id {id}", self.stray)
            if left <= 0:
                try:
                    raise self._late(id, seconds)
                except DeviationError as error:
                    # Its stdin is closed now: it takes no other request.
                    raise self.lost(ProblemKind.PROTOCOL, str(error)) from None
            events = self._events(bool(pending), min(TICK, left))
            if self.stdin in events:
                pending = self._write(pending)
            if self.stderr in events:
                self._take_stderr()
            if self.stdout in events:
                taken += self._take_stdout()
            # After the process has ended, a child of it may still hold the pipe open.
            if self._has_ended(events):
                self._drain(time.monotonic() + TICK)
                if (reply := self._reply(id)) is not None:
                    return reply
                raise self._ended()

    def lost(self, kind: ProblemKind, message: str, *, was_killed: bool = False) -> LostError:
        """The error for a lost worker, with lines that are no replies and the end of its stderr."""
        parts = [message, *(f"not a reply: {note}" for note in self.notes)]
        message = "; ".join([*parts, *self.last_words()])
        return LostError(kind, message, was_killed=was_killed)

    def last_words(self) -> list[str]:
        """A line with the end of its stderr since the last request; no line where that is empty."""
        with contextlib.suppress(OSError):
            self._take_stderr()
        text = self.stderr_text.decode(errors="replace").strip()[-STDERR_SHOWN:]
        return [f"stderr: {text}"] if text else []

    def finish(self) -> int | None:
        """Close stdin and wait a little; returns the exit code, None where the process stays."""
        self._close_stdin()
        deadline = time.monotonic() + PATIENCE
        self._drain(deadline)
        # Note every line that still came: no request is open.
        while self._reply(NO_REQUEST) is not None:
            pass
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(max(0.1, deadline - time.monotonic()))
        return None

    def close(self) -> None:
        """Kill the process and all that it started."""
        # The keeper kills what it has below it, also what is just being started.
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE)
        end(self.process.pid, self.mark)
        self.process.wait()
        if self.received:
            self._log(RECEIVED, bytes(self.received))
            self.received.clear()
        self.selector.close()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _check(self, before: int) -> None:
        self.watch.glance(TICK)
        # The keeper is none of its own.
        resident, count = self.watch.resident, len(self.watch.pids) - 1
        if resident - before > self.most_bytes:
            held, limit = resident >> 20, self.most_bytes >> 20
            held_by = f"{count} processes hold {held} MiB, {before >> 20} MiB before"
            raise self.lost(ProblemKind.LEAK, f"{held_by}; at most {limit} MiB more are allowed")
        if count > MOST_PROCESSES:
            raise self.lost(ProblemKind.LEAK, f"has {count} processes")

    def _events(self, is_writing: bool, seconds: float) -> set[int]:
        writing = self.stdin in self.selector.get_map()
        if is_writing and not writing:
            self.selector.register(self.stdin, selectors.EVENT_WRITE)
        elif writing and not is_writing:
            self.selector.unregister(self.stdin)
        return {key.fd for key, _ in self.selector.select(max(0.0, seconds))}

    def _write(self, pending: memoryview) -> memoryview:
        try:
            return pending[os.write(self.stdin, pending) :]
        except BrokenPipeError:
            # It has stopped reading: stdout shows its reply or its end.
            return memoryview(b"")

    def _read(self, fd: int) -> bytes | None:
        """Read a pipe: empty at its end, None where no data are ready."""
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            return None

    def _take_stdout(self) -> int:
        part = self._read(self.stdout)
        if part == b"":
            self.selector.unregister(self.stdout)
        self.received += part or b""
        return len(part or b"")

    def _take_stderr(self) -> None:
        if self.stderr not in self.selector.get_map():
            return
        part = self._read(self.stderr)
        if part == b"":
            self.selector.unregister(self.stderr)
        # It may be endless: keep only the end.
        self.stderr_text = (self.stderr_text + (part or b""))[-4 * STDERR_SHOWN :]

    def _reply(self, id: int) -> Json | None:
        """The next reply to this request among the complete lines."""
        while self.lines <= MOST_LINES and (size := self.received.find(b"\n")) >= 0:
            text = bytes(self.received[:size])
            del self.received[: size + 1]
            self.lines += 1
            self._log(RECEIVED, text)
            if (reply := reply_in(text, id)) is not None:
                return reply
            if not text.strip():
                continue
            if wrong := wrong_id(text, id):
                self.stray, self.stray_at = wrong, time.monotonic()
            else:
                self._note(text)
        return None

    def _log(self, direction: str, line: bytes) -> None:
        if self.log is not None:
            self.log.write(self.process.pid, direction, line)

    def _note(self, text: bytes) -> None:
        if len(self.notes) < NOTES:
            shown = sanitized(shorten(text))
            self.notes.append(shown)
            print(f"{self.command[0]} printed what is no reply: {shown}", file=sys.stderr)

    def _late(self, id: int, seconds: float) -> LostError:
        """The error for a late reply: closing stdin may show that it was not flushed."""
        within = f"no reply within {seconds:g} s"
        self._drain(time.monotonic() + min(PATIENCE, seconds))
        if self._reply(id) is not None:
            return self.lost(ProblemKind.HANG, f"{within}, but one came a little later")
        self._close_stdin()
        self._drain(time.monotonic() + min(PATIENCE, seconds))
        if self._reply(id) is not None:
            later = "but one came once stdin was closed: it does not flush stdout after each line"
            return self.lost(ProblemKind.HANG, f"{within}, {later}")
        with contextlib.suppress(DeviationError):
            if reply_in(bytes(self.received), id) is not None:
                return self.lost(ProblemKind.HANG, f"{within}: the line has no newline at its end")
        if self.received:
            half = shorten(bytes(self.received))
            return self.lost(ProblemKind.HANG, f"{within}, only half a line: {half}")
        return self.lost(ProblemKind.HANG, within)

    def _has_ended(self, events: set[int]) -> bool:
        """Whether stdout is closed, or is empty and the process has ended."""
        if self.stdout not in self.selector.get_map():
            return True
        return self.stdout not in events and self.process.poll() is not None

    def _ended(self) -> LostError:
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(timeout=1.0)
        half = f" after half a line: {shorten(bytes(self.received))}" if self.received else ""
        message = f"the process {how_it_ended(code)}{half}"
        return self.lost(ProblemKind.CRASH, message, was_killed=code == -signal.SIGKILL)

    def _close_stdin(self) -> None:
        if self.stdin in self.selector.get_map():
            self.selector.unregister(self.stdin)
        if self.process.stdin is not None:
            self.process.stdin.close()

    def _drain(self, deadline: float) -> None:
        """Read until both pipes are closed, the deadline, or more bytes than a reply may have."""
        while self.selector.get_map() and time.monotonic() < deadline:
            if len(self.received) > self.most:
                return
            events = {key.fd for key, _ in self.selector.select(0.1)}
            if self.stderr in events:
                self._take_stderr()
            if self.stdout in events:
                self._take_stdout()


def reply_in(text: bytes, id: int) -> Json | None:
    """Parse a line as the reply to this request; None for any other line.

    An error may have the id null: a worker that cannot read a line does not know the id.
    """
    reply = _object(text)
    if reply is None or "id" not in reply:
        return None
    is_right = reply["id"] == id and type(reply["id"]) is int
    return reply if is_right or (reply["id"] is None and "error" in reply) else None


def wrong_id(text: bytes, id: int) -> str:
    """The wrong id of a line that looks like a reply to this request; empty for any other line.

    A second reply to an earlier request does not count.
    """
    reply = _object(text)
    if reply is None or not reply.keys() & {"outputs", "valid", "error", "protocol"}:
        return ""
    if "id" not in reply:
        return "no id"
    other = reply["id"]
    is_repeated = type(other) is int and 0 <= other < id
    return "" if is_repeated else f"the id {shorten(json.dumps(other).encode())[1:-1]}"


def _object(text: bytes) -> Json | None:
    """Parse a line as a JSON object; None for a line that does not begin as one.

    DeviationError for one that does, but is none: bytes that are no UTF-8, a byte order mark, also
    of UTF-16, too deep or too long a number.
    """
    if not text.lstrip(BEFORE).startswith(b"{"):
        return None
    try:
        reply: Json = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        why = sanitized(str(error).partition("\n")[0][:MESSAGE_SHOWN])
        raise DeviationError("reply", "a line of JSON", f"{shorten(text)}: {why}") from None
    return reply


def shorten(text: bytes) -> str:
    """The first characters of a line, printable."""
    cut = repr(text[:LINE_SHOWN].decode(errors="backslashreplace"))
    return cut if len(text) <= LINE_SHOWN else f"{cut}... ({len(text)} bytes)"
