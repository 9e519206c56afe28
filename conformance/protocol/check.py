"""Checks a worker: sends it fixed messages and reports where its replies deviate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from uop.conformance.checks import STRICT
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.lowering import submission_of
from uop.conformance.judging.storage import from_literal, to_literal
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.protocol import messages, offers
from uop.conformance.protocol.hello import DeviationError
from uop.conformance.protocol.lines import PATIENCE
from uop.conformance.protocol.log import ProtocolLog
from uop.conformance.protocol.types import OFFERS, Outputs, Problem, ProblemKind, Program
from uop.conformance.report.model import counted
from uop.conformance.report.options import ReportedOptions
from uop.conformance.run.commands import conform_command
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.shrink.writing import unshrunk
from uop.conformance.suite.case import Case, InvalidCase
from uop.conformance.suite.generate import groups
from uop.conformance.workers.command import Command
from uop.conformance.workers.processes import Workplace
from uop.conformance.workers.transport import Allowance, LostError
from uop.interpreter.numeric.storage import Array
from uop.spec.case import FileCase, encode_set, outputs
from uop.spec.errors import BackendError, UnsupportedError
from uop.spec.text.array import encode_array
from uop.spec.text.literal import print_literal
from uop.spec.text.profile_text import parse_profile
from uop.spec.text.program import print_program
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp

TRIED = 12
"""The most cases of a group that are searched for one that the worker takes."""
FEW = 1 << 15
"""The most elements of the inputs of a case: a worker need not be fast here."""
MANY = 12
"""The most elements of an array that are shown."""
LATER = "a-request-of-a-later-version"


@dataclass(frozen=True, slots=True)
class Deviation:
    """A deviation in one line, and its details by name: the program, its input, ..."""

    text: str
    shown: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Checked:
    """The results of a check: notes on what is right, and the deviations."""

    notes: list[str] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    hung: bool = False
    """Whether the worker gave no reply to a program; the check then ends."""


def check(
    name: str, place: Workplace, allowance: Allowance, log: ProtocolLog | None = None
) -> Checked:
    """Start a worker by its backend name, and check all that its hello lists."""
    results = Checked()
    begun = time.monotonic()
    try:
        worker = Command(name, place, allowance, log)
    except BackendError as error:
        results.deviations.append(Deviation(str(error)))
        return results
    hello, took = worker.hello, time.monotonic() - begun
    partly = f"{counted(len(hello.supports), 'op')} on some of them, " if hello.supports else ""
    results.notes.append(
        f"hello: {hello.name} {hello.version}, {len(hello.ops)} ops, {len(hello.dtypes)} dtypes, "
        f"{partly}"
        f"forms {', '.join(sorted(hello.forms))}; started in {took:.2f} s"
    )
    try:
        for part in (_ops, _optional_checks, _later_request, _end):
            if results.hung:
                results.notes.append("not checked further: it gives no reply")
                break
            results.deviations += part(worker, results)
    except BackendError as error:
        results.deviations.append(Deviation(str(error)))
    finally:
        worker.close()
    results.notes.append(f"memory: at most {worker.peak >> 20} MiB")
    return results


def _ops(worker: Command, results: Checked) -> Iterator[Deviation]:
    """Judge programs of every listed op; then run one on one and on three sets of inputs."""
    judge = Judge(worker, parse_profile(worker.hello.profile or STRICT))
    tried: list[str] = []
    right: list[Case] = []
    for op in sorted(worker.hello.ops):
        # One case of each group name: operands of one shape, of several, absent elements, ...
        cases = list(_cases_of(op, worker))
        if not cases:
            continue
        tried.append(op)
        judged = ((case, judge.judge([case])[0]) for case in cases)
        wrong = next((pair for pair in judged if pair[1].status is not Status.PASSED), None)
        if wrong is None:
            right.append(cases[0])
            continue
        yield _failing(op, *wrong, judge)
        failure = wrong[1].failure
        results.hung = failure is not None and failure.symptom is Symptom.HANG
        if results.hung:
            return
    if not tried:
        yield Deviation(
            "hello lists too little: no op has a program of listed ops and dtypes alone"
        )
        return
    results.notes.append(f"run: {len(right)} of {len(tried)} ops are right on their first programs")
    if right:
        yield from _sets_of_inputs(worker, right[0], results)


def _failing(op: str, case: Case, verdict: Verdict, judge: Judge) -> Deviation:
    if verdict.failure is None:
        text = f"{op}: hello lists it, yet run of {verdict.id} says: {verdict.reason}"
        return Deviation(text, (*_program(case.root), _next(judge, case)))
    if verdict.failure.symptom is Symptom.HANG:
        # The check ends here, and is not to wait for this worker again.
        failure = unshrunk(case, verdict.failure, judge.profile)
    else:
        failure = find_cause(judge, Failing(case, verdict.failure))
    shrunk = parse_file(failure.text).cases[0]
    assert shrunk.root is not None
    inputs = [(f"input {slot}", _shown(from_literal(a))) for slot, a in shrunk.inputs.items()]
    first, *more = failure.message.splitlines()
    came = ", ".join(f"{e.place} = {e.got}" for e in failure.values) or first
    return Deviation(
        f"{op}: {verdict.id} under the profile {judge.profile}: {first}",
        (
            *_program(shrunk.root),
            *inputs,
            ("came", came),
            *_accepted(shrunk),
            *(("", line) for line in more),
            _next(judge, case),
        ),
    )


def _sets_of_inputs(worker: Command, case: Case, results: Checked) -> Iterator[Deviation]:
    program = submission_of(case, worker.hello).program
    first = program.batches[0]
    for count in (1, 3):
        outcome = worker.run(Program(program.text, (first,) * count))
        if isinstance(outcome, Problem):
            text = f"{count} equal sets of inputs: {_line(outcome)}"
            results.hung = outcome.kind is ProblemKind.HANG
        elif len({tuple(a.tobytes() for a in batch) for batch in outcome.batches}) > 1:
            text = f"{count} equal sets of inputs: expected equal outputs, found different ones"
        else:
            continue
        inputs = [(f"input {slot}", _shown(a)) for slot, a in first.items()]
        yield Deviation(text, (*_program(case.root), *inputs))
        if results.hung:
            return


def _optional_checks(worker: Command, results: Checked) -> Iterator[Deviation]:
    """Try each offer on the first program that the worker takes."""
    case = next((c for op in sorted(worker.hello.ops) for c in _cases_of(op, worker)), None)
    if case is None:
        return
    program = submission_of(case, worker.hello).program
    for offer in [o for o in OFFERS if o in worker.hello.offers]:
        try:
            text = _wrong_offer(offer, worker, program)
        except DeviationError as error:
            text = str(error)
        except LostError as lost:
            text, results.hung = _line(lost.problem), lost.problem.kind is ProblemKind.HANG
            worker.restart()
        if text:
            yield Deviation(f"{offer}: {text}", tuple(_program(case.root)))
        else:
            results.notes.append(f"{offer}: as it should be")
        if results.hung:
            return


def _later_request(worker: Command, results: Checked) -> Iterator[Deviation]:
    """Check that the worker answers an unknown request with an error of class unsupported."""
    worker.request_id += 1
    request, text = messages.Request(worker.request_id, LATER), ""
    expected = f"{LATER}: expected an error of class unsupported"
    try:
        reply = worker.ask(request)
        problem = messages.read_error(reply) if "error" in reply else None
        if problem is None or problem.kind is not ProblemKind.UNSUPPORTED:
            text = f"{expected}, found {', '.join(sorted(reply))}"
    except DeviationError as error:
        text = f"{LATER}: {error}"
    except LostError as lost:
        text = f"{expected}, found {_line(lost.problem)}"
        worker.restart()
    if text:
        yield Deviation(text, (("request", request.line.decode().strip()),))


def _rejecting(worker: Command, program: Program) -> str:
    """Try `check` on a valid and an invalid program; returns what is wrong, or nothing."""
    *before, last = program.text.strip().split("\n")
    # A check request has no derived properties of its last node.
    valid = worker.run(Program("\n".join([*before, last.partition(" : ")[0]])))
    if isinstance(valid, Problem):
        return f"a valid program: {_line(valid)}"
    case = next(_invalid(worker), None)
    if case is None:
        return ""
    outcome = worker.run(submission_of(case, worker.hello).program)
    if isinstance(outcome, Problem) and outcome.kind is ProblemKind.INVALID:
        return ""
    reply = "valid" if isinstance(outcome, Outputs) else _line(outcome)
    text = "; ".join(case.text.strip().splitlines())
    return f"a program that breaks {case.label}: expected class invalid, found {reply}: {text}"


def _wrong_offer(offer: str, worker: Command, program: Program) -> str:
    """Try an offer; returns what is wrong, or nothing. DeviationError, LostError."""
    if offer == "check":
        return _rejecting(worker, program)
    reply = worker.reply_about(offer, program)
    if offer == "props":
        return offers.wrong_property(reply, worker.as_read(program))
    if offer == "stages":
        return offers.first_unreadable_stage(reply)
    offers.source(reply)
    return ""


def _end(worker: Command, results: Checked) -> Iterator[Deviation]:
    code, stays = worker.process.finish(), f"the process to end within {PATIENCE:g} s, it stays"
    if code is None:
        yield Deviation(f"stdin is closed: expected {stays}")
    elif code:
        yield Deviation(f"stdin is closed: expected exit code 0, found {code}")
    if notes := worker.process.notes:
        expected = "one reply to each request and nothing else"
        yield Deviation(f"stdout: expected {expected}, found {notes[0]}")


def _cases_of(op: str, worker: Command) -> Iterator[Case]:
    """The first case about an op that the worker takes, for each name of a group."""
    seen: set[str] = set()
    for group in groups("op"):
        if group.op != op or not worker.hello.takes(op, group.dtype) or group.name in seen:
            continue
        for index in range(min(TRIED, max(group.counts))):
            case = group.case(index, 0)
            if not isinstance(case, Case) or not _is_taken(case, worker):
                continue
            if sum(a.size for batch in case.batches for a in batch.inputs.values()) <= FEW:
                seen.add(group.name)
                yield case
                break


def _is_taken(case: Case, worker: Command) -> bool:
    """Whether a worker takes a case, and reads an edition that can express it."""
    submission = submission_of(case, worker.hello)
    if submission.reason:
        return False
    try:
        worker.as_read(submission.program)
    except UnsupportedError:
        return False
    return True


def _invalid(worker: Command) -> Iterator[InvalidCase]:
    for group in groups("invalid"):
        case = group.case(0, 0) if group.counts[0] else None
        if isinstance(case, InvalidCase) and not submission_of(case, worker.hello).reason:
            yield case


def _program(root: UOp) -> list[tuple[str, str]]:
    lines = print_program(root).splitlines()
    return [("" if number else "program", line) for number, line in enumerate(lines)]


def _shown(a: Array) -> str:
    """An array as `.uop` files write it; of a large one the first elements."""
    if a.size <= MANY:
        return print_literal(encode_array(to_literal(a)), "[]")
    first = print_literal(encode_array(to_literal(a.reshape(-1)[:MANY])), "[]")
    return f"{first[:-1]},... {a.size:,} elements]"


def _accepted(case: FileCase) -> list[tuple[str, str]]:
    """The accepted results of each output; of a large one the first elements."""
    assert case.root is not None
    dtypes = {key: u.dtype for key, u in outputs(case.root).items()}
    lines = []
    # Outputs are counted, as where the worker's are shown; a file names buffers by their slots.
    for number, (key, sets) in enumerate(sorted(case.accept.items())):
        first = ", ".join(encode_set(one, dtypes[key]) for one in sets[:MANY])
        more = f", ... {len(sets):,} elements" if len(sets) > MANY else ""
        lines.append(("accepted", f"output {number} = {first}{more}"))
    return lines


def _next(judge: Judge, case: Case) -> tuple[str, str]:
    """The command that judges this case alone in the same way."""
    worker = judge.session
    assert isinstance(worker, Command)
    profile = "" if worker.hello.profile else STRICT
    options = ReportedOptions(worker.name, timeout=worker.allowance.batch_seconds, profile=profile)
    return "next", conform_command(options, "--case", case.id)


def _line(problem: Problem) -> str:
    return f"{problem.kind.value}: {problem.message.splitlines()[0] if problem.message else ''}"
