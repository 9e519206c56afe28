"""Sends messages between processes of the suite: JSON, then the bytes of arrays; no pickle."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from uop.conformance.protocol.codec import Arrays, codec
from uop.conformance.protocol.types import Hello, Outcome, Program, StageText
from uop.spec.errors import BackendError, ChangedError, UnfitError, UopError

ERRORS = {error.__name__: error for error in (BackendError, ChangedError, UnfitError)}
"""The classes of errors that stay what they are in another process."""
SIZES = struct.Struct("<QQ")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refused:
    """Says why there is no answer; it may replace any answer."""

    message: str
    error: str = BackendError.__name__
    """The name of the class of the error that says so to a user."""


@dataclass(frozen=True, slots=True)
class Started:
    """A backend has started: its hello, and the memory of its process in bytes."""

    hello: Hello
    resident: int


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Run programs within `limit` seconds."""

    programs: tuple[Program, ...]
    limit: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """An outcome for each program, and the memory of the process in bytes after them.

    `fired` has for each rule of a compiler the number of the programs it fired in.
    """

    outcomes: tuple[Outcome, ...]
    resident: int = 0
    fired: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Lower:
    """Say what the stages of the backend make of a program, within `limit` seconds."""

    program: Program
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Lowered:
    """What the stages make of a program; `locates` says whether it answers Locate."""

    stages: tuple[StageText, ...]
    locates: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Locate:
    """Say what of the backend is to blame for a failing program, within `limit` seconds."""

    program: Program
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Located:
    """What is to blame, as lines of text."""

    text: str


def refusal(error: UopError) -> Refused:
    """What says that an error has happened instead of an answer."""
    name = type(error).__name__
    return Refused(str(error), name if name in ERRORS else BackendError.__name__)


class ClosedError(Exception):
    """The other side has gone, or sent no valid message."""


class LateError(Exception):
    """The other side has not answered in time."""


class RefusedError(Exception):
    """The other side refused to answer: says why."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.error = ERRORS.get(refused.error, BackendError)
        """The class of the error that says so to a user."""


def write(fd: int, message: object) -> None:
    """Write a message; ClosedError where nobody reads."""
    arrays = Arrays()
    named = [type(message).__name__, codec(type(message)).write(message, arrays)]
    header, body = json.dumps(named).encode(), b"".join(arrays.parts)
    view = memoryview(SIZES.pack(len(header), len(body)) + header + body)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except BrokenPipeError as error:
        raise ClosedError from error


Left = Callable[[], float]
"""The seconds until it must be called again; 0 or less where there is no time left."""


def until(deadline: float) -> Left:
    """The time until a deadline, by time.monotonic."""
    return lambda: deadline - time.monotonic()


def read(fd: int, *kinds: type[T], left: Left | None = None) -> T:
    """Read a message of one of these types.

    LateError where it is not complete when there is no time left, RefusedError for a refusal
    instead.
    """
    header_size, body_size = SIZES.unpack(_read_exactly(fd, SIZES.size, left))
    header = _read_exactly(fd, header_size, left)
    body = _read_exactly(fd, body_size, left)
    known = {kind.__name__: kind for kind in (*kinds, Refused)}
    try:
        name, fields = json.loads(header)
        message = codec(known[name]).read(fields, Arrays(body))
    except (LookupError, TypeError, ValueError, MemoryError, OverflowError) as error:
        raise ClosedError from error
    if isinstance(message, Refused):
        raise RefusedError(message)
    found: T = message
    return found


def _read_exactly(fd: int, size: int, left: Left | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if left is not None:
            _wait(fd, left)
        part = os.read(fd, min(size - len(parts), 1 << 20))
        if not part:
            raise ClosedError
        parts += part
    return bytes(parts)


def _wait(fd: int, left: Left) -> None:
    """Wait for data; LateError where none come in time."""
    while not select.select([fd], [], [], 0)[0]:
        seconds = left()
        if seconds <= 0:
            raise LateError
        select.select([fd], [], [], seconds)
