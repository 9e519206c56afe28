"""Judges in this process, for a debugger: breakpoints work, nothing is timed, a crash ends it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from uop.conformance.backends import COMMAND, MUTANT, find
from uop.conformance.checks import OptionError
from uop.conformance.judging.judging import Tasks
from uop.conformance.profile.card import Card, card_from_json
from uop.conformance.protocol.hello import checked
from uop.conformance.protocol.types import Hello, Outcome
from uop.conformance.run.options import Options
from uop.conformance.run.pool import CARD, Answer, Task
from uop.conformance.suite.vocabulary import Vocabulary
from uop.conformance.workers.serve import fitting
from uop.conformance.workers.transport import Local

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

    def card(self) -> Card:
        """What the backend does where the spec leaves a choice."""
        return card_from_json(self._answer(CARD)["card"])

    def judge_by(self, profile: str, vocabulary: Vocabulary) -> None:
        """Take this profile, and draw random programs from this vocabulary."""
        self._answer({"profile": profile, "vocabulary": vocabulary.to_json()})

    def answers(
        self, tasks: Iterator[Task], keep_on: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[Task, Answer]]:
        """Each task with its answer, one after the other."""
        for task in tasks:
            if not keep_on():
                return
            yield task, self._answer(task)

    def end(self) -> None:
        """Nothing to end."""

    def _answer(self, task: Task) -> Answer:
        """As it would come from a process."""
        answer: Answer = json.loads(json.dumps(self.tasks.answered(task)))
        return answer


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
