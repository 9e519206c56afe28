"""Turns the errors of an adapter and of its library into problems of one program."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from subprocess import SubprocessError
from types import TracebackType

from uop.conformance.protocol.types import Outcome, Problem, ProblemKind
from uop.spec.errors import (
    BackendError,
    InvalidError,
    LabelledError,
    LackingError,
    LaunchError,
    MalformedError,
    PassError,
    RefusedError,
    UndefinedError,
    UnsupportedError,
    UopError,
)

KINDS: tuple[tuple[type[UopError], ProblemKind], ...] = (
    (UnsupportedError, ProblemKind.UNSUPPORTED),
    (MalformedError, ProblemKind.INVALID),
    (InvalidError, ProblemKind.INVALID),
    (UndefinedError, ProblemKind.TRAP),
    (LaunchError, ProblemKind.INTERNAL),
    (BackendError, ProblemKind.COMPILE),
    (PassError, ProblemKind.INTERNAL),
)
ERRORS: tuple[type[Exception], ...] = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError),
    *(NameError, OSError, RuntimeError, SubprocessError, TypeError, ValueError),
)
"""The errors that libraries raise, or that a call raises which a library does not know."""
SHOWN = 300
OURS = __name__.partition(".")[0] + "."
LOOKUPS = frozenset({"__getattr__", "getattr"})
"""The functions in which modules and objects look up names that they do not have at hand."""
DRIVER = "uop.conformance.adapters.backend"
"""The module that calls adapters: what it raises comes from what an adapter returned."""


def attempt(run: Callable[[], Outcome]) -> Outcome:
    """The outcome of `run`, or the problem for the error that this project raises there."""
    try:
        return run()
    except UopError as error:
        return own_problem(error)


def own_problem(error: UopError) -> Problem:
    """The problem that reports an error of our compiler or interpreter.

    Unsupported is what a device lacks, or the compiler states that it refuses. What else they
    cannot do says nothing of the device.
    """
    if isinstance(error, UnsupportedError) and not isinstance(error, RefusedError):
        return Problem(ProblemKind.OURS, f"this uop cannot run it: {error}")
    return problem_of(error)


def problem_of(error: UopError) -> Problem:
    """The problem that reports an error."""
    label = error.label if isinstance(error, LabelledError) else ""
    for kind, problem in KINDS:
        if isinstance(error, kind):
            return Problem(problem, str(error), label)
    return Problem(ProblemKind.INTERNAL, str(error))


def raised(kind: ProblemKind, error: Exception) -> Problem:
    """The problem that reports an error of an adapter, or of its library while it has a program.

    `kind` is that of an error of the library. What the library does not implement is unsupported;
    the reason does not name the node, so that it is one for all programs.
    """
    text = f"{type(error).__name__}: {error}"[:SHOWN]
    if isinstance(error, NotImplementedError):
        return Problem(ProblemKind.UNSUPPORTED, text)
    if place := place_in_adapter(error):
        return Problem(ProblemKind.ADAPTER, f"the adapter raises {text} at {place}")
    if not isinstance(error, UopError):
        return Problem(kind, text)
    made = problem_of(error)
    return replace(made, message=error.title) if isinstance(error, LackingError) else made


def place_in_adapter(error: Exception) -> str:
    """The module and line of this project that raise an error; empty if a library raises it.

    The innermost frame decides, those of the standard library aside, and those by which a library
    says that it lacks a name. A function in C has no frame: what it raises is of the library,
    unless it says that the call is wrong. A program for a library is valid, so an InvalidError is
    about a node that the adapter makes.
    """
    frames = list(_frames(error.__traceback__))
    if isinstance(error, AttributeError):
        while frames and frames[-1][1].tb_frame.f_code.co_name in LOOKUPS:
            del frames[-1]
    standard = sys.stdlib_module_names
    places = [k for k, (name, _) in enumerate(frames) if name.partition(".")[0] not in standard]
    k = places[-1] if places else 0
    name = frames[k][0] if places else ""
    if not name.startswith(OURS) or name == DRIVER:
        return ""
    frame = frames[k][1]
    is_of_c = k == len(frames) - 1 and _is_call(frame)
    if isinstance(error, (InvalidError, PassError)):
        is_ours = True
    elif is_of_c:
        is_ours = type(error) in (AttributeError, TypeError)
    else:
        is_ours = type(error).__module__ == "builtins"
    return f"{name}:{frame.tb_lineno}" if is_ours else ""


def _frames(traceback: TracebackType | None) -> Iterator[tuple[str, TracebackType]]:
    """The frames of a traceback, the innermost last, each with the name of its module."""
    while traceback is not None:
        yield traceback.tb_frame.f_globals.get("__name__", ""), traceback
        traceback = traceback.tb_next


def _is_call(frame: TracebackType) -> bool:
    """Whether the frame has raised at a call, not at an operation of its own."""
    return dis.opname[frame.tb_frame.f_code.co_code[frame.tb_lasti]].startswith("CALL")
