"""The state of a run: judges cases in a pool, sums up, finds causes of failures, keeps the time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from uop.conformance.checks import OBSERVED, STRICT, OptionError
from uop.conformance.coverage.exercised import Exercised
from uop.conformance.coverage.ledger import Ledger
from uop.conformance.judging.verdict import Status, Verdict, not_judged
from uop.conformance.profile.card import Card, Observation
from uop.conformance.protocol.types import Hello
from uop.conformance.report.files import failure_at, write_reports, written_to
from uop.conformance.report.model import BackendInfo, Conclusion, Failure, Report
from uop.conformance.report.options import Origin
from uop.conformance.report.tally import Tally
from uop.conformance.report.terminal import Display
from uop.conformance.run.causes import AnyPool, Causes, CauseSearch, in_faults, one_of_each_op
from uop.conformance.run.known import KnownFailures, read_known
from uop.conformance.run.options import Options, profile_of_run
from uop.conformance.run.pool import Pool
from uop.conformance.run.replay import passing
from uop.conformance.run.selection import to_send_again
from uop.conformance.run.tasks import CHUNKS, Judge, JudgeBy, Judged, Observe, SelfTest, tasks_again
from uop.conformance.suite.case import LEVELS, CaseId
from uop.conformance.suite.generate import case_by_id, groups
from uop.conformance.suite.own_cases import AnyCase, OwnCases
from uop.conformance.suite.vocabulary import Vocabulary, vocabulary_of, whole
from uop.conformance.workers.again import case_to_send
from uop.spec.errors import (
    BackendError,
    ChangedError,
    JudgeLostError,
    PassError,
    UnfitError,
    UopError,
)
from uop.spec.latitude import LIBERTIES
from uop.spec.text.profile_text import parse_profile

if TYPE_CHECKING:
    # It loads a judge, which most runs have only in other processes.
    from uop.conformance.shrink.sequence import Sequences

COMPARING = 10.0
"""The seconds that a run may take beyond its time to compare failures with known ones."""
UNCOMPARED = "it fails, and the time was over before it was compared with the known failures"
SEQUENCING = 60.0
"""The seconds in which a run without a time looks for what must run before its failures."""
MOST_SEQUENCES = 5
"""Of the first failures those that pass alone are tried with all that ran before them, the others
with what had to run before these.
"""
MOST_REMEMBERED = 200
"""The most failing cases of which it is known what ran before."""
UNSHRUNK = 24
"""The most failures that a run reports unshrunk where it ends before a cause is found."""
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
        for level in {CaseId.parse(id).level for id in original.cases} or LEVELS:
            groups(level)
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
        unexplained = tuple(verdict.id for verdict in self._unexplained())
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
        self.known_failures.skipped = self.options.skip_causes
        if self.options.known is not None:
            self.known_failures.file = read_known(self.options.known)

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
        for verdict in self._unexplained():
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
        for id in ids:
            self.tally.accept(id)
            del self.failed[id]
        return True

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
                self._add(verdict, shown)
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

    def _add(self, verdict: Verdict, shown: Exercised | None) -> None:
        if verdict.status.is_failure and self.known_failures.covers(verdict.id, [verdict.id]):
            verdict = replace(verdict, status=Status.KNOWN)
        self.tally.add(verdict)
        self.ledger.add(verdict, shown)
        if verdict.status.is_failure:
            self.failed[verdict.id] = verdict
            self.display.failed(verdict)

    def failures(self, hello: Hello, *, tries: bool) -> tuple[Failure, ...]:
        """The causes, the worst first, and choices that are not allowed.

        Where no cause was found, there is one unshrunk failure for each op and symptom. If `tries`,
        the repros are run in a new process.
        """
        causes = in_faults(self.causes.results())
        if not causes:
            causes = [self._unshrunk(v) for v in one_of_each_op(self._unexplained())[:UNSHRUNK]]
        by_signature = {failure.signature: failure for failure in reversed(causes)}
        failures = [written_to(f, self.options.output) for f in reversed(by_signature.values())]
        anew = self._passing(failures) if tries else {}
        failures = [_blamed(failure, hello).tried(anew) for failure in failures]
        failures = list(self._in_sequence(failures)) if anew else failures
        known = self.known_failures
        choices = [failure_at(entry, self.options.output) for entry in self._wrong_choices()]
        choices = [f for f in choices if not known.covers(f.signature, ())]
        # Those of one knob are one fault.
        first = {f.label: f.signature for f in reversed(choices)}
        same = [first[f.label] if first[f.label] != f.signature else "" for f in choices]
        return (*failures, *(replace(f, same_as=s) for f, s in zip(choices, same, strict=True)))

    def _passing(self, failures: Sequence[Failure]) -> Mapping[str, str]:
        """By signatures of failures whose repros pass in a new process, what came there."""
        if self.lost or self.interrupted or not failures:
            return {}
        backend, log = self.options.backend, self.options.log
        found: dict[str, str] = {}
        try:
            found.update(passing(failures, backend, log, self.clock.deadline))
        except KeyboardInterrupt:
            self.interrupted = True
        except BackendError as error:
            self.lost = f"the repros cannot be run in a new process: {error}"
        return found

    def _in_sequence(self, failures: Sequence[Failure]) -> Iterator[Failure]:
        """The failures, some of those that pass alone with what must run before them."""
        from uop.conformance.shrink.sequence import Sequences

        profile, options = parse_profile(self.options.profile), self.options
        deadline = self.clock.deadline or time.monotonic() + SEQUENCING
        found = Sequences(options.backend, options.log, profile, self._case, deadline)
        first: dict[tuple[str, ...], str] = {}
        for number, failure in enumerate(failures):
            shown, before = failure, self.before.get(failure.id)
            if before is not None and not failure.repeats:
                shown = self._after(found, failure, before if number < MOST_SEQUENCES else ())
            one = first.setdefault(shown.after, shown.signature) if shown.after else ""
            yield replace(shown, same_as=one) if one not in ("", shown.signature) else shown

    def _after(self, found: Sequences, failure: Failure, before: Sequence[str]) -> Failure:
        """A failure with what must run before it; as it is where the search ends early."""
        try:
            return failure if self.interrupted else found.of(failure, before)
        except KeyboardInterrupt:
            self.interrupted = True
        except UopError:
            # The backend is lost too often, or no case has this id any more.
            pass
        return failure

    def _case(self, id: str) -> AnyCase:
        return self.own.find(id) or case_by_id(id, self.options.seed, self.vocabulary)

    def _wrong_choices(self) -> tuple[Observation, ...]:
        """The choices that fail the run: those made in two ways, and liberties under strict.

        Under a demanded profile with liberties of its own another of these may be what was seen.
        """
        if self.card is None:
            return ()
        if self.profile_from == OBSERVED:
            return self.card.twofold
        allows = LIBERTIES & parse_profile(self.options.profile).declared().keys()
        return () if allows else self.card.liberties

    def _unexplained(self) -> list[Verdict]:
        """The failing cases whose cause was not found."""
        return [v for v in self.failed.values() if v.id not in self.causes.explains]

    def _unshrunk(self, verdict: Verdict) -> Failure:
        assert verdict.failure is not None
        seed, again = self.options.seed, verdict.failure.again
        case = self.own.find(verdict.id) or case_to_send(
            verdict.id, seed, self.vocabulary, again=again
        )
        return self.own.unshrunk(case, verdict.failure, parse_profile(self.options.profile))


def _blamed(failure: Failure, hello: Hello) -> Failure:
    """A failure whose repro has one op, with the ops of which the adapter composes that."""
    sole = failure.ops[0] if len(failure.ops) == 1 else ""
    return replace(failure, composed=hello.composition(sole))


def written(report: Report, problems: list[str], options: Options, shown: Display) -> Report:
    """Write the files of a report and show it.

    OptionError where a file could not be written; `problems` are those of other files.
    """
    try:
        problems += write_reports(report, options.json, options.junit, options.html)
    finally:
        # Show the verdict even where the disk is full.
        shown.finished(report)
    if problems:
        raise OptionError("\n".join(problems))
    return report


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
