"""Hunts a mutant: runs the cases about what it breaks, then all others, until one fails."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import chain, islice, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from uop.conformance.case import EFFORTS, LEVELS, CaseId, InvalidCase
from uop.conformance.generate import AnyGroup, case_by_id, groups
from uop.conformance.judge import Judge, Status, Verdict, verdict_from_json
from uop.conformance.jury import JUROR, Juror
from uop.conformance.levels.invalid import InvalidGroup
from uop.conformance.mutants.catalogue import JUDGE, WIDE, Mutant
from uop.conformance.repro import Finding, find_cause, finding_from_json
from uop.conformance.sessions import MUTANT, RUN, start
from uop.spec.latitude import STRICT

TOGETHER = 64
"""Cases of one task, at most; the first tasks are smaller, for most mutants die early."""
FIRST = (8, 16, 32)
SEED = 0
STRICT_PROFILE = "strict"


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"


@dataclass(frozen=True, slots=True)
class Hunted:
    """A mutant and its fate: `case` killed it after so many seconds.

    `by_name` says whether that case is about what the mutant breaks. `note` says what was seen, or
    the proof that nothing can be.
    """

    mutant: str
    kind: str
    fate: Fate
    case: str = ""
    by_name: bool = False
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Kill:
    """The case that showed a mutant, what it saw, and the ops and labels that it is about."""

    case: str
    saw: str
    about: frozenset[str]


def hunt(mutant: Mutant) -> Hunted:
    """Run cases until one fails for the mutant. A crash of its process is no kill."""
    if mutant.equivalent:
        return Hunted(mutant.name, mutant.kind, Fate.EQUIVALENT, note=mutant.equivalent)
    begun = time.monotonic()
    kill = _kill(mutant)
    seconds = round(time.monotonic() - begun, 3)
    if kill is None:
        return Hunted(mutant.name, mutant.kind, Fate.SURVIVED, seconds=seconds)
    by_name = not kill.about.isdisjoint(mutant.breaks)
    return Hunted(mutant.name, mutant.kind, Fate.KILLED, kill.case, by_name, seconds, kill.saw)


class Court(Protocol):
    """Judges cases with the fault in one of its two sides, and shrinks what failed."""

    def judge(self, ids: Sequence[CaseId]) -> list[Verdict]: ...

    def cause(self, verdict: Verdict) -> Finding: ...


@dataclass(frozen=True, slots=True)
class FaultyBackend:
    """The suite as it is, and a backend with the fault."""

    judging: Judge

    def judge(self, ids: Sequence[CaseId]) -> list[Verdict]:
        return self.judging.judge([case_by_id(str(id), SEED) for id in ids])

    def cause(self, verdict: Verdict) -> Finding:
        assert verdict.fault is not None
        return find_cause(self.judging, case_by_id(verdict.id, SEED), verdict.fault)


@dataclass(frozen=True, slots=True)
class FaultyJudge:
    """A suite with the fault, and a backend as it is."""

    juror: Juror

    def judge(self, ids: Sequence[CaseId]) -> list[Verdict]:
        self.juror.ask({"ids": [str(id) for id in ids]})
        return [verdict_from_json(found) for found in self.juror.answer()["verdicts"]]

    def cause(self, verdict: Verdict) -> Finding:
        self.juror.ask({"ids": [verdict.id], "fault": asdict(verdict)["fault"]})
        return finding_from_json(self.juror.answer()["finding"])


@contextmanager
def faulty_backend(mutant: Mutant) -> Iterator[Court]:
    with TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as folder:
        session = start(MUTANT + mutant.name, Path(folder))
        try:
            yield FaultyBackend(Judge(session, STRICT))
        finally:
            session.close()


@contextmanager
def faulty_judge(mutant: Mutant, backend: str) -> Iterator[Court]:
    juror = Juror.start(RUN, mutant.name, JUROR, backend, STRICT_PROFILE, str(SEED))
    try:
        juror.answer()
        yield FaultyJudge(juror)
    finally:
        juror.end()


def _kill(mutant: Mutant) -> Kill | None:
    if mutant.backend != JUDGE:
        return _by_failure(faulty_backend(mutant), mutant)
    if mutant.kind == WIDE:
        return _by_acquittal(mutant)
    return _by_failure(faulty_judge(mutant, "adversary"), mutant)


def _by_failure(opened: AbstractContextManager[Court], mutant: Mutant) -> Kill | None:
    """The first case that fails: with a faulty judge, of a backend that does nothing wrong."""
    with opened as court:
        for ids in _tasks(_in_order(mutant)):
            for verdict in court.judge(ids):
                if verdict.status is Status.FAILED and verdict.fault is not None:
                    return Kill(verdict.id, verdict.fault.message, _about(court, verdict, mutant))
    return None


def _by_acquittal(mutant: Mutant) -> Kill | None:
    """The first program that passes although its one op was pushed outside what it may return."""
    for op in mutant.breaks:
        with faulty_judge(mutant, f"adversary:{op}") as court:
            for verdict in court.judge(list(_edges(op))):
                if verdict.status is Status.PASSED:
                    return Kill(verdict.id, "a result outside passes", frozenset({op}))
    return None


def _about(court: Court, verdict: Verdict, mutant: Mutant) -> frozenset[str]:
    """The op or the label of a case; of a case about many, those of what it shrinks to."""
    id = CaseId.parse(verdict.id)
    label = _label(verdict.id)
    if not {id.op, label}.isdisjoint(mutant.breaks):
        return frozenset({id.op, label})
    finding = court.cause(verdict)
    return frozenset({*finding.ops, finding.label})


def _label(id: str) -> str:
    """The constraint that a case breaks on purpose, if it does."""
    case = case_by_id(id, SEED)
    return case.label if isinstance(case, InvalidCase) else ""


def _in_order(mutant: Mutant) -> Iterator[CaseId]:
    """All cases: those about what a mutant breaks come first, and of those a few of each kind."""
    every = [group for level in LEVELS for group in groups(level)]
    # False sorts before True, and what is alike keeps its order.
    every.sort(key=lambda group: (group.level != mutant.level, not _is_about(group, mutant)))
    few, all = EFFORTS[:2]
    for group in every:
        if group.level == mutant.level or _is_about(group, mutant):
            yield from (group.id(index) for index in range(group.count(few)))
    for group in every:
        first = group.count(few) if group.level == mutant.level or _is_about(group, mutant) else 0
        yield from (group.id(index) for index in range(first, group.count(all)))


def _is_about(group: AnyGroup, mutant: Mutant) -> bool:
    if isinstance(group, InvalidGroup):
        return any(_label(str(group.id(0))) == label for label in mutant.breaks)
    return group.op in mutant.breaks


def _edges(op: str) -> Iterator[CaseId]:
    """The programs of one op on special values, one per dtype."""
    return (g.id(0) for g in groups("op") if g.op == op and g.id(0).group == "edges")


def _tasks(ids: Iterator[CaseId]) -> Iterator[list[CaseId]]:
    for size in chain(FIRST, repeat(TOGETHER)):
        task = list(islice(ids, size))
        if not task:
            return
        yield task
