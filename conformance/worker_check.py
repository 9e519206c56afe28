"""Sends a worker fixed messages and says, one line each, what it does otherwise than it should."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from uop.conformance import messages, offers
from uop.conformance.case import Case, InvalidCase
from uop.conformance.command import Command
from uop.conformance.delivery import deliver
from uop.conformance.generate import groups
from uop.conformance.greeting import DeviationError
from uop.conformance.judge import Judge
from uop.conformance.lines import PATIENCE
from uop.conformance.protocol import OFFERS, Outputs, Problem, ProblemKind, Program
from uop.conformance.verdict import Status
from uop.conformance.wire import Json
from uop.conformance.workers import Allowance, LostError
from uop.interpreter.values import Array
from uop.spec.errors import BackendError, UnsupportedError
from uop.spec.profile_text import parse_profile

TRIED = 12
"""Cases of one op that are looked through for one that the worker takes."""
FEW = 1 << 15
"""Elements of the inputs of a case, at most: a worker need not be fast here."""
LATER = "a-request-of-a-later-version"


@dataclass(slots=True)
class Checked:
    """What a check found: lines on what went well, and lines on what deviates."""

    notes: list[str] = field(default_factory=list)
    deviations: list[str] = field(default_factory=list)


def check(name: str, folder: Path, allowance: Allowance) -> Checked:
    """Start a worker by its backend name and go through what it says it can do."""
    found = Checked()
    begun = time.monotonic()
    try:
        worker = Command(name, folder, allowance)
    except BackendError as error:
        found.deviations.append(str(error))
        return found
    hello, took = worker.hello, time.monotonic() - begun
    found.notes.append(
        f"hello: {hello.name} {hello.version}, {len(hello.ops)} ops, {len(hello.dtypes)} dtypes, "
        f"forms {', '.join(sorted(hello.forms))}; started in {took:.2f} s"
    )
    try:
        for part in (_later_request, _ops, _offers):
            found.deviations += part(worker, found)
        found.deviations += _end(worker)
    except BackendError as error:
        found.deviations.append(str(error))
    finally:
        worker.close()
    found.notes.append(f"memory: at most {worker.peak >> 20} MiB")
    return found


def _later_request(worker: Command, found: Checked) -> Iterator[str]:
    """A request that it cannot know is answered all the same."""
    worker.asked += 1
    try:
        reply = worker.ask({"id": worker.asked, "do": LATER})
        problem = messages.read_error(reply) if "error" in reply else None
        if problem is None or problem.kind is not ProblemKind.UNSUPPORTED:
            yield f"{LATER}: expected an error of class unsupported, found {_keys(reply)}"
    except DeviationError as error:
        yield f"{LATER}: {error}"
    except LostError as lost:
        yield f"{LATER}: expected an error of class unsupported: {_line(lost.problem)}"
        worker.restart()


def _ops(worker: Command, found: Checked) -> Iterator[str]:
    """One program for every op that it lists, judged; then sets of inputs, one, none and three."""
    profile = parse_profile(worker.hello.profile or "strict")
    judge = Judge(worker, profile)
    tried: list[str] = []
    right: list[Case] = []
    for op in sorted(worker.hello.ops):
        # Of each kind one: operands of one shape, of several, absent elements, ...
        cases = list(_cases_of(op, worker))
        if not cases:
            continue
        tried.append(op)
        verdicts = (judge.judge([case])[0] for case in cases)
        verdict = next((v for v in verdicts if v.status is not Status.PASSED), None)
        if verdict is None:
            right.append(cases[0])
        elif verdict.status is Status.SKIPPED:
            yield f"{op}: hello lists it, yet run of {verdict.id} says: {verdict.reason}"
        elif verdict.fault is not None:
            said = verdict.fault.message.splitlines()[0]
            yield f"{op}: {verdict.id} under the profile {profile}: {said}"
    if not tried:
        yield "hello lists too little: no op has a program of listed ops and dtypes alone"
        return
    found.notes.append(f"run: {len(right)} of {len(tried)} ops are right on their first programs")
    if right:
        yield from _sets_of_inputs(worker, right[0])


def _sets_of_inputs(worker: Command, case: Case) -> Iterator[str]:
    program = deliver(case, worker.hello).program
    first = program.batches[0]
    for count in (1, 3):
        outcome = worker.run(Program(program.text, (first,) * count))
        if isinstance(outcome, Problem):
            yield f"{count} equal sets of inputs: {_line(outcome)}"
        elif any(not _equal(b, outcome.batches[0]) for b in outcome.batches):
            yield f"{count} equal sets of inputs: expected equal outputs, found different ones"


def _offers(worker: Command, found: Checked) -> Iterator[str]:
    """Each offer, on the first program that it takes; for `check` also one that is not valid."""
    case = next((c for op in sorted(worker.hello.ops) for c in _cases_of(op, worker)), None)
    for offer in [o for o in OFFERS if o in worker.hello.offers and case is not None]:
        assert case is not None
        program = deliver(case, worker.hello).program
        try:
            said = OFFERED[offer](worker, program)
        except DeviationError as error:
            said = str(error)
        except LostError as lost:
            said = _line(lost.problem)
            worker.restart()
        if said:
            yield f"{offer}: {said}"
        else:
            found.notes.append(f"{offer}: as it should be")


def _rejecting(worker: Command, program: Program) -> str:
    """A valid program is accepted and one of an invalid kind rejected, or what happens instead."""
    *before, last = program.text.strip().split("\n")
    # Of the last node nothing derived is told, as of one that may be wrong.
    valid = worker.run(Program("\n".join([*before, last.partition(" : ")[0]])))
    if isinstance(valid, Problem):
        return f"a valid program: {_line(valid)}"
    for case in _invalid(worker):
        outcome = worker.run(deliver(case, worker.hello).program)
        if isinstance(outcome, Outputs) or outcome.kind is not ProblemKind.INVALID:
            said = "valid" if isinstance(outcome, Outputs) else _line(outcome)
            return f"a program that breaks {case.label}: expected class invalid, found {said}"
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


def _end(worker: Command) -> Iterator[str]:
    code = worker.process.finish()
    if code is None:
        yield f"stdin is closed: expected the process to end within {PATIENCE:g} s, it stays"
    elif code:
        yield f"stdin is closed: expected exit code 0, found {code}"
    if notes := worker.process.notes:
        yield f"stdout: expected one reply to each request and nothing else, found {notes[0]}"


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
    delivery = deliver(case, worker.hello)
    if delivery.reason:
        return False
    try:
        worker.as_read(delivery.program)
    except UnsupportedError:
        return False
    return True


def _invalid(worker: Command) -> Iterator[InvalidCase]:
    for group in groups("invalid"):
        case = group.case(0, 0) if group.counts[0] else None
        if isinstance(case, InvalidCase) and not deliver(case, worker.hello).reason:
            yield case


def _equal(one: tuple[Array, ...], other: tuple[Array, ...]) -> bool:
    return len(one) == len(other) and all(
        a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True)
    )


def _keys(reply: Json) -> str:
    return ", ".join(sorted(reply))


def _line(problem: Problem) -> str:
    return f"{problem.kind.value}: {problem.message.splitlines()[0] if problem.message else ''}"
