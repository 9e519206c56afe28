"""Finds what must run before a program so that it fails: repros of several programs in order.

A repro that passes alone in a new process failed because of what ran before. What its process ran
is run again in a new one, fewer and fewer of it, as long as the last program still fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from uop.conformance.judging.judge import Judge
from uop.conformance.judging.lowering import submission_of
from uop.conformance.judging.storage import file_text, to_literals
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.report.model import Failure
from uop.conformance.shrink.reduce import Candidate
from uop.conformance.shrink.writing import written
from uop.conformance.suite.case import Case, CaseId
from uop.conformance.suite.own_cases import AnyCase, suite_case
from uop.conformance.workers.sessions import started
from uop.spec.case import FileCase
from uop.spec.errors import UopError
from uop.spec.latitude import Profile

MOST_SEQUENCES = 5
"""Of the first failures those that pass alone are tried with all that ran before them, the others
with what had to run before these.
"""
MOST_NEEDED = 3
"""A repro has at most so many programs before the one that fails."""
MOST_STEPS = 12
"""So many programs before the one that fails are left out one by one."""
CHUNK = 32
"""How many programs are sent together."""


@dataclass(slots=True)
class Sequences:
    """Looks for sequences on a backend until a deadline, by time.monotonic."""

    backend: str
    log: Path | None
    profile: Profile
    case: Callable[[str], AnyCase]
    """The case of an id."""
    deadline: float | None = None
    steps: dict[str, list[FileCase]] = field(default_factory=dict)
    """The programs of each case that ran before."""
    known: list[list[str]] = field(default_factory=list)
    """What had to run before other failures: one state shows in many programs."""
    interrupted: bool = False
    """Whether Ctrl-C has ended the search."""

    def of_all(
        self, failures: Iterable[Failure], before: Mapping[str, Sequence[str]]
    ) -> Iterator[Failure]:
        """Each failure; one that passes alone with what must run before it, where that is found.

        `before` has by the id of a failure the cases that ran before it.
        """
        first: dict[tuple[str, ...], str] = {}
        for number, failure in enumerate(failures):
            shown, ran = failure, before.get(failure.id)
            if ran is not None and not failure.repeats and not self.interrupted:
                try:
                    shown = self.of(failure, ran if number < MOST_SEQUENCES else ())
                except KeyboardInterrupt:
                    self.interrupted = True
                except UopError:
                    # The backend is lost too often, or no case has this id any more.
                    pass
            one = first.setdefault(shown.after, shown.signature) if shown.after else ""
            yield replace(shown, same_as=one) if one not in ("", shown.signature) else shown

    def of(self, cause: Failure, before: Sequence[str]) -> Failure:
        """The cause with a repro of several programs; as it is where none is found in time.

        BackendError where the backend is lost too often.
        """
        needed, runs = self._needed(before, cause.id), self._steps(cause.id)
        steps = [step for id in needed or () for step in self._steps(id)]
        fails = None if needed is None else self._failing(steps, runs)
        if fails is None:
            return cause
        file, failure = fails
        # What it ran on other data before may have a part too.
        steps += runs[: runs.index(file)]
        for step in steps[:MOST_STEPS]:
            fewer = [one for one in steps if one is not step]
            if not self._is_over() and self._failing(fewer, [file]):
                steps = fewer
        made = _case_of(file)
        candidate = Candidate(made.root, made.batches[0].inputs)
        shown = written(CaseId.parse(cause.id), candidate, failure, self.profile)
        text = "\n".join([*map(file_text, steps), shown.text])
        ids = tuple(dict.fromkeys(step.id.rpartition("#")[0] for step in steps))
        # The case as it was may fail alone, where what it was shrunk to passes.
        found = replace(cause, repeats=not ids, anew=cause.anew if ids else "")
        return replace(found, text=text, message=shown.message, values=shown.values, after=ids)

    def _needed(self, before: Sequence[str], id: str) -> list[str] | None:
        """The cases that must run before the last one; None where these are not found."""
        for known in () if self._is_over() else self.known:
            if self._fails(known, id):
                return known
        kept: list[str] = []
        left = list(before)
        while not self._fails(kept, id):
            if len(kept) == MOST_NEEDED or self._is_over() or not self._fails([*kept, *left], id):
                return None
            # The last place from which the rest must run.
            low, high = 0, len(left)
            while high - low > 1:
                if self._is_over():
                    return None
                middle = (low + high) // 2
                if self._fails([*kept, *left[middle:]], id):
                    low = middle
                else:
                    high = middle
            kept.append(left[low])
            left = left[low + 1 :]
        self.known += [kept] if kept else []
        return kept

    def _is_over(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _fails(self, before: Sequence[str], id: str) -> bool:
        steps = [step for one in before for step in self._steps(one)]
        return self._failing(steps, self._steps(id)) is not None

    def _failing(
        self, before: Sequence[FileCase], last: Sequence[FileCase]
    ) -> tuple[FileCase, CaseFailure] | None:
        """Run programs in a new process; the first of the last ones that fails."""
        with started(self.backend, self.log) as session:
            made = (submission_of(_case_of(step), session.hello) for step in before)
            programs = [p for one in made if not one.reason for p in one.programs]
            for k in range(0, len(programs), CHUNK):
                session.submit(programs[k : k + CHUNK])
                session.collect()
            verdicts = Judge(session, self.profile).judge(list(map(_case_of, last)))
            for step, verdict in zip(last, verdicts, strict=True):
                if verdict.failure is not None:
                    return step, verdict.failure
        return None

    def _steps(self, id: str) -> list[FileCase]:
        if id not in self.steps:
            self.steps[id] = list(_files_of(self.case(id), self.profile))
        return self.steps[id]


def _case_of(step: FileCase) -> Case:
    made = suite_case(CaseId("op", "MIXED", "MIXED", "step", 0), step)
    assert isinstance(made, Case)
    return made


def _files_of(case: AnyCase, profile: Profile) -> Iterator[FileCase]:
    """A case of a file for each program and batch of a case; none for one to reject."""
    if not isinstance(case, Case):
        return
    runs = [(program.root, batch) for program in case.programs for batch in program.batches]
    for number, (root, batch) in enumerate(runs):
        data = to_literals(batch.inputs)
        yield FileCase(f"{case.id}#{number}", root, data, profile=profile)
