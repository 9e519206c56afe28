"""Judges a backend in this process, for a debugger: no timeouts, and a crash ends the run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from uop.conformance.backends import MUTANT, load
from uop.conformance.checks import COMMAND, OptionError
from uop.conformance.judging.judging import Tasks
from uop.conformance.protocol.hello import checked
from uop.conformance.protocol.types import Hello, Outcome
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Task
from uop.conformance.suite.own_cases import OwnCases
from uop.conformance.workers.serve import BORDERS, fired, run
from uop.conformance.workers.transport import Local

A = TypeVar("A")
WARNING = (
    "judged in this process: breakpoints work, nothing is timed, and a crash or an exception of "
    "the backend ends the run"
)


class InProcess:
    """A pool without processes: one judge and one backend in this process."""

    peak = replaced = 0

    def __init__(self, options: Options) -> None:
        # For a backend named module:Class; last, so that it hides no installed module.
        sys.path.append(str(Path.cwd()))
        session = Fitting(load(options.backend))
        checked(session.hello)
        own = OwnCases.read(options.folder, options.edition)
        self.tasks = Tasks.of(session, options.backend, options.profile, options.seed, own)

    def hello(self, processes: int) -> Hello:
        """The hello of the backend."""
        return self.tasks.judge.session.hello

    def ask(self, task: Task[A]) -> A:
        """The answer to a task."""
        answer = self.tasks.answered(task)
        assert isinstance(answer, task.answer)
        return answer

    ask_all = ask

    def answers(self, tasks: Iterator[Task[A]], deadline: float | None = None) -> Iterator[A]:
        """Answer one task after the other; start none at the deadline (by time.monotonic)."""
        for task in tasks:
            if deadline is not None and time.monotonic() >= deadline:
                return
            yield self.ask(task)

    def end(self) -> None:
        """Nothing to end."""


class Fitting(Local):
    """Lends inputs, and reports what is no outcome, as a backend in a process does."""

    def collect(self) -> list[Outcome]:
        outcomes = run(self.backend, self.submitted, BORDERS[0])
        self.fired = fired(self.backend)
        return list(outcomes)


def require_in_process(options: Options) -> None:
    """OptionError for options that need processes."""
    if options.backend.startswith((COMMAND, MUTANT)):
        expected = "expected a backend in Python, such as module:Class"
        raise OptionError(f"--in-process: {expected}; found {options.backend!r}")
    if options.timeout is not None:
        raise OptionError("--timeout: nothing is timed --in-process")
    if options.known is not None:
        raise OptionError("--known: its programs are run in processes, not --in-process")
