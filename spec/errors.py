"""Every error this project raises on purpose; the command line prints them without a traceback."""

from __future__ import annotations

import sys

_PACKAGE = __name__.partition(".")[0] + "."


class UopError(Exception):
    """The root of the errors below."""


class MalformedError(UopError):
    """Text or JSON that is no program: says the line and the column, both counted from 1."""

    def __init__(self, message: str, line: int = 0, column: int = 0, path: str = "") -> None:
        self.message, self.line, self.column, self.path = message, line, column, path
        place = ":".join([path] * bool(path) + [str(line), str(column)] * bool(line))
        super().__init__(f"{place}: {message}" if place else message)


class InvalidError(UopError):
    """A node that breaks a constraint: its label, what was expected, what was found and where."""

    def __init__(
        self, label: str, title: str, node: str = "", found: str = "", where: str = ""
    ) -> None:
        self.label, self.title, self.node, self.found, self.where = label, title, node, found, where
        lines = [f"{label}: {title}"]
        lines += [
            f"  {name}: {text}"
            for name, text in (("node", node), ("found", found), ("at", where))
            if text
        ]
        super().__init__("\n".join(lines))


class UndefinedError(UopError):
    """A program without meaning on these inputs: out of bounds, race, divergent barrier."""


class UnsupportedError(UopError):
    """Something this target, backend or version lacks; a skip with a reason."""


class PassError(UopError):
    """A compiler stage broke its contract: the stage, the rule, the node. Always our own bug."""


class BackendError(UopError):
    """A backend crashed, hung or sent a bad reply."""


def users_line() -> str:
    """The first frame outside this package, as file:line; empty where there is none."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
