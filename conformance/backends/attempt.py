"""Turns the errors of an adapter into problems of one program."""

from __future__ import annotations

from collections.abc import Callable

from uop.conformance.protocol.types import Outcome, Problem, ProblemKind
from uop.spec.errors import (
    BackendError,
    InvalidError,
    LabelledError,
    LaunchError,
    MalformedError,
    PassError,
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


def attempt(run: Callable[[], Outcome]) -> Outcome:
    """The outcome of `run`, or the problem for the error that it raises."""
    try:
        return run()
    except UopError as error:
        return problem_of(error)


def problem_of(error: UopError) -> Problem:
    """The problem that reports an error."""
    label = error.label if isinstance(error, LabelledError) else ""
    for kind, problem in KINDS:
        if isinstance(error, kind):
            return Problem(problem, str(error), label)
    return Problem(ProblemKind.INTERNAL, str(error))
