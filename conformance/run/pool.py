"""The processes that judge, seen from the run: each takes one task at a time and answers it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

from uop.conformance.protocol import wire
from uop.conformance.protocol.types import Hello
from uop.conformance.run.options import Options
from uop.conformance.suite.case import CaseId
from uop.spec.errors import BackendError, PassError

if TYPE_CHECKING:
    from uop.conformance.profile.card import Card
    from uop.conformance.suite.vocabulary import Vocabulary

Task = wire.Json
Answer = wire.Json
CARD: Task = {"card": True}
"""The task whose answer is the card of the backend."""
GREETING: Task = {"hello": True}
"""What every process answers first, unasked."""
CHUNKS = (4, 8, 16)
"""Sizes of the first tasks, for an early first result; then as many as the backend takes."""
PATIENCE = 5.0
MEMBER = "uop.conformance.run.pool_member"
"""The module that a judging process runs."""


@dataclass(slots=True, eq=False)
class Member:
    """One judging process, and the task it is at."""

    process: subprocess.Popen[bytes]
    requests: int
    replies: int
    task: Task | None = None

    @classmethod
    def start(cls, *command: str) -> Member:
        """A process of the module that the command names, with its arguments."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is for the run, which still wants to hear of finished cases.
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        return cls(process, process.stdin.fileno(), process.stdout.fileno())

    def ask(self, task: Task) -> None:
        self.task = task
        try:
            wire.write(self.requests, wire.Packer().frame(task))
        except wire.ClosedError:
            raise self._ended() from None

    def answer(self) -> Answer:
        """The answer to the task; BackendError where the backend is lost for good."""
        try:
            answer, _ = wire.read(self.replies)
        except wire.ClosedError:
            raise self._ended() from None
        self.task = None
        if "lost" in answer:
            raise BackendError(answer["lost"])
        return answer

    def end(self) -> None:
        """Let it end its worker and itself."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _ended(self) -> PassError:
        code = self.process.wait()
        return PassError(f"a judging process of the suite ended with exit code {code}")


@dataclass(slots=True, eq=False)
class Pool:
    """Judging processes that share tasks. Those of a run are all of one command."""

    members: list[Member]
    command: tuple[str, ...] = ()
    greeting: Hello | None = None
    """What the backend said of itself, once it has."""

    @classmethod
    def start(cls, options: Options) -> Pool:
        """The first process; the others would only slow it down until it has begun."""
        timeout = "" if options.timeout is None else str(options.timeout)
        log = "" if options.log is None else str(options.log)
        told = (options.backend, options.profile, str(options.seed), timeout, log)
        command = (MEMBER, *told, "" if options.folder is None else str(options.folder))
        return cls([_judging(command)], command)

    def hello(self, processes: int) -> Hello:
        """Who is judged, by so many processes. BackendError where the backend does not start."""
        if self.greeting is None:
            self.greeting = wire.hello_from_json(self.members[0].answer()["hello"])
        self.members += [_judging(self.command) for _ in range(len(self.members), processes)]
        return self.greeting

    def card(self) -> Card:
        """What the backend does where the spec leaves a choice."""
        from uop.conformance.profile.card import card_from_json  # the processes start without it

        self.members[0].ask(CARD)
        return card_from_json(self.members[0].answer()["card"])

    def judge_by(self, profile: str, vocabulary: Vocabulary) -> None:
        """Take this profile, and draw random programs from this vocabulary."""
        for member in self.members:
            if member.task is GREETING:
                member.answer()
            member.ask({"profile": profile, "vocabulary": vocabulary.to_json()})
        for member in self.members:
            member.answer()

    def answers(
        self, tasks: Iterator[Task], keep_on: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Each task with its answer, as they come; no new task once `keep_on` says no."""
        for member in self.members:
            if member.task is not GREETING:
                self._next(member, tasks, keep_on)
        while busy := {
            member.replies: member for member in self.members if member.task is not None
        }:
            for ready in select.select(list(busy), [], [])[0]:
                member, task = busy[ready], busy[ready].task
                answer = member.answer()
                self._next(member, tasks, keep_on)
                if task is not None and task is not GREETING:
                    yield task, answer

    def end(self) -> None:
        for member in self.members:
            if member.process.poll() is None:
                member.process.send_signal(signal.SIGTERM)
        for member in self.members:
            member.end()

    def _next(self, member: Member, tasks: Iterator[Task], keep_on: Callable[[], bool]) -> None:
        task = next(tasks, None) if keep_on() else None
        if task is not None:
            member.ask(task)


def tasks_of(ids: Iterable[CaseId], size: int) -> Iterator[Task]:
    """Cases to judge, in so many tasks that no judge waits long for the first or the last one."""
    rest = iter([str(id) for id in ids])
    sizes = chain((min(n, size) for n in CHUNKS), repeat(size))
    while chunk := list(islice(rest, next(sizes))):
        yield {"ids": chunk}


def _judging(command: tuple[str, ...]) -> Member:
    member = Member.start(*command)
    member.task = GREETING
    return member
