"""Judges in this process, for a debugger: breakpoints work, nothing is timed, a crash ends it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from uop.conformance.backends import COMMAND, MUTANT, find
from uop.conformance.checks import OptionError
from uop.conformance.judging.judging import Tasks
from uop.conformance.protocol.hello import checked
from uop.conformance.protocol.types import Hello, Outcome
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Task
from uop.conformance.workers.serve import fitting
from uop.conformance.workers.transport import Local

A = TypeVar("A")
WARNING = (
    "judged in this process: breakpoints work, nothing is timed, and a crash or an exception of "
    "the backend ends the run"
)


class InProcess:
    """What a run asks a pool, answered by one judge and a backend of this process."""

    def __init__(self, options: Options) -> None:
        # For a backend written as module:Class; at the end, where it hides nothing installed.
        sys.path.append(str(Path.cwd()))
        session = _Fitting(find(options.backend).make())
        checked(session.hello)
        self.tasks = Tasks.of(session, options.profile, options.seed, options.folder)

    def hello(self, processes: int) -> Hello:
        """Who is judged."""
        return self.tasks.judge.session.hello

    def ask(self, task: Task[A]) -> A:
        """The answer to a task."""
        answer = self.tasks.answered(task)
        assert isinstance(answer, task.answer)
        return answer

    ask_all = ask

    def answers(
        self, tasks: Iterator[Task[A]], keep_on: Callable[[], bool] = lambda: True
    ) -> Iterator[A]:
        """The answer to each task, one after the other; no new task once `keep_on` says no."""
        return (self.ask(task) for task in takewhile(lambda _: keep_on(), tasks))

    def end(self) -> None:
        """Nothing to end."""


class _Fitting(Local):
    """What is no outcome is told as it is of a process."""

    def collect(self) -> list[Outcome]:
        return [fitting(outcome) for outcome in super().collect()]


def require_in_process(options: Options) -> None:
    """OptionError for what only processes have."""
    if options.backend.startswith((COMMAND, MUTANT)):
        expected = "expected a backend in Python, such as module:Class"
        raise OptionError(f"--in-process: {expected}; found {options.backend!r}")
    if options.timeout is not None:
        raise OptionError("--timeout: nothing is timed --in-process")
    if options.known is not None:
        raise OptionError("--known: its programs are run in processes, not --in-process")
