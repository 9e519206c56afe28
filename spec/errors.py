"""Every error this project raises on purpose; the command line prints them without a traceback."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uop.spec.uop import UOp

_PACKAGE = __name__.partition(".")[0] + "."


class UopError(Exception):
    """The root of the errors below."""


class MalformedError(UopError):
    """Text or JSON that is no program: says the line and the column, both counted from 1."""

    def __init__(self, message: str, line: int = 0, column: int = 0, path: str = "") -> None:
        self.message, self.line, self.column, self.path = message, line, column, path
        place = ":".join([path] * bool(path) + [str(line), str(column)] * bool(line))
        super().__init__(f"{place}: {message}" if place else message)


class LabelledError(UopError):
    """A labelled condition that does not hold: the label, what was expected, the node, what was
    found and where.

    `subjects` are the nodes themselves, where there are any: first the one that `node` spells, then
    others that take part. Who knows in which line of a file they stand changes `where`.
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

    The label is empty where a backend stopped and did not say one.
    """


class IncompleteError(UopError):
    """An op that is declared, and lacks something that stands elsewhere: says what, and where."""

    def __init__(self, op: str, *parts: str) -> None:
        super().__init__("\n  ".join([f"{op} is declared, but lacks:", *parts]))


class UnsupportedError(UopError):
    """Something this target, backend or version lacks; a skip with a reason."""


class LackingError(LabelledError, UnsupportedError):
    """An UnsupportedError at a node: what the interpreter or the compiler lacks to run it here."""


class PassError(UopError):
    """A compiler stage broke its contract: the stage, the rule, the node. Always our own bug."""


class BackendError(UopError):
    """A backend crashed, hung or sent a bad reply."""


class LaunchError(BackendError):
    """A kernel was built, but went wrong when it ran."""


def users_line() -> str:
    """The first frame outside this package, as file:line; empty where there is none."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
