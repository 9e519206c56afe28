"""Runs a backend in its own process: a crash, a hang or a leak becomes a problem of a program."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from uop.conformance.protocol import wire
from uop.conformance.protocol.types import (
    BLAMED,
    LOST,
    Backend,
    Hello,
    IsRight,
    Outcome,
    Problem,
    ProblemKind,
    Program,
)
from uop.conformance.protocol.untrusted import sanitized
from uop.conformance.workers.processes import Module, environment, how_it_ended
from uop.spec.errors import BackendError

SERVE = "uop.conformance.workers.serve"
"""The module that the process of a backend runs."""
STDERR_SHOWN = 400

Reply = TypeVar("Reply", wire.Ran, wire.Lowered, wire.Located)


@dataclass(frozen=True, slots=True)
class Allowance:
    """The time and memory that a backend may use, and how often it may be restarted."""

    start_seconds: float = 60.0
    batch_seconds: float = 30.0
    program_seconds: float = 1.0
    bytes: int = 2 << 30
    restarts: int = 40

    @classmethod
    def within(cls, seconds: float | None) -> Allowance:
        """Allow these seconds for a start, a program of a command, or a batch of an adapter."""
        if seconds is None:
            return cls()
        return cls(start_seconds=seconds, batch_seconds=seconds, program_seconds=0.0)

    def seconds(self, programs: int) -> float:
        return self.batch_seconds + self.program_seconds * programs


class Session(Protocol):
    """A started backend. `submit` sends programs, `collect` waits for their outcomes."""

    @property
    def hello(self) -> Hello: ...

    @property
    def peak(self) -> int:
        """Its peak memory in bytes, as far as it was measured."""

    @property
    def fired(self) -> Mapping[str, int]:
        """For each rule the number of programs it fired in, of the last `collect`."""

    def submit(self, programs: Sequence[Program]) -> None: ...

    def collect(self) -> list[Outcome]: ...

    def explain(self, program: Program, is_right: IsRight) -> str:
        """Details from the backend on a program with a wrong outcome; empty if it has none."""

    def expecting_losses(self) -> AbstractContextManager[None]:
        """Inside of it the backend may be lost as often as in a whole session."""

    def close(self) -> None: ...


class Local:
    """A backend in this process, for tests and for trusted backends."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.hello = backend.hello()
        self.submitted: tuple[Program, ...] = ()
        self.peak = 0
        self.fired: Mapping[str, int] = {}

    def submit(self, programs: Sequence[Program]) -> None:
        self.submitted = tuple(programs)

    def collect(self) -> list[Outcome]:
        return list(self.backend.run(self.submitted))

    def explain(self, program: Program, is_right: IsRight) -> str:
        """Nothing is shown."""
        return ""

    def expecting_losses(self) -> AbstractContextManager[None]:
        """Nothing to lose."""
        return nullcontext()

    def close(self) -> None:
        """Nothing to end."""


class LostError(Exception):
    """The process crashed, hung or leaked while it had programs."""

    def __init__(self, kind: ProblemKind, message: str) -> None:
        self.problem = Problem(kind, message)
        super().__init__(self.problem.message)


class Isolated(ABC):
    """A backend in its own process, which is started again whenever it is lost.

    BackendError where it cannot be started, or has been lost too often.
    """

    def __init__(self, name: str, folder: Path, allowance: Allowance | None) -> None:
        self.name, self.folder = name, folder
        self.allowance = allowance or Allowance()
        self.starts = self.resident_at_start = 0
        self.submitted: tuple[Program, ...] = ()
        self.fired: Counter[str] = Counter()
        folder.mkdir(parents=True, exist_ok=True)
        self.hello = self._start()

    @abstractmethod
    def close(self) -> None:
        """End the process."""

    def restart(self) -> None:
        """End the process and start it again. BackendError where it has been lost too often."""
        self.close()
        if self.starts > self.allowance.restarts:
            raise BackendError(f"backend {self.name!r} was lost {self.starts} times")
        self._start()

    @contextmanager
    def expecting_losses(self) -> Iterator[None]:
        """Count losses from 0 inside of it, and not behind it."""
        starts, self.starts = self.starts, 0
        try:
            yield
        finally:
            self.starts = starts

    def _start(self) -> Hello:
        self.starts += 1
        self._open()
        with ExitStack() as undo:
            # SIGTERM may raise SystemExit here.
            undo.callback(self.close)
            hello = self._read_hello()
            undo.pop_all()
        return hello

    @abstractmethod
    def _open(self) -> None:
        """Start a process."""

    @abstractmethod
    def _read_hello(self) -> Hello:
        """Read the hello of the process. BackendError where there is none."""


class Worker(Isolated):
    """An adapter in Python, in a process that runs `serve`."""

    def __init__(
        self,
        name: str,
        folder: Path,
        allowance: Allowance | None = None,
        module: Sequence[str] = (SERVE,),
    ) -> None:
        self.command = (*module, name)
        self.pending_loss: LostError | None = None
        self.resident = self.peak = 0
        super().__init__(name, folder, allowance)

    def submit(self, programs: Sequence[Program]) -> None:
        self.submitted, self.pending_loss = tuple(programs), None
        try:
            self._send(self.submitted)
        except LostError as lost:
            self.pending_loss = lost

    def collect(self) -> list[Outcome]:
        self.fired.clear()
        try:
            if self.pending_loss is not None:
                raise self.pending_loss
            return self._receive(self.submitted)
        except LostError as lost:
            return self._after_loss(self.submitted, lost)

    def explain(self, program: Program, is_right: IsRight) -> str:
        """The first of its stages that is wrong, and in it the rule, where it offers stages."""
        if "stages" not in self.hello.offers:
            return ""
        from uop.conformance.protocol.offers import first_wrong_stage  # slow to import

        limit = self.allowance.seconds(1)
        try:
            lowered = self._asked(wire.Lower(program, limit), wire.Lowered)
            stage = first_wrong_stage(lowered.stages, program, is_right)
        except LostError as lost:
            self.restart()
            return f"its stages: {lost}"
        if not lowered.locates:
            return stage
        try:
            located = sanitized(self._asked(wire.Locate(program, limit), wire.Located).text)
        except LostError as lost:
            self.restart()
            located = f"{BLAMED}what runs it: {lost}"
        return "\n".join(filter(None, [stage, located]))

    def close(self) -> None:
        self.process.kill()

    def _after_loss(self, programs: tuple[Program, ...], lost: LostError) -> list[Outcome]:
        """Restart, and find the programs that cost the process by bisection.

        After a hang run one program at a time: each half with a hanging one would time out again.
        """
        self.restart()
        if len(programs) == 1:
            return [lost.problem]
        size = 1 if lost.problem.kind is ProblemKind.HANG else -(-len(programs) // 2)
        parts = [programs[k : k + size] for k in range(0, len(programs), size)]
        outcomes = [outcome for part in parts for outcome in self._alone(part)]
        if not any(isinstance(o, Problem) and o.kind in LOST for o in outcomes):
            together = f"{lost} (on {len(programs)} programs together, not on fewer)"
            outcomes[0] = Problem(lost.problem.kind, together)
        return outcomes

    def _alone(self, programs: tuple[Program, ...]) -> list[Outcome]:
        try:
            self._send(programs)
            return self._receive(programs)
        except LostError as lost:
            return self._after_loss(programs, lost)

    def _send(self, programs: tuple[Program, ...]) -> None:
        limit = self.allowance.seconds(len(programs))
        self.deadline = time.monotonic() + limit
        try:
            self.process.write(wire.Run(programs, limit))
        except wire.ClosedError:
            raise self._crashed() from None

    def _receive(self, programs: tuple[Program, ...]) -> list[Outcome]:
        ran = self._reply(wire.Ran, self.deadline, self.allowance.seconds(len(programs)))
        if len(ran.outcomes) != len(programs):
            message = f"{len(ran.outcomes)} outcomes for {len(programs)} programs"
            raise LostError(ProblemKind.CRASH, message)
        self._check_memory(ran.resident)
        self.fired.update(ran.fired)
        return list(ran.outcomes)

    def _reply(self, kind: type[Reply], deadline: float, limit: float) -> Reply:
        """A message of the process. LostError where none comes within the limit."""
        try:
            return self.process.read(kind, deadline=deadline)
        except wire.LateError:
            raise LostError(ProblemKind.HANG, f"no answer within {limit:g} s") from None
        except wire.ClosedError:
            raise self._crashed() from None

    def _asked(self, question: wire.Lower | wire.Locate, kind: type[Reply]) -> Reply:
        """The answer to a question. LostError where none comes."""
        try:
            self.process.write(question)
            return self._reply(kind, time.monotonic() + question.limit, question.limit)
        except wire.ClosedError:
            raise self._crashed() from None

    def _check_memory(self, resident: int) -> None:
        grown, self.resident = resident - self.resident, resident
        self.peak = max(self.peak, resident)
        if grown > self.allowance.bytes:
            raise LostError(ProblemKind.LEAK, f"kept {grown >> 20} MiB after its programs ended")
        if resident - self.resident_at_start > self.allowance.bytes:
            self.restart()

    def _open(self) -> None:
        self.log = self.folder / f"stderr-{self.starts}"
        with self.log.open("wb") as log:
            variables = environment(self.folder)
            self.process = Module(*self.command, environment=variables, stderr=log)

    def _read_hello(self) -> Hello:
        limit, started = self.allowance.start_seconds, f"backend {self.name!r} did not start"
        try:
            message = self.process.read(wire.Started, deadline=time.monotonic() + limit)
        except wire.LateError:
            raise BackendError(f"{started}: no hello within {limit:g} s") from None
        except wire.ClosedError:
            raise BackendError(f"{started}: {self._crashed()}") from None
        except wire.RefusedError as refused:
            raise BackendError(f"{started}: {sanitized(str(refused))}") from None
        self.resident = self.resident_at_start = message.resident
        return message.hello

    def _crashed(self) -> LostError:
        how = how_it_ended(self._exit_code())
        stderr = self.log.read_text("utf-8", "replace").strip()[-STDERR_SHOWN:]
        if not stderr:
            return LostError(ProblemKind.CRASH, f"the process {how}")
        # The last line of a traceback is the error.
        return LostError(
            ProblemKind.CRASH, f"the process {how}: {stderr.splitlines()[-1]}\n{stderr}"
        )

    def _exit_code(self) -> int | None:
        try:
            return self.process.popen.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return None
