"""Defines the tasks of judging processes, each with the type of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from typing import Literal

from uop.conformance.coverage.exercised import Exercised
from uop.conformance.judging.verdict import CaseFailure, Verdict, not_judged
from uop.conformance.profile.card import Card
from uop.conformance.report.model import Failure
from uop.conformance.run.pool import Task
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.vocabulary import NO_SKIPS, Skips, Vocabulary
from uop.spec.errors import UnfitError

MOST_BEFORE = 512
"""The most cases before a failure that may be needed to show it."""


@dataclass(frozen=True, slots=True)
class Reaching:
    """A program as the text of a file, and the points that it reaches."""

    text: str
    points: frozenset[str]


@dataclass(frozen=True, slots=True)
class Judged:
    """For each case its verdict and the points it exercises; the peak memory of the backend.

    `exercised` has the points of skipped cases too; None where the case was not generated.
    """

    verdicts: tuple[Verdict, ...]
    exercised: tuple[Exercised | None, ...]
    peak: int
    fired: Mapping[str, int] = field(default_factory=dict)
    """For each rule of the backend the number of programs it fired in."""
    reaching: tuple[Reaching, ...] = ()
    """After a task `Explore` the programs that passed and reached something new."""
    retried: int = 0
    """How often the backend was lost on programs of which none is lost alone."""
    before: tuple[str, ...] = ()
    """Where a program failed, the last MOST_BEFORE cases that its process ran before the task."""


@dataclass(frozen=True, slots=True)
class Done:
    """Answers a task that has no result."""


@dataclass(frozen=True, slots=True)
class Judge(Task[Judged]):
    """Judge the cases of these ids; or judge them again, on other data: each alone, as
    `workers.again` sends programs, or together.
    """

    ids: tuple[str, ...]
    again: Literal["", "alone", "together"] = ""
    answer = Judged

    def without_process(self, why: str) -> tuple[Sequence[Task[Judged]], Judged | None]:
        """Each case alone; one that is alone is not judged."""
        if len(self.ids) > 1:
            return [Judge((id,), self.again) for id in self.ids], None
        verdicts = tuple(not_judged(id, why) for id in self.ids)
        return (), Judged(verdicts, (None,) * len(verdicts), 0)


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A failing case by id; or, where `text` is set, the repro that it was shrunk to."""

    id: str
    failure: CaseFailure
    text: str = ""


@dataclass(frozen=True, slots=True)
class Shrink(Task[Failure]):
    """Find the cause of a failure, which is none of some causes."""

    failing: Unexplained
    causes: tuple[Failure, ...]
    answer = Failure


@dataclass(frozen=True, slots=True)
class Explanations:
    """By id of a failing case the number of the cause that explains it, if one does."""

    causes: Mapping[str, int]
    of_other_dtypes: tuple[str, ...] = ()
    """The cases that fail with other dtypes than the repros of these causes."""
    left: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By id of a case that is not explained, the wrong outputs that no cause explains."""
    compared: tuple[str, ...] = ()
    """All cases of the task."""


@dataclass(frozen=True, slots=True)
class Explain(Task[Explanations]):
    """Say which of some causes explains each of some failing cases."""

    failing: tuple[Unexplained, ...]
    causes: tuple[Failure, ...]
    answer = Explanations

    def without_process(self, why: str) -> tuple[Sequence[Task[Explanations]], Explanations | None]:
        """No cause explains them."""
        return (), Explanations({}, compared=tuple(one.id for one in self.failing))


@dataclass(frozen=True, slots=True)
class JudgeBy(Task[Done]):
    """From now on judge by this profile and generate random programs from this vocabulary.

    Cases that need an op or dtype of `skips` are skipped.
    """

    profile: str
    vocabulary: Vocabulary
    skips: Skips = NO_SKIPS
    answer = Done


@dataclass(frozen=True, slots=True)
class SelfTested:
    """Why an adapter does not fit its library; empty where it does, or has no self-test."""

    unfit: str

    def require_fit(self) -> None:
        """UnfitError where the adapter does not fit."""
        if self.unfit:
            raise UnfitError(self.unfit)


@dataclass(frozen=True, slots=True)
class SelfTest(Task[SelfTested]):
    """Let an adapter run a few programs, whose values are not judged."""

    answer = SelfTested


@dataclass(frozen=True, slots=True)
class Observe(Task[Card]):
    """Observe what the backend does where the spec leaves a choice, but not by what is skipped."""

    skips: Skips = NO_SKIPS
    answer = Card


@dataclass(frozen=True, slots=True)
class Explore(Task[Done]):
    """Take the programs of a corpus, texts by the names of their files, as the user's own cases.

    From now on say which programs reach something that is none of these points, and that none
    before them did.
    """

    texts: Mapping[str, str]
    points: frozenset[str]
    answer = Done


TASKS = (Judge, Shrink, Explain, JudgeBy, SelfTest, Observe, Explore)
ALONE, TOGETHER = 4, 32
"""The most cases of a task that judges again."""
CHUNKS = (4, 8, 16)
"""The sizes of the first tasks: small ones give early results. Later ones have the full size."""


def tasks_of(
    ids: Iterable[CaseId], size: int, in_time: Callable[[], int] | None = None
) -> Iterator[Judge]:
    """Split cases into tasks of at most `size`; the first ones are smaller.

    `in_time` says when a task is made how many cases it may have at most.
    """
    rest = iter([str(id) for id in ids])
    sizes = chain((min(n, size) for n in CHUNKS), repeat(size))
    while chunk := tuple(islice(rest, min(next(sizes), in_time() if in_time else size))):
        yield Judge(chunk)


def tasks_again(ids: Sequence[CaseId]) -> Iterator[Judge]:
    """Judge cases again: a few in a task, as each is sent alone; then many, in reverse order."""
    names = [str(id) for id in ids]
    for start in range(0, len(names), ALONE):
        yield Judge(tuple(names[start : start + ALONE]), "alone")
    for start in range(0, len(names), TOGETHER):
        yield Judge(tuple(names[start : start + TOGETHER][::-1]), "together")
