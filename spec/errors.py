"""The errors that this project raises on purpose; the command line prints no traceback for them."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uop.spec.uop import UOp

_PACKAGE = __name__.partition(".")[0] + "."


class UopError(Exception):
    """The base of the errors below."""


class MalformedError(UopError):
    """Text or JSON that is no program, with line and column, both counted from 1."""

    def __init__(self, message: str, line: int = 0, column: int = 0, path: str = "") -> None:
        self.message, self.line, self.column, self.path = message, line, column, path
        place = ":".join([path] * bool(path) + [str(line), str(column)] * bool(line))
        super().__init__(f"{place}: {message}" if place else message)


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a user, as text `file:line`, and its columns in bytes of UTF-8, from 0."""

    path: str
    line: int
    begin: int | None = None
    end: int | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.path else ""

    def excerpt(self) -> list[str]:
        """The source line and carets under the columns; nothing where they are not known."""
        source = linecache.getline(self.path, self.line).rstrip().encode()
        if self.begin is None or not source:
            return []
        code = source.decode()
        before, marked = (source[:k].decode(errors="replace") for k in (self.begin, self.end))
        indent = len(code) - len(code.lstrip())
        carets = " " * (len(before) - indent) + "^" * max(len(marked) - len(before), 1)
        return [code.lstrip(), carets]


class LabelledError(UopError):
    """A labelled condition that does not hold: its label and title, the node, the actual value, and
    the place in a file.

    `subjects` are the nodes that take part, the one that `node` describes first. A reader that
    knows their lines in a file sets `where`. `reasons` are the calls of composed functions that
    made the node, the innermost first.
    """

    def __init__(
        self,
        label: str,
        title: str,
        node: str = "",
        found: str = "",
        where: str | Place = "",
        subjects: tuple[UOp, ...] = (),
    ) -> None:
        self.place, where = where, str(where)
        super().__init__(label, title, node, found, where)
        self.label, self.title, self.node, self.found, self.where = label, title, node, found, where
        self.subjects, self.reasons = subjects, list[str]()

    def __str__(self) -> str:
        reasons = (("made by", reason) for reason in self.reasons)
        parts = (("node", self.node), *reasons, ("found", self.found), ("at", self.where))
        head = f"{self.label}: {self.title}" if self.label else self.title
        lines = [head, *(f"  {name}: {text}" for name, text in parts if text)]
        if isinstance(self.place, Place) and self.where == str(self.place):
            lines += [f"    {line}" for line in self.place.excerpt()]
        return "\n".join(lines)


class InvalidError(LabelledError):
    """A node or an input that breaks a constraint."""

    def at(self, where: str) -> InvalidError:
        """The same error at a place of a text, in place of a line of Python."""
        return InvalidError(self.label, self.title, self.node, self.found, where)


class NativeError(UopError):
    """A program of a file holds machine code, which nobody has allowed to run."""


class UndefinedError(LabelledError):
    """A program without meaning on these inputs: out of bounds, race, divergent barrier.

    The label is empty if it comes from a backend that stopped without naming one.
    """


class IncompleteError(UopError):
    """An op or dtype that lacks something elsewhere: the message says what, and where."""

    def __init__(self, name: str, *parts: str) -> None:
        super().__init__("\n  ".join([f"{name} is declared, but lacks:", *parts]))


class UnsupportedError(UopError):
    """A feature that this target, backend or version lacks; the suite skips the case with this
    reason.
    """


class RefusedError(UnsupportedError):
    """What the compiler takes from nobody, by a limit that it states; the suite skips it."""


class DeviceLacksError(RefusedError):
    """A device, or the language of its kernels, lacks what a program needs."""


class LackingError(LabelledError, UnsupportedError):
    """An UnsupportedError at a node: the interpreter or the compiler cannot run it."""


class CaptureWarning(UserWarning):
    """A Tensor was evaluated while a function was captured: code that uses the value is no part of
    its graph.
    """


class PassError(UopError):
    """A compiler stage broke its contract; names stage, rule and node. Always a compiler bug."""


class BackendError(UopError):
    """A backend crashed, hung or sent a bad reply."""


class ChangedError(BackendError):
    """A backend changed during the run, so nothing is known of the one that was asked for."""


class JudgeLostError(UopError):
    """The processes that judge end too early; nothing is known of the backend."""


class UnfitError(BackendError):
    """An adapter was not written for the installed version of its library."""


class LaunchError(BackendError):
    """A kernel was built, but failed when it ran."""


class OutOfMemoryError(LaunchError):
    """A device has too little free memory for a program; its contents stay usable."""


class DeviceLostError(UopError):
    """A process cannot use its device any more; a new process can."""


def users_line() -> Place:
    """The place in the first stack frame outside this package; an empty one if there is none."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        if frame.f_back is None:
            return Place("", 0)
        frame = frame.f_back
    return _place_in(frame)


def _place_in(frame: FrameType) -> Place:
    """Where a frame is. Of an expression on several lines it is the first line."""
    path, positions = frame.f_code.co_filename, frame.f_code.co_positions()
    # An instruction has two bytes.
    line, last, begin, end = next(islice(positions, frame.f_lasti // 2, None), (None,) * 4)
    if line is None or begin is None:
        return Place(path, frame.f_lineno)
    return Place(path, line, begin, end if line == last else None)
