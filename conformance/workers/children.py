"""Runs tasks in a forked child: a crash costs its task and no other."""

from __future__ import annotations

import os
import signal
import traceback
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from uop.conformance.protocol import wire
from uop.conformance.workers.processes import how_it_ended

A = TypeVar("A")

TASKS = 64
"""A child is replaced after this many tasks: its memory must not grow without bound."""


class EndedError(Exception):
    """The child ended during a task: says how."""


class Child:
    """A fork of this process that answers one task after the other; forked on demand."""

    def __init__(self, work: Callable[[Any], object], *kinds: type, tasks: int = TASKS) -> None:
        """`work` answers tasks of these types."""
        self._work, self._kinds, self._tasks, self._left = work, kinds, tasks, 0
        self._end: Callable[[], int | None] | None = None

    def ask(self, task: object, answer: type[A], deadline: float | None = None) -> A:
        """The answer to a task. EndedError where there is none, or none at `deadline` (by
        time.monotonic), which ends the child; RefusedError for a refusal.
        """
        if self._end is None or not self._left:
            self.close()
            self._start()
        self._left -= 1
        try:
            wire.write(self._tasks_to, task)
            left = None if deadline is None else wire.until(deadline)
            return wire.read(self._answers_from, answer, left=left)
        except wire.ClosedError:
            # Exit code 0 says only that the child closed its pipe.
            raise EndedError(f"the process {how_it_ended(self.close() or None)}") from None
        except wire.LateError:
            self.close()
            raise EndedError("the process took too long") from None

    def close(self) -> int:
        """End the child; its exit code."""
        end, self._end = self._end, None
        return (end() or 0) if end else 0

    def _start(self) -> None:
        reading_tasks, self._tasks_to = os.pipe()
        self._answers_from, writing_answers = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(self._tasks_to)
            os.close(self._answers_from)
            self._answer(reading_tasks, writing_answers)
        os.close(reading_tasks)
        os.close(writing_answers)
        self._left = self._tasks
        self._end = weakref.finalize(self, _ended, child, self._tasks_to, self._answers_from)

    def _answer(self, tasks: int, answers: int) -> NoReturn:
        """Answer tasks. Never returns: the child must not continue as its parent would."""
        code = 1
        try:
            while True:
                wire.write(answers, self._work(wire.read(tasks, *self._kinds)))
        except wire.ClosedError:
            code = 0
        except BaseException:  # noqa: BLE001 - the parent sees that the child ended
            traceback.print_exc()
        finally:
            os._exit(code)


def _ended(child: int, *pipes: int) -> int:
    """Kill a child and return its exit code.

    Closing its pipe would not end it: a later fork may hold that end too.
    """
    for pipe in pipes:
        os.close(pipe)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
