"""Runs a backend in its own process: a crash, a hang or a leak becomes a problem of a program."""

from __future__ import annotations

import signal
import subprocess
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from uop.conformance.protocol import types, wire
from uop.conformance.protocol.untrusted import sanitized
from uop.conformance.workers.forked import SERVE
from uop.conformance.workers.processes import Module, Workplace, how_it_ended
from uop.conformance.workers.watch import Patience, Watch, kills
from uop.spec.errors import BackendError, ChangedError

STDERR_SHOWN = 400

Reply = TypeVar("Reply", wire.Ran, wire.Lowered, wire.Located)


LOSSES = 3
"""So often a program must be lost to be charged: the last times alone, in a new process."""
KILLS = 4
"""The same where nobody here has killed the process."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The time and memory that a backend may use, and how often it may be restarted.

    The seconds are those of `Patience`: with `is_wall` those of a clock.
    """

    start_seconds: float = 60.0
    batch_seconds: float = 30.0
    program_seconds: float = 1.0
    bytes: int = 2 << 30
    restarts: int = 40
    is_wall: bool = False

    @classmethod
    def within(cls, seconds: float | None) -> Allowance:
        """Allow these seconds for a start, a program of a command, or a batch of an adapter."""
        if seconds is None:
            return cls()
        return cls(seconds, seconds, program_seconds=0.0, is_wall=True)

    def seconds(self, programs: int) -> float:
        return self.batch_seconds + self.program_seconds * programs


class Session(Protocol):
    """A started backend. `submit` sends programs, `collect` waits for their outcomes."""

    @property
    def hello(self) -> types.Hello: ...

    @property
    def peak(self) -> int:
        """Its peak memory in bytes, as far as it was measured."""

    @property
    def retried(self) -> int:
        """How often it was lost on programs of which none is lost alone."""

    @property
    def fired(self) -> Mapping[str, int]:
        """For each rule the number of programs it fired in, of the last `collect`."""

    def submit(self, programs: Sequence[types.Program]) -> None: ...

    def collect(self) -> list[types.Outcome]: ...

    def explain(self, program: types.Program, is_right: types.IsRight) -> str:
        """Details from the backend on a program with a wrong outcome; empty if it has none."""

    def expecting_losses(self) -> AbstractContextManager[None]:
        """Inside of it the backend may be lost as often as in a whole session."""

    def close(self) -> None: ...


class Local:
    """A backend in this process, for tests and for trusted backends."""

    def __init__(self, backend: types.Backend) -> None:
        self.backend = backend
        self.hello = backend.hello()
        self.submitted: tuple[types.Program, ...] = ()
        self.peak = self.retried = 0
        self.fired: Mapping[str, int] = {}

    def submit(self, programs: Sequence[types.Program]) -> None:
        self.submitted = tuple(programs)

    def collect(self) -> list[types.Outcome]:
        return list(self.backend.run(self.submitted))

    def explain(self, program: types.Program, is_right: types.IsRight) -> str:
        """Nothing is shown."""
        return ""

    def expecting_losses(self) -> AbstractContextManager[None]:
        """Nothing to lose."""
        return nullcontext()

    def close(self) -> None:
        """Nothing to end."""


class LostError(Exception):
    """The process crashed, hung or leaked while it had programs.

    `was_killed`: by a signal that nobody here has sent, as the system does for want of memory.
    """

    def __init__(self, kind: types.ProblemKind, message: str, *, was_killed: bool = False) -> None:
        self.problem, self.was_killed = types.Problem(kind, message), was_killed
        super().__init__(self.problem.message)


class Isolated(ABC):
    """A backend in its own process, which is started again whenever it is lost.

    BackendError where it cannot be started, or has been lost too often.
    """

    def __init__(self, name: str, place: Workplace, allowance: Allowance | None) -> None:
        self.name, self.place = name, place
        self.allowance = allowance or Allowance()
        self.starts, self.retried, self.resident_at_start, self.around = 1, 0, 0, 0
        self.is_expecting_losses = False
        self.submitted: tuple[types.Program, ...] = ()
        self.fired: Counter[str] = Counter()
        self.watch = Watch(0)
        place.folder.mkdir(parents=True, exist_ok=True)
        self.hello = self._start()

    @abstractmethod
    def close(self) -> None:
        """End the process."""

    def restart(self) -> None:
        """End the process and start it again. BackendError where it has been lost too often."""
        if self.starts > self.allowance.restarts:
            self.close()
            raise BackendError(f"backend {self.name!r} was lost {self.starts} times")
        self.starts += 1
        self._renew()

    def _renew(self) -> None:
        """End the process and start it again. ChangedError where it is another backend then."""
        self.close()
        before, now = self.hello, self._start()
        if now != before:
            self.close()
            raise ChangedError(f"after a restart: expected {_who(before)}, found {_who(now)}")

    @contextmanager
    def expecting_losses(self) -> Iterator[None]:
        """Count losses from 0 inside of it, and not behind it; one loss of a program is enough."""
        starts, self.starts = self.starts, 0
        before, self.is_expecting_losses = self.is_expecting_losses, True
        try:
            yield
        finally:
            self.starts, self.is_expecting_losses = starts, before

    def patient(self, seconds: float) -> Patience:
        """The time of its processes for an answer."""
        return Patience(self.watch, seconds, self.allowance.is_wall)

    def settled(self, program: types.Program, lost: LostError) -> types.Outcome:
        """The outcome of a program that was lost, of a process that has been started again.

        It is lost only if it is so alone in new processes too. Where the system has killed it each
        time, for want of memory that it has not taken itself, it is not judged.
        """
        if self.is_expecting_losses or lost.problem.kind not in types.LOST:
            return lost.problem
        before = kills()
        killed, losses = int(lost.was_killed), int(not lost.was_killed)
        while killed < KILLS and losses < LOSSES:
            try:
                return self.once(program)
            except LostError as error:
                lost = error
                killed, losses = killed + lost.was_killed, losses + (not lost.was_killed)
                self._renew()
        has_grown = self.watch.peak - self.around - self.resident_at_start > self.allowance.bytes
        if not lost.was_killed or kills() == before or has_grown:
            return lost.problem
        message = f"the system killed the process {killed} times, as no memory was left"
        return types.Problem(types.ProblemKind.KILLED, message)

    def note_retry(self, outcomes: Sequence[types.Outcome]) -> None:
        """Count programs that were run again if none of them is lost now."""
        kinds = {outcome.kind for outcome in outcomes if isinstance(outcome, types.Problem)}
        self.retried += not kinds & (types.LOST | {types.ProblemKind.KILLED})

    def _start(self) -> types.Hello:
        """Start the process, again if it is killed. BackendError where it does not start."""
        for _ in range(KILLS):
            self._open()
            with ExitStack() as undo:
                # SIGTERM may raise SystemExit here.
                undo.callback(self.close)
                try:
                    hello = self._read_hello()
                except LostError as error:
                    lost = error
                else:
                    undo.pop_all()
                    return hello
            if not lost.was_killed:
                break
        raise BackendError(f"backend {self.name!r} did not start: {lost}")

    @abstractmethod
    def once(self, program: types.Program) -> types.Outcome:
        """Run one program. LostError where the process is lost."""

    @abstractmethod
    def _open(self) -> None:
        """Start a process."""

    @abstractmethod
    def _read_hello(self) -> types.Hello:
        """Read the hello of the process. LostError, or BackendError, where there is none."""


class Worker(Isolated):
    """An adapter in Python, in a process that runs `serve`."""

    def __init__(
        self,
        name: str,
        place: Workplace,
        allowance: Allowance | None = None,
        module: Sequence[str] = (SERVE,),
    ) -> None:
        self.command = (*module, name)
        self.pending_loss: LostError | None = None
        self.resident = self.peak = 0
        super().__init__(name, place, allowance)

    def submit(self, programs: Sequence[types.Program]) -> None:
        self.submitted, self.pending_loss = tuple(programs), None
        try:
            self._send(self.submitted)
        except LostError as lost:
            self.pending_loss = lost

    def collect(self) -> list[types.Outcome]:
        self.fired.clear()
        try:
            if self.pending_loss is not None:
                raise self.pending_loss
            return self._receive(self.submitted)
        except LostError as lost:
            outcomes = self._after_loss(self.submitted, lost)
            self.note_retry(outcomes)
            return outcomes

    def once(self, program: types.Program) -> types.Outcome:
        self._send((program,))
        (outcome,) = self._receive((program,))
        return outcome

    def explain(self, program: types.Program, is_right: types.IsRight) -> str:
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
            located = f"{types.BLAMED}what runs it: {lost}"
        return "\n".join(filter(None, [stage, located]))

    def close(self) -> None:
        self.process.kill()

    def _after_loss(
        self, programs: tuple[types.Program, ...], lost: LostError
    ) -> list[types.Outcome]:
        """Restart, and find the programs that cost the process by bisection.

        After a hang run one program at a time: each half with a hanging one would time out again.
        """
        self.restart()
        if len(programs) == 1:
            return [self.settled(programs[0], lost)]
        size = 1 if lost.problem.kind is types.ProblemKind.HANG else -(-len(programs) // 2)
        parts = [programs[k : k + size] for k in range(0, len(programs), size)]
        return [outcome for part in parts for outcome in self._of_part(part)]

    def _of_part(self, programs: tuple[types.Program, ...]) -> list[types.Outcome]:
        try:
            self._send(programs)
            return self._receive(programs)
        except LostError as lost:
            return self._after_loss(programs, lost)

    def _send(self, programs: tuple[types.Program, ...]) -> None:
        limit = self.allowance.seconds(len(programs))
        self.patience = self.patient(limit)
        try:
            self.process.write(wire.Run(programs, limit))
        except wire.ClosedError:
            raise self._crashed() from None

    def _receive(self, programs: tuple[types.Program, ...]) -> list[types.Outcome]:
        ran = self._reply(wire.Ran)
        if len(ran.outcomes) != len(programs):
            message = f"{len(ran.outcomes)} outcomes for {len(programs)} programs"
            raise LostError(types.ProblemKind.CRASH, message)
        self._check_memory(ran.resident)
        self.fired.update(ran.fired)
        return list(ran.outcomes)

    def _reply(self, kind: type[Reply]) -> Reply:
        """A message of the process. LostError where none comes in its time and memory."""
        try:
            return self.process.read(kind, left=self._left)
        except wire.LateError:
            message = f"no answer within {self.patience.seconds:g} s"
            raise LostError(types.ProblemKind.HANG, message) from None
        except wire.ClosedError:
            raise self._crashed() from None

    def _left(self) -> float:
        grown = self.watch.resident - self.around - self.resident
        if grown > self.allowance.bytes:
            raise LostError(types.ProblemKind.LEAK, f"holds {grown >> 20} MiB more than before")
        return self.patience.left()

    def _asked(self, question: wire.Lower | wire.Locate, kind: type[Reply]) -> Reply:
        """The answer to a question. LostError where none comes."""
        self.patience = self.patient(question.limit)
        try:
            self.process.write(question)
            return self._reply(kind)
        except wire.ClosedError:
            raise self._crashed() from None

    def _check_memory(self, resident: int) -> None:
        grown, self.resident = resident - self.resident, resident
        self.peak = max(self.peak, resident)
        if grown > self.allowance.bytes:
            raise LostError(
                types.ProblemKind.LEAK, f"kept {grown >> 20} MiB after its programs ended"
            )
        if resident - self.resident_at_start > self.allowance.bytes:
            self.restart()

    def _open(self) -> None:
        self.log = self.place.folder / f"stderr-{self.starts}"
        with self.log.open("wb") as log:
            variables = self.place.of_backend
            self.process = Module(*self.command, is_kept=True, environment=variables, stderr=log)
        self.watch = Watch(self.process.popen.pid)

    def _read_hello(self) -> types.Hello:
        limit = self.allowance.start_seconds
        try:
            message = self.process.read(wire.Started, left=self.patient(limit).left)
        except wire.LateError:
            raise LostError(types.ProblemKind.HANG, f"no hello within {limit:g} s") from None
        except wire.ClosedError:
            raise self._crashed() from None
        except wire.RefusedError as refused:
            why = sanitized(str(refused))
            raise refused.error(f"backend {self.name!r} did not start: {why}") from None
        self.resident = self.resident_at_start = message.resident
        # A keeper that is a fork of the same server counts what it shares.
        self.watch.look()
        self.around = max(0, self.watch.resident - message.resident)
        return message.hello

    def _crashed(self) -> LostError:
        code = None
        with suppress(subprocess.TimeoutExpired):
            code = self.process.popen.wait(timeout=1.0)
        message = f"the process {how_it_ended(code)}"
        stderr = self.log.read_text("utf-8", "replace").strip()[-STDERR_SHOWN:]
        if stderr:
            # The last line of a traceback is the error.
            message += f": {stderr.splitlines()[-1]}\n{stderr}"
        return LostError(types.ProblemKind.CRASH, message, was_killed=code == -signal.SIGKILL)


def _who(hello: types.Hello) -> str:
    return f"{hello.name} {hello.version} on {hello.device or 'no device'}"
