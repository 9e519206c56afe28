"""The errors that this project raises on purpose; the command line prints no traceback for them."""

from __future__ import annotations

import sys
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


class LabelledError(UopError):
    """A labelled condition that does not hold: its label and title, the node, the actual value, and
    the place in a file.

    `subjects` are the nodes that take part, the one that `node` describes first. A reader that
    knows their lines in a file sets `where`.
    """

    def __init__(
        self,
        label: str,
        title: str,
        node: str = "",
        found: str = "",
        where: str = "",
        subjects: tuple[UOp, ...] = (),
    ) -> None:
        super().__init__(label, title, node, found, where)
        self.label, self.title, self.node, self.found, self.where = label, title, node, found, where
        self.subjects = subjects

    def __str__(self) -> str:
        parts = (("node", self.node), ("found", self.found), ("at", self.where))
        head = f"{self.label}: {self.title}" if self.label else self.title
        return "\n".join([head, *(f"  {name}: {text}" for name, text in parts if text)])


class InvalidError(LabelledError):
    """A node or an input that breaks a constraint."""


class UndefinedError(LabelledError):
    """A program without meaning on these inputs: out of bounds, race, divergent barrier.

    The label is empty if it comes from a backend that stopped without naming one.
    """


class IncompleteError(UopError):
    """An op or dtype that lacks something that stands elsewhere: says what, and where."""

    def __init__(self, name: str, *parts: str) -> None:
        super().__init__("\n  ".join([f"{name} is declared, but lacks:", *parts]))


class UnsupportedError(UopError):
    """A feature that this target, backend or version lacks; the suite skips with this reason."""


class LackingError(LabelledError, UnsupportedError):
    """An UnsupportedError at a node: the interpreter or the compiler cannot run it."""


class PassError(UopError):
    """A compiler stage broke its contract; names stage, rule and node. Always a compiler bug."""


class BackendError(UopError):
    """A backend crashed, hung or sent a bad reply."""


class LaunchError(BackendError):
    """A kernel was built, but went wrong when it ran."""


class DeviceLostError(UopError):
    """A process cannot use its device any more; only another process can."""


def users_line() -> str:
    """The file:line of the first stack frame outside this package; empty if there is none."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
