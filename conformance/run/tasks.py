"""What a run asks the processes that judge, each task with the type of its answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, repeat

from uop.conformance.coverage.exercised import Exercised
from uop.conformance.judging.verdict import Fault, Verdict
from uop.conformance.profile.card import Card
from uop.conformance.report.model import Failure
from uop.conformance.run.pool import Task
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict for each case, what it exercises, and the most memory that the backend held.

    What a skipped case would exercise counts too; None where the case was not made.
    """

    verdicts: tuple[Verdict, ...]
    exercised: tuple[Exercised | None, ...]
    peak: int


@dataclass(frozen=True, slots=True)
class Done:
    """The task is done."""


@dataclass(frozen=True, slots=True)
class Judge(Task[Judged]):
    """Judge the cases of these ids."""

    ids: tuple[str, ...]
    answer = Judged


@dataclass(frozen=True, slots=True)
class Shrink(Task[Failure]):
    """Find the cause of a failure."""

    id: str
    fault: Fault
    answer = Failure


@dataclass(frozen=True, slots=True)
class JudgeBy(Task[Done]):
    """Judge by this profile from now on, and draw random programs from this vocabulary."""

    profile: str
    vocabulary: Vocabulary
    answer = Done


@dataclass(frozen=True, slots=True)
class Observe(Task[Card]):
    """Find out what the backend does where the spec leaves a choice."""

    answer = Card


TASKS = (Judge, Shrink, JudgeBy, Observe)
CHUNKS = (4, 8, 16)
"""Sizes of the first tasks, for an early first result; then as many as the backend takes."""


def tasks_of(ids: Iterable[CaseId], size: int) -> Iterator[Judge]:
    """Cases to judge, in so many tasks that no judge waits long for the first or the last one."""
    rest = iter([str(id) for id in ids])
    sizes = chain((min(n, size) for n in CHUNKS), repeat(size))
    while chunk := tuple(islice(rest, next(sizes))):
        yield Judge(chunk)
