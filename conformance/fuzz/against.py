"""Compares a backend with another one: which of its failures the other does not share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from uop.conformance.checks import OBSERVED
from uop.conformance.judging.verdict import Status
from uop.conformance.protocol.types import Hello
from uop.conformance.report.model import Against, Conclusion, Failure, Flaky
from uop.conformance.run.options import Options, profile_of_run
from uop.conformance.run.pool import Pool
from uop.conformance.run.replay import conclusion, judge_files, passing
from uop.conformance.run.tasks import JudgeBy, Observe, SelfTest, tasks_of
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.vocabulary import vocabulary_of
from uop.conformance.workers.sessions import started
from uop.spec.text.uop_file import parse_file

TIMES = 3
"""How often a repro must fail alone, each time in a new process, until it counts."""


@dataclass(slots=True, eq=False)
class Baseline:
    """A backend that another one is compared with, and what the comparison has found so far."""

    name: str
    pool: Pool
    hello: Hello
    profile: str
    statuses: dict[str, Status] = field(default_factory=dict)
    """The verdicts on it, by the ids of cases that fail on the other."""
    flaky: list[Flaky] = field(default_factory=list)
    """The failures that do not repeat."""

    @classmethod
    @contextmanager
    def started(cls, name: str, options: Options) -> Iterator[Baseline]:
        """Start a backend and choose its profile. BackendError if it does not start, UnfitError if
        its adapter does not fit.
        """
        with Pool.start(replace(options, backend=name).checked()) as pool:
            hello = pool.hello(1)
            pool.ask(SelfTest()).require_fit()
            profile = profile_of_run(options.profile, hello)
            if profile == OBSERVED:
                profile = str(pool.ask(Observe(options.skips)).profile)
            yield cls(name, pool, hello, profile)

    def meet(self, hello: Hello, options: Options) -> Options:
        """The options by which both are judged: programs that both take, this one's profile."""
        vocabulary = vocabulary_of([hello, self.hello], options.skips)
        self.pool.ask_all(JudgeBy(self.profile, vocabulary, options.skips))
        return replace(options, vocabulary=vocabulary, profile=self.profile)

    def not_only_of_other(self, ids: Sequence[str], deadline: float) -> list[str]:
        """Judge cases that fail on the other; returns those that do not pass on this one.

        What is not judged at the deadline is among them: it is not known to pass.
        """
        new = [CaseId.parse(id) for id in ids if id not in self.statuses]
        tasks = tasks_of(new, self.hello.limits.programs)
        for judged in self.pool.answers(tasks, deadline):
            self.statuses |= {verdict.id: verdict.status for verdict in judged.verdicts}
        return [id for id in ids if self.statuses.get(id) is not Status.PASSED]

    def passing(self, failures: Sequence[Failure]) -> set[str]:
        """The signatures of failures whose repros pass on this backend."""
        with started(self.name) as session:
            return {
                failure.signature
                for failure in failures
                if conclusion(judge_files(parse_file(failure.text).cases, session))
                is Conclusion.CONFORMS
            }

    def steady(self, failures: Sequence[Failure], options: Options) -> tuple[Failure, ...]:
        """Those whose repros fail on the other every time; each time a new process runs all."""
        tried = failures
        for _ in range(1, TIMES):
            left = [failure for failure in tried if failure.repeats]
            anew = dict(passing(left, options.backend, options.log, None)) if left else {}
            tried = [failure.tried(anew) for failure in tried]
        self.flaky += [failure.flaky for failure in tried if not failure.repeats]
        return tuple(failure for failure in tried if failure.repeats)

    @property
    def summary(self) -> Against:
        """What the comparison has found, as part of a report."""
        every = list(self.statuses.values())
        skipped = every.count(Status.SKIPPED)
        shared = len(every) - skipped - every.count(Status.PASSED)
        return Against(self.name, shared, skipped, tuple(self.flaky))
