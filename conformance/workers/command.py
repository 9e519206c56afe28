"""Runs any executable as a backend: `command:./worker --option` answers JSON lines on stdio."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from uop.conformance.backends import NoSuchBackendError
from uop.conformance.backends.attempt import problem_of
from uop.conformance.checks import COMMAND
from uop.conformance.protocol import messages, offers, types
from uop.conformance.protocol.codec import Json
from uop.conformance.protocol.hello import DeviationError
from uop.conformance.protocol.lines import LineProcess
from uop.conformance.protocol.log import ProtocolLog
from uop.conformance.workers.processes import Workplace
from uop.conformance.workers.transport import Allowance, Isolated, LostError
from uop.spec.errors import BackendError, UopError
from uop.spec.uop import UOp

SMALL_REPLY = 1 << 20
LARGE_REPLY = 64 << 20


class Command(Isolated):
    """A worker that answers JSON lines, in any language."""

    def __init__(
        self,
        name: str,
        place: Workplace,
        allowance: Allowance | None = None,
        log: ProtocolLog | None = None,
    ) -> None:
        self.command, self.log = command_of(name), log
        self.request_id = self.peak_before = 0
        super().__init__(name, place, allowance)

    def submit(self, programs: Sequence[types.Program]) -> None:
        self.submitted = tuple(programs)

    def collect(self) -> list[types.Outcome]:
        outcomes = [self.run(program) for program in self.submitted]
        self.watch.look()
        if self.watch.resident - self.resident_at_start > self.allowance.bytes // 2:
            # It leaks a little with every program: that must not count against the next one.
            self.restart()
        return outcomes

    @property
    def peak(self) -> int:
        """The peak memory of its processes in bytes, over all restarts."""
        return max(self.peak_before, self.watch.peak)

    def close(self) -> None:
        self.process.close()
        self.peak_before = self.peak

    def run(self, program: types.Program) -> types.Outcome:
        """The outcome of one program, and what becomes of the process where that is lost."""
        try:
            return self.once(program)
        except LostError as lost:
            self.restart()
            outcome = self.settled(program, lost)
            self.note_retry([outcome])
            return outcome

    def once(self, program: types.Program) -> types.Outcome:
        """Run one program, or ask for a check where it has no inputs."""
        self.request_id += 1
        try:
            if not program.batches:
                return self._checked(messages.check_request(self.request_id, program, self.hello))
            request = messages.run_request(self.request_id, program, self.hello, self.place.folder)
            reply = self.ask(request, messages.largest_reply(request))
            outcome = messages.read_outputs(reply, len(program.batches), self.place.folder)
            outcome = messages.in_its_shapes(outcome, request, program)
            return self._with_last_words(self._with_properties(program, outcome))
        except DeviationError as error:
            return self._with_last_words(types.Problem(types.ProblemKind.PROTOCOL, str(error)))
        except UopError as error:
            return problem_of(error)
        except OSError as error:
            raise BackendError(f"{self.name}: no files for its arrays: {error.strerror}") from None
        finally:
            for path in self.place.folder.glob(f"input-{self.request_id}-*"):
                path.unlink()

    def explain(self, program: types.Program, is_right: types.IsRight) -> str:
        lines = []
        try:
            if "stages" in self.hello.offers:
                reply = self.reply_about("stages", program)
                stages = offers.stages_of(reply)
                lines.append(offers.first_wrong_stage(stages, program, is_right))
            if "source" in self.hello.offers:
                lines.append(offers.source(self.reply_about("source", program)))
        except LostError as lost:
            self.restart()
            lines.append(str(lost))
        except UopError as error:
            lines.append(str(error))
        return "\n".join(filter(None, lines))

    def ask(self, request: messages.Request, most: int = LARGE_REPLY) -> Json:
        """The reply to a request. LostError where there is none: the caller must then restart."""
        line, seconds = request.line, self.allowance.seconds(1)
        return self.process.ask(line, request.id, seconds, most, is_wall=self.allowance.is_wall)

    def as_read(self, program: types.Program) -> UOp:
        """The program as the worker reads the text that is sent for it."""
        return messages.in_words(program, self.hello).root

    def reply_about(self, do: str, program: types.Program) -> Json:
        """The reply to a request about a program. LostError, DeviationError."""
        self.request_id += 1
        reply = self.ask(messages.ask_request(self.request_id, do, program, self.hello))
        if "error" in reply:
            raise DeviationError(do, "what hello offers", messages.read_error(reply).message)
        return reply

    def _with_properties(self, program: types.Program, outcome: types.Outcome) -> types.Outcome:
        """The outcome, or a problem where the worker offers `props` and a property is wrong."""
        if "props" not in self.hello.offers or isinstance(outcome, types.Problem):
            return outcome
        reply = self.reply_about("props", program)
        wrong = offers.wrong_property(reply, self.as_read(program))
        return types.Problem(types.ProblemKind.PROPERTY, wrong) if wrong else outcome

    def _with_last_words(self, outcome: types.Outcome) -> types.Outcome:
        """The outcome; the message of an error gets the end of stderr."""
        if isinstance(outcome, types.Outputs) or outcome.kind is types.ProblemKind.UNSUPPORTED:
            return outcome
        lines = [outcome.message, *self.process.last_words()]
        return replace(outcome, message="; ".join(lines))

    def _checked(self, request: messages.Request) -> types.Outcome:
        reply = self.ask(request, SMALL_REPLY)
        if "error" in reply:
            return messages.read_error(reply)
        if reply.get("valid") is not True:
            raise DeviationError("reply", "valid: true, or an error", sorted(reply))
        return types.Outputs(())

    def _open(self) -> None:
        try:
            limit = self.allowance.bytes
            self.process = LineProcess(self.command, self.place, limit, self.log)
        except OSError as error:
            raise BackendError(f"cannot start {self.command[0]}: {error.strerror}") from None
        self.watch = self.process.watch

    def _read_hello(self) -> types.Hello:
        request = messages.hello_request(self.place.folder)
        seconds, is_wall = self.allowance.start_seconds, self.allowance.is_wall
        try:
            line, id = request.line, request.id
            reply = self.process.ask(line, id, seconds, SMALL_REPLY, is_wall=is_wall)
            if "error" in reply:
                raise BackendError(messages.read_error(reply).message)
            hello = messages.read_hello(reply)
        except UopError as error:
            raise BackendError(f"backend {self.name!r} did not start: {error}") from None
        self.watch.look()
        self.resident_at_start = self.watch.resident
        return hello


def command_of(name: str) -> list[str]:
    """Split a command into words. NoSuchBackendError where it has none."""
    try:
        words = shlex.split(name.removeprefix(COMMAND))
    except ValueError as error:
        raise NoSuchBackendError(f"{name}: {error}") from None
    if not words:
        raise NoSuchBackendError(f"{name!r}: expected {COMMAND}PROGRAM")
    return words
