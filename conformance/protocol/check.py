"""Sends a worker fixed messages and says where its replies deviate, with the program."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from uop.conformance.checks import STRICT
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.lowering import submission_of
from uop.conformance.judging.storage import from_literal, to_literal
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.protocol import messages, offers
from uop.conformance.protocol.codec import Json
from uop.conformance.protocol.hello import DeviationError
from uop.conformance.protocol.lines import PATIENCE
from uop.conformance.protocol.log import ProtocolLog
from uop.conformance.protocol.types import OFFERS, Outputs, Problem, ProblemKind, Program
from uop.conformance.report.asked import Asked
from uop.conformance.run.commands import conform_command
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import Case, InvalidCase
from uop.conformance.suite.generate import groups
from uop.conformance.workers.command import Command
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
"""Cases of one op that are looked through for one that the worker takes."""
FEW = 1 << 15
"""Elements of the inputs of a case, at most: a worker need not be fast here."""
MANY = 12
"""Elements of an array that are shown, at most."""
LATER = "a-request-of-a-later-version"


@dataclass(frozen=True, slots=True)
class Deviation:
    """What deviates, in a line; then what shows it, by name: the program, its input, ..."""

    text: str
    shown: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Checked:
    """What a check found: lines on what went well, and what deviates."""

    notes: list[str] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    hung: bool = False
    """Whether the worker gave no reply to a program: then it is sent nothing more."""


def check(name: str, folder: Path, allowance: Allowance, log: ProtocolLog | None = None) -> Checked:
    """Start a worker by its backend name and go through what it says it can do."""
    found = Checked()
    begun = time.monotonic()
    try:
        worker = Command(name, folder, allowance, log)
    except BackendError as error:
        found.deviations.append(Deviation(str(error)))
        return found
    hello, took = worker.hello, time.monotonic() - begun
    found.notes.append(
        f"hello: {hello.name} {hello.version}, {len(hello.ops)} ops, {len(hello.dtypes)} dtypes, "
        f"forms {', '.join(sorted(hello.forms))}; started in {took:.2f} s"
    )
    try:
        for part in (_ops, _offers, _later_request, _end):
            if found.hung:
                found.notes.append("not checked further: it gives no reply")
                break
            found.deviations += part(worker, found)
    except BackendError as error:
        found.deviations.append(Deviation(str(error)))
    finally:
        worker.close()
    found.notes.append(f"memory: at most {worker.peak >> 20} MiB")
    return found


def _ops(worker: Command, found: Checked) -> Iterator[Deviation]:
    """One program for every op that it lists, judged; then sets of inputs, one, none and three."""
    judge = Judge(worker, parse_profile(worker.hello.profile or STRICT))
    tried: list[str] = []
    right: list[Case] = []
    for op in sorted(worker.hello.ops):
        # Of each kind one: operands of one shape, of several, absent elements, ...
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
        fault = wrong[1].fault
        found.hung = fault is not None and fault.symptom is Symptom.HANG
        if found.hung:
            return
    if not tried:
        said = "hello lists too little: no op has a program of listed ops and dtypes alone"
        yield Deviation(said)
        return
    found.notes.append(f"run: {len(right)} of {len(tried)} ops are right on their first programs")
    if right:
        yield from _sets_of_inputs(worker, right[0], found)


def _failing(op: str, case: Case, verdict: Verdict, judge: Judge) -> Deviation:
    """A program that is not right: itself, its input, what came, what is accepted, what to do."""
    if verdict.fault is None:
        said = f"{op}: hello lists it, yet run of {verdict.id} says: {verdict.reason}"
        return Deviation(said, (*_program(case.root), _next(judge, case)))
    failure = find_cause(judge, case, verdict.fault)
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


def _sets_of_inputs(worker: Command, case: Case, found: Checked) -> Iterator[Deviation]:
    program = submission_of(case, worker.hello).program
    first = program.batches[0]
    for count in (1, 3):
        outcome = worker.run(Program(program.text, (first,) * count))
        if isinstance(outcome, Problem):
            said = f"{count} equal sets of inputs: {_line(outcome)}"
            found.hung = outcome.kind is ProblemKind.HANG
        elif any(not _equal(b, outcome.batches[0]) for b in outcome.batches):
            said = f"{count} equal sets of inputs: expected equal outputs, found different ones"
        else:
            continue
        inputs = [(f"input {slot}", _shown(a)) for slot, a in first.items()]
        yield Deviation(said, (*_program(case.root), *inputs))
        if found.hung:
            return


def _offers(worker: Command, found: Checked) -> Iterator[Deviation]:
    """Each offer, on the first program that it takes; for `check` also one that is not valid."""
    case = next((c for op in sorted(worker.hello.ops) for c in _cases_of(op, worker)), None)
    for offer in [o for o in OFFERS if o in worker.hello.offers and case is not None]:
        assert case is not None
        program = submission_of(case, worker.hello).program
        try:
            said = OFFERED[offer](worker, program)
        except DeviationError as error:
            said = str(error)
        except LostError as lost:
            said, found.hung = _line(lost.problem), lost.problem.kind is ProblemKind.HANG
            worker.restart()
        if said:
            yield Deviation(f"{offer}: {said}", tuple(_program(case.root)))
        else:
            found.notes.append(f"{offer}: as it should be")
        if found.hung:
            return


def _later_request(worker: Command, found: Checked) -> Iterator[Deviation]:
    """A request that it cannot know is answered all the same."""
    worker.asked += 1
    request, said = messages.Request(worker.asked, LATER), ""
    expected = f"{LATER}: expected an error of class unsupported"
    try:
        reply = worker.ask(request)
        problem = messages.read_error(reply) if "error" in reply else None
        if problem is None or problem.kind is not ProblemKind.UNSUPPORTED:
            said = f"{expected}, found {_keys(reply)}"
    except DeviationError as error:
        said = f"{LATER}: {error}"
    except LostError as lost:
        said = f"{expected}, found {_line(lost.problem)}"
        worker.restart()
    if said:
        yield Deviation(said, (("request", request.line.decode().strip()),))


def _rejecting(worker: Command, program: Program) -> str:
    """A valid program is accepted and one of an invalid kind rejected, or what happens instead."""
    *before, last = program.text.strip().split("\n")
    # Of the last node nothing derived is told, as of one that may be wrong.
    valid = worker.run(Program("\n".join([*before, last.partition(" : ")[0]])))
    if isinstance(valid, Problem):
        return f"a valid program: {_line(valid)}"
    for case in _invalid(worker):
        outcome = worker.run(submission_of(case, worker.hello).program)
        if isinstance(outcome, Outputs) or outcome.kind is not ProblemKind.INVALID:
            said = "valid" if isinstance(outcome, Outputs) else _line(outcome)
            text = "; ".join(case.text.strip().splitlines())
            return (
                f"a program that breaks {case.label}: expected class invalid, found {said}: {text}"
            )
        return ""
    return ""


def _properties(worker: Command, program: Program) -> str:
    return offers.wrong_property(worker.asked_about("props", program), worker.as_read(program))


def _stages(worker: Command, program: Program) -> str:
    return offers.first_unreadable_stage(worker.asked_about("stages", program))


def _source(worker: Command, program: Program) -> str:
    offers.source(worker.asked_about("source", program))
    return ""


OFFERED = dict(zip(OFFERS, (_rejecting, _properties, _stages, _source), strict=True))
"""How each offer is tried: what it does otherwise than it should, or nothing."""


def _end(worker: Command, found: Checked) -> Iterator[Deviation]:
    code, stays = worker.process.finish(), f"the process to end within {PATIENCE:g} s, it stays"
    if code is None:
        yield Deviation(f"stdin is closed: expected {stays}")
    elif code:
        yield Deviation(f"stdin is closed: expected exit code 0, found {code}")
    if notes := worker.process.notes:
        expected = "one reply to each request and nothing else"
        yield Deviation(f"stdout: expected {expected}, found {notes[0]}")


def _cases_of(op: str, worker: Command) -> Iterator[Case]:
    """The first case of each kind about an op that the worker takes."""
    seen: set[str] = set()
    for group in groups("op"):
        if group.op != op or group.dtype not in worker.hello.dtypes or group.name in seen:
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
    """Whether a worker takes a program, and reads an edition that has words for it."""
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


def _equal(one: tuple[Array, ...], other: tuple[Array, ...]) -> bool:
    return len(one) == len(other) and all(
        a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True)
    )


def _program(root: UOp) -> list[tuple[str, str]]:
    """The lines of a program, the first one named."""
    lines = print_program(root).splitlines()
    return [("" if number else "program", line) for number, line in enumerate(lines)]


def _shown(a: Array) -> str:
    """An array as a file spells it, or the first elements of a large one."""
    if a.size <= MANY:
        return print_literal(encode_array(to_literal(a)), "[]")
    first = print_literal(encode_array(to_literal(a.reshape(-1)[:MANY])), "[]")
    return f"{first[:-1]},... {a.size:,} elements]"


def _accepted(case: FileCase) -> list[tuple[str, str]]:
    """What the outputs of a case may be, of a large one the first elements."""
    assert case.root is not None
    dtypes = {key: u.dtype for key, u in outputs(case.root).items()}
    lines = []
    for key, sets in case.accept.items():
        first = ", ".join(encode_set(one, dtypes[key]) for one in sets[:MANY])
        more = f", ... {len(sets):,} elements" if len(sets) > MANY else ""
        lines.append(("accepted", f"output {key} = {first}{more}"))
    return lines


def _next(judge: Judge, case: Case) -> tuple[str, str]:
    """The command that judges a case alone, as it was judged here."""
    worker = judge.session
    assert isinstance(worker, Command)
    profile = "" if worker.hello.profile else STRICT
    asked = Asked(worker.name, timeout=worker.allowance.batch_seconds, profile=profile)
    return "next", conform_command(asked, "--case", case.id)


def _keys(reply: Json) -> str:
    return ", ".join(sorted(reply))


def _line(problem: Problem) -> str:
    return f"{problem.kind.value}: {problem.message.splitlines()[0] if problem.message else ''}"
