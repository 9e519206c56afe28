"""Runs the pool of judging processes: sends each one task at a time and reads its answer."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

import psutil

from uop.conformance.protocol import wire
from uop.conformance.protocol.types import Hello
from uop.conformance.run.options import Options
from uop.conformance.workers import forked
from uop.conformance.workers.processes import Module, Workplace, how_it_ended, workplace
from uop.spec.errors import JudgeLostError

A = TypeVar("A")
GRACE = 1.0
"""The seconds after a deadline in which a task that has begun may end."""
DEATHS = 3
"""So many processes may end on one task."""
MOST_BYTES = 768 << 20
"""A judging process that holds more after a task is replaced."""


class Task(Generic[A]):
    """A message to a process of the pool; `answer` is the type of its reply."""

    __slots__ = ()
    answer: type[A]

    def without_process(self, why: str) -> tuple[Sequence[Task[A]], A | None]:
        """What becomes of it where every process ends on it: its parts, or its answer, if any."""
        return (), None


class SayHello(Task[Hello]):
    """The first task of every judging process, which it answers without a message."""

    __slots__ = ()
    answer = Hello


SAY_HELLO = SayHello()


class EndedError(Exception):
    """A process of the pool has ended before its answer: says how."""


@dataclass(slots=True, eq=False)
class Member:
    """A process of the pool, and its current task."""

    process: Module
    task: Task[Any] | None = None
    deaths: int = 0
    """How many processes have ended on this task before."""
    settings: Sequence[Task[Any]] = ()
    """The tasks that come before all others."""

    @classmethod
    def start(
        cls, *command: str, task: Task[Any] | None = None, place: Workplace | None = None
    ) -> Member:
        """Start a module, the first word of the command, with the other words as arguments."""
        return cls(Module(*command, environment=place.environment if place else None), task)

    def ask(self, task: Task[A]) -> A:
        """Send a task and wait for its answer. Raises the errors of `answer`."""
        self.send(task)
        return self.answer(task)

    def begin(self) -> None:
        """Wait for the hello, then send the settings."""
        self.answer(SAY_HELLO)
        for setting in self.settings:
            self.ask(setting)

    def send(self, task: Task[Any], deaths: int = 0) -> None:
        if self.task is SAY_HELLO:
            self.begin()
        self.task, self.deaths = task, deaths
        try:
            self.process.write(task)
        except wire.ClosedError:
            raise self._ended() from None

    def answer(self, task: Task[A]) -> A:
        """Wait for the answer to the current task.

        EndedError where the process ends first, BackendError where the backend is lost for good.
        """
        try:
            answer = self.process.read(task.answer)
        except wire.ClosedError:
            raise self._ended() from None
        except wire.RefusedError as refused:
            raise refused.error(str(refused)) from None
        self.task = None
        return answer

    def _ended(self) -> EndedError:
        return EndedError(how_it_ended(self.process.popen.wait()))


@dataclass(slots=True, eq=False)
class Pool:
    """Processes that share tasks. All judging processes of a run have the same command.

    One that is killed, or that holds too much, is replaced; its task is sent again.
    """

    command: tuple[str, ...]
    place: Workplace
    last: ExitStack
    """Ends the workplace."""
    members: list[Member] = field(default_factory=list)
    backend_hello: Hello | None = None
    """The hello of the backend, once it has come."""
    processes: int = 1
    first: Task[Any] | None = SAY_HELLO
    """What each process answers without a message."""
    settings: list[Task[Any]] = field(default_factory=list)
    """The tasks that every process has had."""
    dropped: list[Member] = field(default_factory=list)
    """Processes that are ending, as their tasks took too long or they held too much."""
    deaths: int = 0
    """How many processes in a row have ended before they could do anything."""
    peak: int = 0
    """The most bytes that a process held after a task."""
    replaced: int = 0
    """How many processes were replaced as they held too much."""

    @classmethod
    def start(cls, options: Options) -> Self:
        """Start the first process only: others would slow down its start."""
        own = (options.folder, options.edition)
        rest = (str(option or "") for option in (options.timeout, options.log, *own))
        return cls.of(forked.MEMBER, options.backend, options.profile, str(options.seed), *rest)

    @classmethod
    def of(cls, *command: str, processes: int = 1, first: Task[Any] | None = SAY_HELLO) -> Self:
        """Start processes of a module, the first word of the command."""
        with ExitStack() as last:
            place = last.enter_context(workplace())
            pool = cls(command, place, last.pop_all(), processes=processes, first=first)
        if not (command[0] in forked.MODULES and forked.prepare()):
            pool._fill()
        return pool

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def hello(self, processes: int) -> Hello:
        """Start the other processes; returns the hello. BackendError where it does not start."""
        if self.backend_hello is None:
            self.backend_hello = self._retried(lambda member: member.answer(SAY_HELLO))
        self.processes = max(processes, len(self.members))
        self._fill()
        return self.backend_hello

    def ask(self, task: Task[A]) -> A:
        """The answer of the first process to a task. JudgeLostError where each ends on it."""
        return self._retried(lambda member: member.ask(task))

    def ask_all(self, task: Task[Any]) -> None:
        """Send a task to every process, and wait for all."""
        self.settings.append(task)
        every = list(self.members)
        for member in every:
            with suppress(EndedError):
                member.send(task)
        for member in every:
            try:
                member.answer(task)
            except EndedError:
                # The one in its place begins with this task.
                self._remove(member)

    def answers(self, tasks: Iterator[Task[A]], deadline: float | None = None) -> Iterator[A]:
        """Yield answers as they come.

        At the deadline (by time.monotonic) no task starts any more. What is not answered soon after
        it is dropped, with its process. A task on which several processes have ended is split, or
        has the answer that it names for that.
        """
        queue = _Queue(tasks, deadline)
        self._fill()
        for member in self.members:
            if member.task is None:
                self._next(member, queue)
        while busy := {m.process.replies: m for m in self.members if m.task is not None}:
            wait = None if deadline is None else max(0.0, deadline + GRACE - time.monotonic())
            ready = select.select(list(busy), [], [], wait)[0]
            if not ready:
                self._drop(busy.values())
                return
            for member in map(busy.__getitem__, ready):
                task = member.task
                assert task is not None
                try:
                    if task is SAY_HELLO:
                        member.begin()
                    else:
                        answer = member.answer(task)
                except EndedError as ended:
                    yield from self._after_death(member, queue, ended)
                    continue
                self.deaths = 0
                # What a process holds from its start the next one would hold too.
                self._next(member if task is SAY_HELLO else self._light(member), queue)
                if task is not SAY_HELLO:
                    yield answer

    def end(self) -> None:
        every = [*self.members, *self.dropped]
        for member in every:
            member.process.terminate()
        for member in every:
            member.process.end()
        self.last.close()

    def _retried(self, ask: Callable[[Member], A]) -> A:
        """What the first process answers, or another one in its place."""
        for _ in range(DEATHS):
            self._fill()
            try:
                return ask(self.members[0])
            except EndedError as ended:
                self._remove(self.members[0])
                how = ended
        raise JudgeLostError(f"a judging process of the suite {how}, {DEATHS} times")

    def _after_death(self, member: Member, queue: _Queue[A], ended: EndedError) -> Iterator[A]:
        """Replace a process; its task comes again, is split, or has its answer without a process.

        JudgeLostError where processes end before they do anything.
        """
        task = member.task
        self._remove(member)
        if task is SAY_HELLO:
            self.deaths += 1
        elif task is not None and member.deaths + 1 < DEATHS:
            queue.again.append((task, member.deaths + 1))
        elif task is not None:
            parts, answer = task.without_process(f"the judging process {ended} {DEATHS} times")
            queue.again += [(part, 0) for part in parts]
            if answer is not None:
                yield answer
        if self.deaths > DEATHS * self.processes:
            message = f"judging processes of the suite end at their start: the last {ended}"
            raise JudgeLostError(message)
        self._fill()
        self._next(self.members[-1], queue)

    def _next(self, member: Member, queue: _Queue[A]) -> None:
        """Send the next task; where the process has ended, that shows in its answer."""
        if member.task is SAY_HELLO:
            return
        task, deaths = queue.next()
        if task is not None:
            with suppress(EndedError):
                member.send(task, deaths)

    def _light(self, member: Member) -> Member:
        """The process, or another one in its place where it holds too much."""
        held = 0
        with suppress(psutil.Error):
            held = psutil.Process(member.process.popen.pid).memory_info().rss
        self.peak = max(self.peak, held)
        if held <= MOST_BYTES:
            return member
        self.replaced += 1
        self._drop([member])
        self._fill()
        return self.members[-1]

    def _drop(self, members: Iterable[Member]) -> None:
        """End processes that have begun, without waiting for them."""
        for member in members:
            if member.task is not SAY_HELLO:
                member.process.terminate()
                self.members.remove(member)
                self.dropped.append(member)

    def _remove(self, member: Member) -> None:
        """Remove a process that has ended, and what it has left."""
        self.members.remove(member)
        member.process.kill()

    def _fill(self) -> None:
        """Start the processes that are missing."""
        for _ in range(len(self.members), self.processes):
            member = Member.start(*self.command, task=self.first, place=self.place)
            member.settings = tuple(self.settings)
            self.members.append(member)


@dataclass(slots=True, eq=False)
class _Queue(Generic[A]):
    """The tasks that are left: those that come again, with how many processes ended on each."""

    tasks: Iterator[Task[A]]
    deadline: float | None
    again: list[tuple[Task[A], int]] = field(default_factory=list)

    def next(self) -> tuple[Task[A] | None, int]:
        """The next task; None at the end, or where the time is over."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return None, 0
        return self.again.pop() if self.again else (next(self.tasks, None), 0)
