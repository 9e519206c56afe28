"""Runs the pool of judging processes: sends each one task at a time and reads its answer."""

from __future__ import annotations

import select
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from uop.conformance.protocol import wire
from uop.conformance.protocol.types import Hello
from uop.conformance.run.options import Options
from uop.conformance.workers.processes import Module, how_it_ended
from uop.spec.errors import BackendError, PassError

A = TypeVar("A")
MEMBER = "uop.conformance.run.pool_member"
"""The module that a process of the pool runs."""
GRACE = 1.0
"""The seconds after a deadline in which a task that has begun may end."""


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
    settings: Sequence[Task[Any]] = ()
    """The tasks that come before all others."""

    @classmethod
    def start(cls, *command: str, task: Task[Any] | None = None) -> Member:
        """Start a module, the first word of the command, with the other words as arguments."""
        return cls(Module(*command), task)

    def ask(self, task: Task[A]) -> A:
        """Send a task and wait for its answer. BackendError where the backend is lost for good."""
        self.send(task)
        return self.answer(task)

    def begin(self) -> None:
        """Wait for the hello, then send the settings."""
        self.answer(SAY_HELLO)
        for setting in self.settings:
            self.ask(setting)

    def send(self, task: Task[Any]) -> None:
        if self.task is SAY_HELLO:
            self.begin()
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
    processes: int = 1
    settings: list[Task[Any]] = field(default_factory=list)
    """The tasks that every process has had."""
    dropped: list[Member] = field(default_factory=list)
    """Processes that are ending, as their tasks took too long."""

    @classmethod
    def start(cls, options: Options) -> Self:
        """Start the first process only: others would slow down its start."""
        own = (options.folder, options.edition)
        rest = (str(option or "") for option in (options.timeout, options.log, *own))
        command = (MEMBER, options.backend, options.profile, str(options.seed), *rest)
        return cls([Member.start(*command, task=SAY_HELLO)], command)

    def hello(self, processes: int) -> Hello:
        """Start the other processes; returns the hello. BackendError where it does not start."""
        if self.backend_hello is None:
            self.backend_hello = self.members[0].answer(SAY_HELLO)
        self.processes = max(processes, len(self.members))
        self._fill()
        return self.backend_hello

    def ask(self, task: Task[A]) -> A:
        """The answer of the first process to a task."""
        self._fill()
        return self.members[0].ask(task)

    def ask_all(self, task: Task[Any]) -> None:
        """Send a task to every process, and wait for all."""
        for member in self.members:
            member.send(task)
        for member in self.members:
            member.answer(task)
        self.settings.append(task)

    def answers(self, tasks: Iterator[Task[A]], deadline: float | None = None) -> Iterator[A]:
        """Yield answers as they come.

        At the deadline (by time.monotonic) no task starts any more. What is not answered soon after
        it is dropped, with its process.
        """
        self._fill()
        for member in self.members:
            if member.task is None:
                _next(member, tasks, deadline)
        while busy := {m.process.replies: m for m in self.members if m.task is not None}:
            wait = None if deadline is None else max(0.0, deadline + GRACE - time.monotonic())
            ready = select.select(list(busy), [], [], wait)[0]
            if not ready:
                self._drop(busy.values())
                return
            for member in map(busy.__getitem__, ready):
                task = member.task
                assert task is not None
                if task is SAY_HELLO:
                    member.begin()
                    _next(member, tasks, deadline)
                    continue
                answer = member.answer(task)
                _next(member, tasks, deadline)
                yield answer

    def end(self) -> None:
        every = [*self.members, *self.dropped]
        for member in every:
            member.process.terminate()
        for member in every:
            member.process.end()

    def _drop(self, members: Iterable[Member]) -> None:
        """End processes that have a task, without waiting for them."""
        for member in members:
            if member.task is not SAY_HELLO:
                member.process.terminate()
                self.members.remove(member)
                self.dropped.append(member)

    def _fill(self) -> None:
        """Start the processes that are missing."""
        for _ in range(len(self.members), self.processes):
            member = Member.start(*self.command, task=SAY_HELLO)
            member.settings = tuple(self.settings)
            self.members.append(member)


def _next(member: Member, tasks: Iterator[Task[Any]], deadline: float | None) -> None:
    is_over = deadline is not None and time.monotonic() >= deadline
    task = None if is_over else next(tasks, None)
    if task is not None:
        member.send(task)
