"""Hunts a mutant: runs the cases about what it breaks, then all others, until one fails."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice, repeat
from sys import maxsize
from typing import Protocol

from uop.conformance.backends import MUTANT
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.mutants.catalogue import JUDGE, Mutant, find_mutant
from uop.conformance.mutants.order import in_order
from uop.conformance.mutants.pushed import PUSHED, accused, pushed
from uop.conformance.report.model import Failure
from uop.conformance.run import tasks
from uop.conformance.run.pool import MEMBER, SAY_HELLO, Member, Task
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import MIXED, CaseId, InvalidCase
from uop.conformance.suite.generate import case_by_id
from uop.conformance.workers.sessions import RUN, started
from uop.spec.errors import BackendError, PassError
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import parse_profile

TOGETHER = 64
"""Cases of one task, at most; the first tasks are smaller, for most mutants die early."""
FIRST = (2, 6, 16, 32)
SEED = 0
ADVERSARY = f"{PUSHED}:"
"""The backend that a faulty judge is held against: it takes every liberty, and has no fault."""
NOT_BUILT = "refuses the source"
"""What runtimes say of a source that is none: nothing has been computed, and nothing judged."""


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"


@dataclass(frozen=True, slots=True)
class Hunted:
    """A mutant and its fate: `case` killed it after so many seconds.

    The seconds are until that case failed. `by_name` says whether it is about what the mutant
    breaks. `note` says what was seen, or the proof that nothing can be.
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
    """The case that showed a mutant, what it saw and when, and the ops and labels it is about."""

    case: str
    saw: str
    at: float
    about: frozenset[str]


def hunt(mutant: Mutant) -> Hunted:
    """Run cases until one fails for the mutant, which must not fail without it. A crash of its
    process is no kill, nor is a source that the driver refuses.
    """
    if mutant.equivalent:
        return Hunted(mutant.name, mutant.kind, Fate.EQUIVALENT, note=mutant.equivalent)
    begun = time.monotonic()
    try:
        kill = _kill(mutant)
    except (PassError, BackendError) as error:
        seconds = round(time.monotonic() - begun, 3)
        note = f"not judged: {error}"
        return Hunted(mutant.name, mutant.kind, Fate.SURVIVED, seconds=seconds, note=note)
    seconds = round((time.monotonic() if kill is None else kill.at) - begun, 3)
    if kill is None:
        return Hunted(mutant.name, mutant.kind, Fate.SURVIVED, seconds=seconds)
    by_name = not kill.about.isdisjoint(mutant.breaks)
    return Hunted(mutant.name, mutant.kind, Fate.KILLED, kill.case, by_name, seconds, kill.saw)


class Setup(Protocol):
    """Judges cases with the fault in one of its two sides, and shrinks what failed."""

    def judge(self, ids: Sequence[CaseId]) -> list[Verdict]: ...

    def cause(self, verdict: Verdict) -> Failure: ...


@dataclass(frozen=True, slots=True)
class Here:
    """The suite as it is, in this process, and a backend that may have the fault."""

    judging: Judge

    def judge(self, ids: Sequence[CaseId]) -> list[Verdict]:
        return self.judging.judge([case_by_id(str(id), SEED) for id in ids])

    def cause(self, verdict: Verdict) -> Failure:
        assert verdict.fault is not None
        return find_cause(self.judging, case_by_id(verdict.id, SEED), verdict.fault)


@dataclass(frozen=True, slots=True)
class FaultyJudge:
    """A suite with the fault, and a backend as it is."""

    member: Member

    def judge(self, ids: Sequence[CaseId]) -> list[Verdict]:
        return list(self.member.ask(tasks.Judge(tuple(map(str, ids)))).verdicts)

    def cause(self, verdict: Verdict) -> Failure:
        assert verdict.fault is not None
        return self.member.ask(tasks.Shrink(verdict.id, verdict.fault))


@contextmanager
def judged_here(backend: str, profile: str) -> Iterator[Setup]:
    with started(backend) as session:
        yield Here(Judge(session, parse_profile(profile)))


@contextmanager
def faulty_judge(mutant: Mutant, backend: str) -> Iterator[Setup]:
    member = Member.start(RUN, mutant.name, MEMBER, backend, mutant.profile, str(SEED))
    try:
        member.answer(SAY_HELLO)
        yield FaultyJudge(member)
    finally:
        member.process.end()


def _kill(mutant: Mutant) -> Kill | None:
    if mutant.backend != JUDGE:
        opened = judged_here(MUTANT + mutant.name, mutant.profile)
        return _by_failure(opened, mutant, mutant.backend)
    if mutant.against:
        return _by_acquittal(mutant)
    adversary = _with_liberties(ADVERSARY, mutant)
    return _by_failure(faulty_judge(mutant, adversary), mutant, adversary)


def _by_failure(opened: AbstractContextManager[Setup], mutant: Mutant, backend: str) -> Kill | None:
    """The first case that fails: with a faulty judge, of a backend that does nothing wrong."""
    with opened as setup:
        for ids in _tasks(in_order(mutant)):
            for verdict in setup.judge(ids):
                at = time.monotonic()
                if shows(verdict) and not shows(without_fault(backend, verdict.id, mutant.profile)):
                    assert verdict.fault is not None
                    return Kill(
                        verdict.id, verdict.fault.message, at, _about(setup, verdict, mutant)
                    )
    return None


def without_fault(backend: str, id: str, profile: str) -> Verdict:
    """What the suite as it is says of a backend as it is."""
    with judged_here(backend, profile) as setup:
        (verdict,) = setup.judge([CaseId.parse(id)])
    return verdict


def shows(verdict: Verdict) -> bool:
    """Whether a verdict is about what was computed, or rejected."""
    if verdict.status is not Status.FAILED or verdict.fault is None:
        return False
    return verdict.fault.symptom is not Symptom.REFUSED or NOT_BUILT not in verdict.fault.message


def _by_acquittal(mutant: Mutant) -> Kill | None:
    """The first program of which fewer elements are accused than a backend got wrong, and than are
    accused without the fault.
    """
    for backend in mutant.against:
        named = _with_liberties(backend, mutant)
        with faulty_judge(mutant, named) as setup, judged_here(named, mutant.profile) as sound:
            for id, wrong in _wrong_results(backend, mutant):
                (verdict,) = setup.judge([CaseId.parse(id)])
                at, found = time.monotonic(), accused(verdict)
                if found >= wrong:
                    continue
                (right,) = sound.judge([CaseId.parse(id)])
                if found < (known := accused(right)):
                    saw = f"{found} of {min(wrong, known)} wrong elements are accused"
                    # The op that is pushed is what was got wrong, whatever the case is about.
                    about = _about(sound, right, mutant) | {backend.partition(":")[2]}
                    return Kill(id, saw, at, about)
    return None


def _with_liberties(backend: str, mutant: Mutant) -> str:
    """A backend; an adversary takes the liberties that a mutant is about if it is told no other."""
    kind, _, rest = backend.partition(":")
    return backend if kind != PUSHED or ":" in rest else f"{backend}:{mutant.profile}"


def _wrong_results(backend: str, mutant: Mutant) -> Iterator[tuple[str, int]]:
    """Programs that a backend gets wrong, by id, and in how many elements at least.

    In those of the level that a mutant names, if it names one, it may also get nothing wrong.
    """
    kind, _, name = backend.partition(":")
    if kind == PUSHED and mutant.level:
        yield from ((str(id), maxsize) for id in in_order(mutant))
    elif kind == PUSHED:
        yield from pushed(Op[name], SEED, parse_profile(mutant.profile))
    elif (kill := _kill(find_mutant(name))) is not None:
        yield kill.case, 1


def _about(setup: Setup, verdict: Verdict, mutant: Mutant) -> frozenset[str]:
    """The op or the label of a case; of a case about many, those of what it shrinks to."""
    op = CaseId.parse(verdict.id).op
    case = case_by_id(verdict.id, SEED)
    label = case.label if isinstance(case, InvalidCase) else ""
    if verdict.fault is None or (op != MIXED and not {op, label}.isdisjoint(mutant.breaks)):
        return frozenset({op, label})
    failure = setup.cause(verdict)
    return frozenset({*failure.ops, failure.label})


def _tasks(ids: Iterator[CaseId]) -> Iterator[list[CaseId]]:
    for size in chain(FIRST, repeat(TOGETHER)):
        task = list(islice(ids, size))
        if not task:
            return
        yield task
