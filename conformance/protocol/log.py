"""Logs the lines between the suite and a worker, with time, process and direction."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from uop.conformance.checks import OptionError, writable

SENT, RECEIVED = ">", "<"
HEADER = "# {command}: time, process, > to the worker or < from it, line\n"


class ProtocolLog:
    """Appends lines to a file that several processes may share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.has_failed = False

    def write(self, pid: int, direction: str, line: bytes) -> None:
        """Append one line. The first error prints a message and ends the log, not the run."""
        if self.has_failed:
            return
        head = f"{datetime.now().isoformat(timespec='microseconds')} {pid} {direction} "
        try:
            append(self.path, head.encode() + line.rstrip(b"\r\n") + b"\n")
        except OSError as error:
            self.has_failed = True
            message = f"cannot write {self.path}: {error.strerror}; the log ends here"
            print(message, file=sys.stderr)


def begin_log(path: Path, command: Sequence[str]) -> None:
    """Start a log with a header line. OptionError where it cannot be written."""
    writable(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        append(path, HEADER.format(command=shlex.join(command)).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise OptionError(f"--log-protocol: cannot write {path}: {error.strerror}") from None


def append(path: Path, data: bytes) -> None:
    """Append to a file in one write, so that processes do not mix their lines."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(file, left) :]
    finally:
        os.close(file)
