"""Hunts mutants: runs the cases about the ops that one breaks, then all others, until one fails.

Processes of this module hunt many of them; those killed are counted (`uop-mutants/1`).
"""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain, islice, repeat
from sys import maxsize
from typing import Any

from uop.conformance.backends import MUTANT
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.mutants.catalogue import JUDGE, Mutant, find_mutant
from uop.conformance.mutants.order import PUSHED, in_order, pushed, rejected
from uop.conformance.protocol import wire
from uop.conformance.protocol.codec import to_json
from uop.conformance.report.model import Failure
from uop.conformance.run import tasks
from uop.conformance.run.pool import SAY_HELLO, EndedError, Member, Pool, Task
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import MIXED, CaseId, InvalidCase
from uop.conformance.suite.generate import case_by_id
from uop.conformance.workers.forked import MEMBER
from uop.conformance.workers.processes import own_stdout, when_alone, workplace
from uop.conformance.workers.sessions import RUN, started
from uop.spec.errors import BackendError, JudgeLostError, PassError, UopError
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import parse_profile

SCHEMA = "uop-mutants/1"
TOGETHER = 64
"""The largest number of cases in a task; the first tasks are smaller, as most mutants die early."""
FIRST = (2, 6, 16, 32)
SEED = 0
ADVERSARY = f"{PUSHED}:"
"""The backend that a faulty judge judges: it takes every liberty, and has no fault."""
NOT_BUILT = "refuses the source"
"""Runtimes report this for a source that does not build: no result was judged."""


class Fate(StrEnum):
    """Whether a mutant was killed."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"


@dataclass(frozen=True, slots=True)
class Hunted:
    """A mutant and its fate: `case` killed it after so many seconds.

    `by_name` says whether the case is about an op or label that the mutant breaks. `note` is the
    message of the case, or the proof that no program shows the fault.
    """

    mutant: str
    kind: str
    fate: Fate
    case: str = ""
    by_name: bool = False
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Hunt(Task[Hunted]):
    """Hunt the mutant of this name."""

    mutant: str
    answer = Hunted


@dataclass(frozen=True, slots=True)
class Kill:
    """The case that killed a mutant, its message and time, and the ops and labels it is about."""

    case: str
    message: str
    at: float
    about: frozenset[str]


def hunt(mutant: Mutant) -> Hunted:
    """Run cases until one fails with the fault and passes without it.

    A crash of the process is no kill, nor is a source that does not build.
    """
    if mutant.equivalent:
        return Hunted(mutant.name, mutant.kind, Fate.EQUIVALENT, note=mutant.equivalent)
    begun, kill, note = time.monotonic(), None, ""
    try:
        kill = _kill(mutant)
    except (PassError, BackendError, JudgeLostError) as error:
        note = f"not judged: {error}"
    seconds = round((time.monotonic() if kill is None else kill.at) - begun, 3)
    if kill is None:
        return Hunted(mutant.name, mutant.kind, Fate.SURVIVED, seconds=seconds, note=note)
    by_name = not kill.about.isdisjoint(mutant.breaks)
    return Hunted(mutant.name, mutant.kind, Fate.KILLED, kill.case, by_name, seconds, kill.message)


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a campaign; an interrupted one has the mutants hunted so far."""

    hunted: tuple[Hunted, ...]
    interrupted: bool = False

    @property
    def killed(self) -> list[Hunted]:
        return [h for h in self.hunted if h.fate is Fate.KILLED]

    @property
    def survivors(self) -> list[Hunted]:
        return [h for h in self.hunted if h.fate is Fate.SURVIVED]

    def to_json(self) -> dict[str, Any]:
        """The counts, also by class, and every mutant with the case that killed it."""
        seconds = [h.seconds for h in self.killed]
        return {
            "schema": SCHEMA,
            "summary": {
                **_counts(self.hunted),
                "killed_by_name": sum(h.by_name for h in self.killed),
                "median_seconds": statistics.median(seconds) if seconds else None,
                "worst_seconds": max(seconds, default=None),
                "interrupted": self.interrupted,
            },
            "classes": {
                kind: _counts([h for h in self.hunted if h.kind == kind])
                for kind in dict.fromkeys(h.kind for h in self.hunted)
            },
            "mutants": list(map(to_json, self.hunted)),
        }


def hunt_all(chosen: Sequence[Mutant], workers: int) -> Iterator[Hunted]:
    """Hunt mutants in worker processes, results as they come. BackendError where none starts."""
    pool = Pool.of(__name__, processes=min(workers, len(chosen)), first=None)
    try:
        yield from pool.answers(Hunt(mutant.name) for mutant in chosen)
    finally:
        pool.end()


@dataclass(frozen=True, slots=True)
class SoundJudge:
    """The judge without the fault, in this process; its backend may have it."""

    judging: Judge

    def judge(self, ids: Sequence[CaseId]) -> list[Verdict]:
        return self.judging.judge([case_by_id(str(id), SEED) for id in ids])

    def cause(self, verdict: Verdict) -> Failure:
        assert verdict.failure is not None
        return find_cause(self.judging, Failing(case_by_id(verdict.id, SEED), verdict.failure))


@dataclass(frozen=True, slots=True)
class FaultyJudge:
    """The judge with the fault, in another process; its backend has none."""

    member: Member

    def judge(self, ids: Sequence[CaseId]) -> list[Verdict]:
        return list(self.member.ask(tasks.Judge(tuple(map(str, ids)))).verdicts)

    def cause(self, verdict: Verdict) -> Failure:
        assert verdict.failure is not None
        return self.member.ask(tasks.Shrink(tasks.Unexplained(verdict.id, verdict.failure), ()))


Setup = SoundJudge | FaultyJudge
"""Judges cases with the fault in the judge or in the backend, and shrinks failures."""


@contextmanager
def sound_judge(backend: str, profile: str) -> Iterator[Setup]:
    with started(backend) as session:
        yield SoundJudge(Judge(session, parse_profile(profile)))


@contextmanager
def faulty_judge(mutant: Mutant, backend: str) -> Iterator[Setup]:
    with workplace() as place:
        words = (RUN, mutant.name, MEMBER, backend, mutant.profile, str(SEED))
        member = Member.start(*words, place=place)
        try:
            member.answer(SAY_HELLO)
            yield FaultyJudge(member)
        except EndedError as ended:
            raise JudgeLostError(f"the judging process with the fault {ended}") from None
        finally:
            member.process.end()


def _counts(hunted: Sequence[Hunted]) -> dict[str, int]:
    fates = Counter(h.fate for h in hunted)
    return {"total": len(hunted), **{fate.value: fates[fate] for fate in Fate}}


def _kill(mutant: Mutant) -> Kill | None:
    if mutant.backend != JUDGE:
        setup = sound_judge(MUTANT + mutant.name, mutant.profile)
        return _by_failure(setup, mutant, mutant.backend)
    if mutant.against:
        return _by_acquittal(mutant)
    adversary = _with_profile(ADVERSARY, mutant)
    return _by_failure(faulty_judge(mutant, adversary), mutant, adversary)


def _by_failure(setups: AbstractContextManager[Setup], mutant: Mutant, backend: str) -> Kill | None:
    """The first case that fails with the fault, and passes without it on `backend`."""
    with setups as setup:
        for ids in _tasks(in_order(mutant)):
            for verdict in setup.judge(ids):
                at = time.monotonic()
                if shows(verdict) and not shows(without_fault(backend, verdict.id, mutant.profile)):
                    assert verdict.failure is not None
                    return Kill(
                        verdict.id, verdict.failure.message, at, _about(setup, verdict, mutant)
                    )
    return None


def without_fault(backend: str, id: str, profile: str) -> Verdict:
    """The verdict of the judge on a backend, both without the fault."""
    with sound_judge(backend, profile) as setup:
        (verdict,) = setup.judge([CaseId.parse(id)])
    return verdict


def shows(verdict: Verdict) -> bool:
    """Whether a verdict is a failure of a program that was run, or wrongly accepted."""
    if verdict.status is not Status.FAILED or verdict.failure is None:
        return False
    return (
        verdict.failure.symptom is not Symptom.REFUSED or NOT_BUILT not in verdict.failure.message
    )


def _by_acquittal(mutant: Mutant) -> Kill | None:
    """The first program with fewer rejected elements than are wrong, and than without the fault."""
    for backend in mutant.against:
        name = _with_profile(backend, mutant)
        with faulty_judge(mutant, name) as setup, sound_judge(name, mutant.profile) as sound:
            for id, wrong in _wrong_results(backend, mutant):
                (verdict,) = setup.judge([CaseId.parse(id)])
                at, count = time.monotonic(), rejected(verdict)
                if count >= wrong:
                    continue
                (right,) = sound.judge([CaseId.parse(id)])
                if count < (known := rejected(right)):
                    message = f"{count} of {min(wrong, known)} wrong elements are rejected"
                    # The pushed op gives the wrong results, whatever the case is about.
                    about = _about(sound, right, mutant) | {backend.partition(":")[2]}
                    return Kill(id, message, at, about)
    return None


def _with_profile(backend: str, mutant: Mutant) -> str:
    """A backend; an adversary without a profile gets that of the mutant."""
    kind, _, argument = backend.partition(":")
    return backend if kind != PUSHED or ":" in argument else f"{backend}:{mutant.profile}"


def _wrong_results(backend: str, mutant: Mutant) -> Iterator[tuple[str, int]]:
    """Programs by id, and the least number of elements that a backend gets wrong in each.

    Where the mutant names a level, that number is not known, and may be 0.
    """
    kind, _, name = backend.partition(":")
    if kind == PUSHED and mutant.level:
        yield from ((str(id), maxsize) for id in in_order(mutant))
    elif kind == PUSHED:
        yield from pushed(Op[name], SEED, parse_profile(mutant.profile))
    elif (kill := _kill(find_mutant(name))) is not None:
        yield kill.case, 1


def _about(setup: Setup, verdict: Verdict, mutant: Mutant) -> frozenset[str]:
    """The op and label of a case; for a case about many ops, those of its shrunk program."""
    op = CaseId.parse(verdict.id).op
    case = case_by_id(verdict.id, SEED)
    label = case.label if isinstance(case, InvalidCase) else ""
    if verdict.failure is None or (op != MIXED and not {op, label}.isdisjoint(mutant.breaks)):
        return frozenset({op, label})
    failure = setup.cause(verdict)
    return frozenset({*failure.ops, failure.label})


def _tasks(ids: Iterator[CaseId]) -> Iterator[list[CaseId]]:
    for size in chain(FIRST, repeat(TOGETHER)):
        task = list(islice(ids, size))
        if not task:
            return
        yield task


def main() -> None:
    """Answer tasks until the other side closes the pipe."""
    out = own_stdout()
    when_alone(partial(os.kill, os.getpid(), signal.SIGTERM))
    with suppress(wire.ClosedError):
        while True:
            wire.write(out, _answer(wire.read(0, Hunt).mutant))


def _answer(name: str) -> Hunted | wire.Refused:
    try:
        return hunt(find_mutant(name))
    except UopError as error:
        return wire.Refused(f"{name}: {error}")


if __name__ == "__main__":
    main()
