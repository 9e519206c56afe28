"""The state of a run: judges cases in a pool, sums up, finds causes of failures, keeps the time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from uop.conformance.checks import OBSERVED, STRICT
from uop.conformance.coverage.ledger import Ledger
from uop.conformance.judging.verdict import Status, Verdict, not_judged
from uop.conformance.profile.card import Card
from uop.conformance.protocol.types import Hello
from uop.conformance.report.model import BackendInfo, Conclusion, Failure, KnownFailure, Report
from uop.conformance.report.options import Origin
from uop.conformance.report.tally import Tally
from uop.conformance.report.terminal import Display
from uop.conformance.run.causes import AnyPool, Causes, CauseSearch, failures_of
from uop.conformance.run.known import KnownFailures
from uop.conformance.run.options import Options, profile_of_run
from uop.conformance.run.pool import Pool
from uop.conformance.run.selection import make_groups, to_send_again
from uop.conformance.run.tasks import CHUNKS, Judge, JudgeBy, Judged, Observe, SelfTest, tasks_again
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.own_cases import AnyCase, OwnCases
from uop.conformance.suite.vocabulary import Vocabulary, vocabulary_of, whole
from uop.conformance.workers.again import case_to_send
from uop.spec.errors import (
    BackendError,
    ChangedError,
    JudgeLostError,
    PassError,
    UnfitError,
)
from uop.spec.text.profile_text import parse_profile

COMPARING = 10.0
"""The seconds that a run may take beyond its time to compare failures with known ones."""
UNCOMPARED = "it fails, and the time was over before it was compared with the known failures"
MOST_REMEMBERED = 200
"""The most failing cases of which it is known what ran before."""
JUDGING, AGAIN, SEARCHING = 0.45, 0.5, 0.95
"""The parts of the time after which judging ends, judging again, and the search for causes."""
PART, SHORTEST = 0.2, 1.0
"""A task lasts at most this part of the time that is left, but may last these seconds."""


@dataclass(slots=True, eq=False)
class Run:
    """The state of a run; `result` judges and returns the report.

    What a run judges, and in which order, is up to the classes that derive from this one.
    """

    options: Options
    display: Display
    tally: Tally = field(default_factory=Tally)
    failed: dict[str, Verdict] = field(default_factory=dict)
    causes: Causes = field(default_factory=Causes)
    lost: str = ""
    has_changed: bool = False
    """Whether the backend became another one: then nothing follows from what failed."""
    peak: int = 0
    interrupted: bool = False
    card: Card | None = None
    profile_from: str = "declared"
    ledger: Ledger = field(default_factory=lambda: Ledger(()))
    known_failures: KnownFailures = field(default_factory=KnownFailures)
    vocabulary: Vocabulary = field(default_factory=whole)
    """The ops and dtypes of random programs: those of the options, else of the hello."""
    origin: Origin = field(init=False)
    own: OwnCases = field(default_factory=OwnCases)
    clock: Clock = field(init=False)
    backend: BackendInfo = field(init=False)
    before: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The cases that ran before a failing one in its process."""
    again: set[str] = field(default_factory=set)
    """The cases that were judged again."""
    searching: float = 0.0
    """The seconds in which the run looked for causes."""

    def __post_init__(self) -> None:
        self.origin = Origin.now(self.options.command)
        self.clock = Clock(self.options.seconds)

    def result(self, started: AnyPool | None = None) -> Report:
        # `self.options` gets the observed profile; the report states the options of the user.
        original = self.options
        # Processes that fork later have the groups too.
        make_groups(original)
        pool: AnyPool = started or Pool.start(original)
        try:
            self.prepare()
            hello = pool.hello(min(original.workers, len(original.cases) or original.workers))
            self.backend = BackendInfo.of(hello)
            self.vocabulary = original.vocabulary or vocabulary_of([hello], original.skips)
            self.known_failures.file = self.known_failures.file.of(self.backend, original.backend)
            self.select(hello)
            self._judge(pool, hello)
        finally:
            pool.end()
        # In the process of a debugger it would be another backend.
        report = self.report(hello, original, tries=isinstance(pool, Pool))
        summary = replace(
            report.summary,
            interrupted=self.interrupted,
            peak_bytes=self.peak,
            again=len(self.again),
            searching=round(self.searching, 3),
            judge_bytes=pool.peak,
            judges_replaced=pool.replaced,
        )
        if self.has_changed:
            summary = replace(summary, verdict=Conclusion.INCONCLUSIVE, open_because=self.lost)
        if self.card is not None:
            liberties = {entry.liberty: entry.example for entry in self.card.liberties}
            summary = replace(summary, liberties=liberties)
            report = replace(report, card=self.card.entries)
        unexplained = tuple(verdict.id for verdict in self.unexplained())
        return replace(
            report,
            origin=self.origin,
            unexplained=unexplained,
            summary=summary,
            composed=hello.composed or None,
        )

    def prepare(self) -> None:
        """Read files while the backend starts."""
        self.own = OwnCases.read(self.options.folder, self.options.edition)
        self.known_failures = KnownFailures.of(self.options)

    def select(self, hello: Hello) -> None:
        """Choose what to judge."""
        raise NotImplementedError

    def examine(self, pool: AnyPool, size: int) -> None:
        """Judge what was chosen, at most `size` cases in a task, and find causes of failures.

        KeyboardInterrupt, BackendError and PassError end the run early.
        """
        raise NotImplementedError

    def report(self, hello: Hello, options: Options, *, tries: bool) -> Report:
        """The report by what was judged; `result` adds what is the same for all runs.

        If `tries`, repros are run in a new process.
        """
        raise NotImplementedError

    def tallied(
        self,
        hello: Hello,
        options: Options,
        known: tuple[KnownFailure, ...] = (),
        missing: tuple[str, ...] = (),
        *,
        tries: bool,
    ) -> Report:
        """The report by the totals, with the causes of failures."""
        return self.tally.report(
            self.backend,
            self.options.profile,
            options,
            self.clock.seconds,
            self.failures(hello, tries=tries),
            known,
            lost=self.lost,
            missing=missing,
            profile_from=self.profile_from,
            vocabulary=self.vocabulary,
        )

    def note(self, judged: Judged) -> None:
        """Take what a task has shown beside its verdicts."""

    @property
    def expected(self) -> int | None:
        """The number of cases that will be judged; None where the time decides."""
        raise NotImplementedError

    def _judge(self, pool: AnyPool, hello: Hello) -> None:
        """Judge; Ctrl-C, an adapter that does not fit or a lost backend ends this early."""
        try:
            try:
                self._take_profile(pool, hello)
            finally:
                self.display.started(hello, self.options, self.expected)
            self.clock.judging_since = time.monotonic()
            self.examine(pool, hello.limits.programs)
        except KeyboardInterrupt:
            self.interrupted = True
        except (BackendError, JudgeLostError, PassError) as error:
            self.lost, self.tally.is_unfit = str(error), isinstance(error, UnfitError)
            self.has_changed = isinstance(error, ChangedError)
        self._leave_open()

    def _leave_open(self) -> None:
        """Do not judge the failures for which the time to compare them with known ones was over."""
        if not self.known_failures.causes():
            return
        for verdict in self.unexplained():
            if verdict.failure is not None and verdict.id not in self.causes.compared:
                self.tally.withdraw(not_judged(verdict.id, UNCOMPARED))
                del self.failed[verdict.id]

    def find_causes(self, pool: AnyPool, deadline: float) -> None:
        """Find causes of the failures until a deadline, by time.monotonic."""
        now = time.monotonic()
        search = CauseSearch(self.causes, pool, deadline)
        self.causes.known = self.known_failures.causes()
        try:
            until = max(deadline, now + COMPARING)
            replace(search, deadline=until).compare(self.failed.values())
            search.run(self.failed.values())
            while self._settle():
                search.run(self.failed.values())
        finally:
            self.searching += time.monotonic() - now

    def _settle(self) -> bool:
        """Count the cases of known causes as known failures; returns whether some are left over.

        A known cause of one dtype hides none of another, unless its entry says so: those cases look
        for a cause of their own.
        """
        left = False
        for cause in self.causes.known:
            ids = self.causes.cases_of(cause)
            if not self.known_failures.covers_any_dtypes(cause):
                own = [id for id in ids if id not in self.causes.of_other_dtypes]
                left |= len(own) < len(ids)
                ids = own
            if ids:
                self._accept(cause, ids)
            self.causes.remove(cause)
        # What one of the others has not explained now it never does.
        wide = filter(self.known_failures.covers_any_dtypes, self.causes.known)
        self.causes.known = tuple(wide)
        for cause in self.causes.results():
            own = [id for id in cause.cases if id not in self.causes.of_other_dtypes]
            left |= self._accept(cause, own) and len(own) < len(cause.cases)
        return left

    def _accept(self, cause: Failure, ids: Sequence[str]) -> bool:
        """Count cases of a cause as known failures, and forget it, if it is known."""
        if not self.known_failures.covers(cause.signature, ids):
            return False
        self.causes.remove(cause)
        self.excuse(ids)
        return True

    def excuse(self, ids: Iterable[str]) -> None:
        """Count failing cases as known failures."""
        for id in ids:
            self.tally.accept(id)
            del self.failed[id]

    def _take_profile(self, pool: AnyPool, hello: Hello) -> None:
        """Choose the profile to judge by; an observed one takes probes before the first case.

        UnfitError where the adapter does not fit: its choices would be none of the library.
        """
        profile, skips = profile_of_run(self.options.profile, hello), self.options.skips
        # This stays where the backend is lost while it is observed.
        self.options = replace(self.options, profile=STRICT if profile == OBSERVED else profile)
        pool.ask(SelfTest()).require_fit()
        if profile == OBSERVED:
            self.profile_from = OBSERVED
            self.card = pool.ask(Observe(skips))
            profile = str(self.card.profile)
        if self.profile_from == OBSERVED or self.options.vocabulary is not None or skips:
            pool.ask_all(JudgeBy(profile, self.vocabulary, skips))
        self.options = replace(self.options, profile=profile)
        self.ledger.profile = parse_profile(profile)

    def judge_cases(self, pool: AnyPool, tasks: Iterator[Judge], deadline: float | None) -> None:
        """Judge the cases of some tasks until there are no more or the deadline is over."""
        if self.options.fail_fast:
            tasks = takewhile(lambda _: not self.failed, tasks)
        for judged in pool.answers(tasks, deadline):
            self.peak = max(self.peak, judged.peak)
            self.tally.fired.update(judged.fired)
            self.tally.retried += judged.retried
            self.note(judged)
            for verdict, shown in zip(judged.verdicts, judged.exercised, strict=True):
                known = self.known_failures
                if verdict.status.is_failure and known.covers(verdict.id, [verdict.id]):
                    verdict = replace(verdict, status=Status.KNOWN)
                self.tally.add(verdict)
                self.ledger.add(verdict, shown)
                if verdict.status.is_failure:
                    self.failed[verdict.id] = verdict
                    self.display.failed(verdict)
            self._remember(judged)
            self.display.progress(self.tally, self.clock.seconds)

    def judge_again(self, pool: AnyPool, ids: Iterable[CaseId]) -> None:
        """Judge a part of the cases that passed again; a case fails if it fails now."""
        if self.again:
            return
        passed = [id for id in ids if self.tally.status_of(id) is Status.PASSED]
        chosen = to_send_again(passed, self.options.effort, self.options.seed)
        for judged in pool.answers(tasks_again(chosen), self.clock.at(AGAIN)):
            for verdict in judged.verdicts:
                self.again.add(verdict.id)
                self.tally.note(verdict)
                if verdict.failure is not None and verdict.id not in self.failed:
                    self.tally.revise(verdict)
                    self.failed[verdict.id] = verdict
                    self.display.failed(verdict)
            self._remember(judged)

    def _remember(self, judged: Judged) -> None:
        """Keep what ran before the cases that failed."""
        ids = [*judged.before, *(verdict.id for verdict in judged.verdicts)]
        for place, id in enumerate(ids[len(judged.before) :], len(judged.before)):
            if id in self.failed and len(self.before) < MOST_REMEMBERED:
                self.before.setdefault(id, tuple(ids[:place]))

    def failures(self, hello: Hello, *, tries: bool) -> tuple[Failure, ...]:
        """The causes, the worst first, and choices that are not allowed.

        If `tries`, the repros are run in a new process.
        """
        return failures_of(self, hello, tries=tries)

    def case(self, id: str, *, again: bool = False) -> AnyCase:
        """The case of an id; on more data if it is sent again."""
        return self.own.find(id) or case_to_send(
            id, self.options.seed, self.vocabulary, again=again
        )

    def unexplained(self) -> list[Verdict]:
        """The failing cases whose cause was not found."""
        return [v for v in self.failed.values() if v.id not in self.causes.explains]

    def unshrunk(self, verdict: Verdict) -> Failure:
        assert verdict.failure is not None
        case = self.case(verdict.id, again=verdict.failure.again)
        return self.own.unshrunk(case, verdict.failure, parse_profile(self.options.profile))


@dataclass(slots=True, eq=False)
class Clock:
    """The time of a run that may last `limit` seconds; None is no limit."""

    limit: float | None
    begun: float = field(default_factory=time.monotonic)
    judging_since: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds since the run began."""
        return time.monotonic() - self.begun

    @property
    def deadline(self) -> float | None:
        """The end of the run by time.monotonic; None without a limit."""
        return self.at(1.0)

    def at(self, part: float) -> float | None:
        """When a part of the time is over, by time.monotonic; None without a limit."""
        return None if self.limit is None else self.begun + part * self.limit

    @property
    def is_in_time(self) -> bool:
        return self.limit is None or self.seconds < self.limit

    def cases_in_time(self, tally: Tally, workers: int) -> int:
        """How many cases a process judges in a part of the time that is left."""
        judged = sum(tally.counts.values())
        if self.limit is None or not judged:
            return CHUNKS[0]
        seconds = max(SHORTEST, (self.limit - self.seconds) * PART)
        rate = judged / (time.monotonic() - self.judging_since) / workers
        return max(1, int(rate * seconds))
