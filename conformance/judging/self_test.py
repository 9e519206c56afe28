"""The self-test of an adapter of a library: it builds and runs a dozen programs, values aside.

An adapter that fails on all of them fits another version of its library: nothing follows from what
it does about the library. Backends that are no adapters of a library have none: what they raise is
theirs. Nor have workers of JSON lines, which are the implementation themselves; theirs is
`uop worker check`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.resources import files

from uop.conformance.backends.versions import unfit
from uop.conformance.judging.lowering import submission_of
from uop.conformance.protocol.types import Hello, Problem, ProblemKind, Program
from uop.conformance.suite.case import MIXED, OWN, CaseId
from uop.conformance.suite.own_cases import suite_case
from uop.conformance.workers.transport import Session
from uop.spec.errors import UnfitError
from uop.spec.text.uop_file import parse_file

FILE = "self_test.uop"
SECONDS = 2.0
"""After these no further call begins."""
PROGRAMS_PER_CALL = 4
"""The most programs in a call: some libraries take a second for each."""
RAISED = frozenset(
    {ProblemKind.INVALID, ProblemKind.TRAP, ProblemKind.COMPILE, ProblemKind.INTERNAL}
)
"""The problems of an adapter, or its library, that has raised."""


def require_fit(session: Session) -> None:
    """UnfitError where an adapter does not fit its library."""
    if why := why_unfit(session):
        raise UnfitError(why)


def why_unfit(session: Session) -> str:
    """Why an adapter does not fit its library; empty where it does, or there is no self-test."""
    hello = session.hello
    problems = list(_problems(session)) if hello.tested else []
    by_adapter = [p for p in problems if p is not None and p.kind is ProblemKind.ADAPTER]
    if by_adapter:
        why = by_adapter[0].message
    elif problems and all(p is not None and p.kind in RAISED for p in problems):
        assert problems[0] is not None
        why = f"each of {len(problems)} programs of its self-test raises {problems[0].message}"
    else:
        return ""
    return unfit(hello.name, hello.version, hello.tested, why)


def _problems(session: Session) -> Iterator[Problem | None]:
    """The problem of each program that the backend supports; None for one that has run."""
    programs = list(_programs(session.hello))
    size = min(session.hello.limits.programs, PROGRAMS_PER_CALL)
    deadline = time.monotonic() + SECONDS
    with session.expecting_losses():
        for start in range(0, len(programs), size):
            if time.monotonic() >= deadline:
                return
            session.submit(programs[start : start + size])
            for outcome in session.collect():
                if not isinstance(outcome, Problem):
                    yield None
                elif outcome.kind is not ProblemKind.UNSUPPORTED:
                    yield outcome


def _programs(hello: Hello) -> Iterator[Program]:
    text = files(__package__).joinpath(FILE).read_text("utf-8")
    for case in parse_file(text, FILE).cases:
        submission = submission_of(suite_case(CaseId(OWN, FILE, MIXED, FILE, 0), case), hello)
        if not submission.reason:
            yield from submission.programs
