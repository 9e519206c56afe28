"""Runs the pool of judging processes: sends each one task at a time and reads its answer."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from uop.conformance.protocol import wire
from uop.conformance.protocol.types import Hello
from uop.conformance.run.options import Options
from uop.conformance.workers.processes import Module, how_it_ended
from uop.spec.errors import BackendError, PassError

A = TypeVar("A")
MEMBER = "uop.conformance.run.pool_member"
"""The module that a process of the pool runs."""


class Task(Generic[A]):
    """A message to a process of the pool; `answer` is the type of its reply."""

    __slots__ = ()
    answer: type[A]


class SayHello(Task[Hello]):
    """The first task of every judging process, which it answers without a message."""

    __slots__ = ()
    answer = Hello


SAY_HELLO = SayHello()


@dataclass(slots=True, eq=False)
class Member:
    """A process of the pool, and its current task."""

    process: Module
    task: Task[Any] | None = None

    @classmethod
    def start(cls, *command: str, task: Task[Any] | None = None) -> Member:
        """Start a module, the first word of the command, with the other words as arguments."""
        return cls(Module(*command), task)

    def ask(self, task: Task[A]) -> A:
        """Send a task and wait for its answer. BackendError where the backend is lost for good."""
        self.send(task)
        return self.answer(task)

    def send(self, task: Task[Any]) -> None:
        self.task = task
        try:
            self.process.write(task)
        except wire.ClosedError:
            raise self._ended() from None

    def answer(self, task: Task[A]) -> A:
        """Wait for the answer to the current task. Raises the errors of `ask`."""
        try:
            answer = self.process.read(task.answer)
        except wire.ClosedError:
            raise self._ended() from None
        except wire.RefusedError as refused:
            raise BackendError(str(refused)) from None
        self.task = None
        return answer

    def _ended(self) -> PassError:
        code = self.process.popen.wait()
        return PassError(f"a judging process of the suite {how_it_ended(code)}")


@dataclass(slots=True, eq=False)
class Pool:
    """Processes that share tasks. All judging processes of a run have the same command."""

    members: list[Member]
    command: tuple[str, ...] = ()
    backend_hello: Hello | None = None
    """The hello of the backend, once it has come."""

    @classmethod
    def start(cls, options: Options) -> Pool:
        """Start the first process only: others would slow down its start."""
        rest = (str(option or "") for option in (options.timeout, options.log, options.folder))
        command = (MEMBER, options.backend, options.profile, str(options.seed), *rest)
        return cls([Member.start(*command, task=SAY_HELLO)], command)

    def hello(self, processes: int) -> Hello:
        """Start the other processes; returns the hello. BackendError where it does not start."""
        if self.backend_hello is None:
            self.backend_hello = self.members[0].answer(SAY_HELLO)
        more = range(len(self.members), processes)
        self.members += [Member.start(*self.command, task=SAY_HELLO) for _ in more]
        return self.backend_hello

    def ask(self, task: Task[A]) -> A:
        """The answer of the first process to a task."""
        return self.members[0].ask(task)

    def ask_all(self, task: Task[Any]) -> None:
        """Send a task to every process, and wait for all."""
        for member in self.members:
            if member.task is SAY_HELLO:
                member.answer(SAY_HELLO)
            member.send(task)
        for member in self.members:
            member.answer(task)

    def answers(
        self, tasks: Iterator[Task[A]], keep_on: Callable[[], bool] = lambda: True
    ) -> Iterator[A]:
        """Yield answers as they come; start no new task once `keep_on` returns false."""
        for member in self.members:
            if member.task is None:
                self._next(member, tasks, keep_on)
        while busy := {m.process.replies: m for m in self.members if m.task is not None}:
            for ready in select.select(list(busy), [], [])[0]:
                member, task = busy[ready], busy[ready].task
                assert task is not None
                answer = member.answer(task)
                self._next(member, tasks, keep_on)
                if task is not SAY_HELLO:
                    yield answer

    def end(self) -> None:
        for member in self.members:
            member.process.terminate()
        for member in self.members:
            member.process.end()

    def _next(
        self, member: Member, tasks: Iterator[Task[Any]], keep_on: Callable[[], bool]
    ) -> None:
        task = next(tasks, None) if keep_on() else None
        if task is not None:
            member.send(task)
