"""A child of this process that does its work: one that ends costs the task it had, and no other."""

from __future__ import annotations

import os
import signal
import traceback
import weakref
from collections.abc import Callable

from uop.conformance.protocol import wire

Work = Callable[[wire.Json, bytes], bytes]
"""Makes the frame of an answer from the header and the body of a task."""

TASKS = 64
"""After so many a child is made anew: what it keeps must not grow without end."""


class EndedError(Exception):
    """The child has ended in the middle of a task: says how."""


class Child:
    """A fork of this process that does one task after the other, made where there is none."""

    def __init__(self, work: Work, tasks: int = TASKS) -> None:
        self._work, self._tasks, self._left = work, tasks, 0
        self._end: Callable[[], int | None] | None = None

    def ask(self, task: bytes) -> tuple[wire.Json, bytes]:
        """The answer to a frame. EndedError where there is none."""
        if self._end is None or not self._left:
            self.close()
            self._start()
        self._left -= 1
        try:
            wire.write(self._tasks_to, task)
            return wire.read(self._answers_from)
        except wire.ClosedError:
            raise EndedError(how_ended(self.close())) from None

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
            _answer(self._work, reading_tasks, writing_answers)
        os.close(reading_tasks)
        os.close(writing_answers)
        self._left = self._tasks
        self._end = weakref.finalize(self, _ended, child, self._tasks_to, self._answers_from)


def how_ended(code: int) -> str:
    """In words how a process ended."""
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}" if code else "the process closed its pipe"


def _ended(child: int, *pipes: int) -> int:
    """The exit code of a child that nobody speaks to any more, at the latest from now on.

    That its pipe is closed would not tell it: a later fork may hold that end too.
    """
    for pipe in pipes:
        os.close(pipe)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _answer(work: Work, tasks: int, answers: int) -> None:
    """Never returns: the child must not go on as its parent would."""
    code = 1
    try:
        while True:
            wire.write(answers, work(*wire.read(tasks)))
    except wire.ClosedError:
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the parent hears that the child ended
        traceback.print_exc()
    finally:
        os._exit(code)
