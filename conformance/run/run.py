"""Runs the suite on a backend: judges cases in a pool, sums up, shrinks failures, reports."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from uop.conformance.checks import OBSERVED, STRICT, OptionError
from uop.conformance.coverage.complete import check_complete
from uop.conformance.coverage.exercised import Exercised
from uop.conformance.coverage.ledger import Ledger
from uop.conformance.coverage.points import Point
from uop.conformance.coverage.strength import opened, programs_of
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.profile.card import Card, Observation
from uop.conformance.protocol.types import Hello
from uop.conformance.report.display import Display
from uop.conformance.report.files import failure_at, write_reports, write_repros, written_to
from uop.conformance.report.model import (
    BackendInfo,
    Conclusion,
    Failure,
    KnownFailure,
    Report,
    Strength,
)
from uop.conformance.report.origin import Origin
from uop.conformance.report.tally import Tally, untried
from uop.conformance.run.causes import AnyPool, Causes, CauseSearch, one_of_each_op
from uop.conformance.run.clock import AGAIN, JUDGING, SEARCHING, Clock
from uop.conformance.run.known import KnownFailures, read_known
from uop.conformance.run.options import Options, profile_of_run
from uop.conformance.run.order import in_turns, to_send_again
from uop.conformance.run.pool import Pool
from uop.conformance.run.replay import conclusions, passing
from uop.conformance.run.selection import groups_of, is_narrowed, selected
from uop.conformance.run.tasks import JudgeBy, Observe, tasks_again, tasks_of
from uop.conformance.suite.case import LEVELS, CaseId
from uop.conformance.suite.generate import further, groups
from uop.conformance.suite.own_cases import OwnCases
from uop.conformance.suite.vocabulary import Vocabulary, vocabulary_of, whole
from uop.conformance.workers.again import case_to_send
from uop.spec.errors import BackendError, PassError, UopError
from uop.spec.latitude import LIBERTIES
from uop.spec.text.profile_text import parse_profile

LEAST_SEARCH = 150.0
"""Without a time, causes are looked for as long as judging took, or these seconds."""
UNSHRUNK = 24
"""The most failures that a run reports unshrunk where it ends before a cause is found."""
FURTHER = {"smoke": 0, "default": 256, "full": 2048}
"""By effort the most cases that a run adds for points that the selected cases do not cover."""
FURTHER_OF_EACH = 3
"""The most cases added for one op and dtype before the ledger is read again."""


def conform(
    options: Options, display: Display | None = None, pool: AnyPool | None = None
) -> Report:
    """Judge a backend, with `pool` where one has been started from these (checked) options.

    Ctrl-C ends the run early: the report says so, and has the results so far. OptionError where a
    file could not be written; the verdict is shown before.
    """
    shown = display or Display()
    report = Run(options if pool else options.checked(), shown).result(pool)
    try:
        problems = write_repros(report.failures)
        problems += write_reports(report, options.json, options.junit, options.html)
    finally:
        # Show the verdict even where the disk is full.
        shown.finished(report)
    if problems:
        raise OptionError("\n".join(problems))
    return report


@dataclass(slots=True, eq=False)
class Run:
    """The state of a run; `result` judges and returns the report."""

    options: Options
    display: Display
    tally: Tally = field(default_factory=Tally)
    failed: dict[str, Verdict] = field(default_factory=dict)
    causes: Causes = field(default_factory=Causes)
    lost: str = ""
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
        pool: AnyPool = started or Pool.start(original)
        try:
            self._prepare()
            hello = pool.hello(self.options.workers)
            backend = BackendInfo(hello.name, hello.version, hello.device, hello.variant)
            ids = self._select(hello, backend)
            self._judge(pool, ids, hello)
        finally:
            pool.end()
        known = self._known(ids)
        report = self.tally.report(
            backend,
            self.options.profile,
            original,
            self.clock.seconds,
            self._failures(hello, tries=started is None),
            known,
            lost=self.lost,
            interrupted=self.interrupted,
            peak=self.peak,
            untried=untried(hello, self.tally),
            missing=self.ledger.missing(hello, self.tally),
            profile_from=self.profile_from,
            vocabulary=self.vocabulary,
        )
        if self.card is not None:
            liberties = {entry.liberty: entry.example for entry in self.card.liberties}
            summary = replace(report.summary, liberties=liberties)
            report = replace(report, summary=summary, card=self.card.entries)
        return replace(
            report,
            ledger=self.ledger.sums(self.tally),
            origin=self.origin,
            strength=self._strength(hello),
            unexplained=tuple(verdict.id for verdict in self._unexplained()),
            summary=replace(
                report.summary, again=len(self.again), searching=round(self.searching, 3)
            ),
        )

    def _prepare(self) -> None:
        """Make the groups of the whole language and read files, while the backend starts."""
        for level in LEVELS:
            groups(level)
        check_complete(self.options.ops)
        self.own = OwnCases.read(self.options.folder, self.options.edition)
        self.known_failures.skipped = self.options.skip_causes
        if self.options.known is not None:
            self.known_failures.file = read_known(self.options.known)

    def _select(self, hello: Hello, backend: BackendInfo) -> list[CaseId]:
        """The cases to judge and the known failures that apply, which the hello decides."""
        self.vocabulary = self.options.vocabulary or vocabulary_of([hello], self.options.skips)
        ids = selected(self.options, self.vocabulary, hello, self.own.ids)
        is_part = is_narrowed(self.options) or not self.vocabulary.is_whole
        self.ledger = Ledger(tuple(ids), is_part)
        self.known_failures.file = self.known_failures.file.of(backend, self.options.backend)
        return ids

    def _judge(self, pool: AnyPool, ids: list[CaseId], hello: Hello) -> None:
        """Judge all cases and find the causes of the failures.

        Ctrl-C or the loss of the backend ends this early.
        """
        try:
            try:
                self._take_profile(pool, hello)
            finally:
                self.display.started(hello, self.options, len(ids))
            size = hello.limits.programs
            self.clock.judging_since = time.monotonic()
            if self.clock.limit is not None:
                self._judge_cases(pool, ids, size, self.clock.at(JUDGING))
                self._judge_again(pool, ids)
                self._find_causes(pool)
            self._judge_cases(pool, self.tally.without(ids), size, self.clock.deadline)
            ids += self._judge_further(pool, size)
            self._judge_again(pool, ids)
            self._find_causes(pool)
            if self.options.is_whole and self.card is None and self.clock.is_in_time:
                self.card = pool.ask(Observe())
        except KeyboardInterrupt:
            self.interrupted = True
        except (BackendError, PassError) as error:
            self.lost = str(error)

    def _find_causes(self, pool: AnyPool) -> None:
        """Find causes of the failures: as long as judging took, or until the time is over."""
        now = time.monotonic()
        deadline = self.clock.at(SEARCHING) or now + max(
            LEAST_SEARCH, now - self.clock.judging_since
        )
        search = CauseSearch(self.causes, pool, deadline)
        try:
            search.run(self.failed.values())
            while self._settle():
                search.run(self.failed.values())
        finally:
            self.searching += time.monotonic() - now

    def _settle(self) -> bool:
        """Count the cases of known causes as known failures; returns whether some are left over.

        A known cause of one dtype hides none of another: those cases look for a cause of their own.
        """
        left = False
        for cause in self.causes.results():
            own = [id for id in cause.cases if id not in self.causes.of_other_dtypes]
            if self.known_failures.covers(cause.signature, own):
                self.causes.remove(cause)
                left |= len(own) < len(cause.cases)
                for id in own:
                    self.tally.accept(id)
                    del self.failed[id]
        return left

    def _known(self, ids: Sequence[CaseId]) -> tuple[KnownFailure, ...]:
        """Run the programs of the known failures; returns the state of each entry."""
        narrowed = is_narrowed(self.options) or self.options.levels != LEVELS
        entries = self.known_failures.selected({str(id) for id in ids} if narrowed else None)
        now: dict[Path, Conclusion] = {}
        if entries and not self.lost and not self.interrupted:
            repros = list(dict.fromkeys(map(self.known_failures.file.repro_of, entries)))
            try:
                now = conclusions(
                    repros, self.options.backend, self.options.log, self.clock.deadline
                )
            except KeyboardInterrupt:
                self.interrupted = True
            except UopError as error:
                self.lost = f"the programs of {self.options.known} cannot be judged: {error}"
        return tuple(self.known_failures.results(entries, now, self.clock.is_in_time))

    def _take_profile(self, pool: AnyPool, hello: Hello) -> None:
        """Choose the profile to judge by; an observed one takes probes before the first case."""
        profile, skips = profile_of_run(self.options.profile, hello), self.options.skips
        if profile == OBSERVED:
            self.profile_from = OBSERVED
            # This stays where the backend is lost while it is observed.
            self.options = replace(self.options, profile=STRICT)
            self.card = pool.ask(Observe(skips))
            profile = str(self.card.profile)
        if self.profile_from == OBSERVED or self.options.vocabulary is not None or skips:
            pool.ask_all(JudgeBy(profile, self.vocabulary, skips))
        self.options = replace(self.options, profile=profile)
        self.ledger.profile = parse_profile(profile)

    def _judge_cases(
        self, pool: AnyPool, ids: list[CaseId], size: int, deadline: float | None
    ) -> None:
        """Judge cases until all are judged or the deadline is over."""
        tasks = tasks_of(ids, size)
        if deadline is not None:
            turns, workers = in_turns(ids, self.options.seed), self.options.workers
            tasks = tasks_of(turns, size, lambda: self.clock.cases_in_time(self.tally, workers))
        for judged in pool.answers(tasks, deadline):
            self.peak = max(self.peak, judged.peak)
            self.tally.fired.update(judged.fired)
            for verdict, shown in zip(judged.verdicts, judged.exercised, strict=True):
                self._add(verdict, shown)
            self.display.progress(self.tally, self.clock.seconds)

    def _judge_again(self, pool: AnyPool, ids: Iterable[CaseId]) -> None:
        """Judge a part of the cases that passed again; a case fails if it fails now."""
        if self.again:
            return
        passed = [id for id in ids if self.tally.status_of(id) is Status.PASSED]
        chosen = to_send_again(passed, self.options.effort, self.options.seed)
        for judged in pool.answers(tasks_again(chosen), self.clock.at(AGAIN)):
            for verdict in judged.verdicts:
                self.again.add(verdict.id)
                if verdict.failure is not None and verdict.id not in self.failed:
                    self.tally.revise(verdict)
                    self.failed[verdict.id] = verdict
                    self.display.failed(verdict)

    def _judge_further(self, pool: AnyPool, size: int) -> list[CaseId]:
        """Judge more cases for points that the ledger lacks, until it gains none; returns ids."""
        if self.options.cases or self.options.examples:
            return []
        room, judged = FURTHER[self.options.effort], list[CaseId]()
        gaps: set[Point] = set()
        while room > len(judged) and self.clock.is_in_time:
            before, gaps = gaps, self.ledger.gaps(self.tally)
            ids = [] if gaps == before else self._further(gaps, room - len(judged))
            if not ids:
                break
            self.ledger.expect(ids)
            self._judge_cases(pool, ids, size, self.clock.deadline)
            judged += ids
        return judged

    def _further(self, gaps: set[Point], most: int) -> list[CaseId]:
        """Select cases that were not run, a few for each op and dtype with a gap."""
        room = dict.fromkeys(((p.about, p.dtype) for p in gaps), FURTHER_OF_EACH)
        ids: list[CaseId] = []
        for id in further(room, self.options.effort, self.vocabulary):
            is_new = id.level in self.options.levels and str(id) not in self.ledger.places
            if is_new and room[id.op, id.dtype] and len(ids) < most:
                room[id.op, id.dtype] -= 1
                ids.append(id)
        return ids

    def _add(self, verdict: Verdict, shown: Exercised | None) -> None:
        if verdict.status.is_failure and self.known_failures.covers(verdict.id, [verdict.id]):
            verdict = replace(verdict, status=Status.KNOWN)
        self.tally.add(verdict)
        self.ledger.add(verdict, shown)
        if verdict.status.is_failure:
            self.failed[verdict.id] = verdict
            self.display.failed(verdict)

    def _strength(self, hello: Hello) -> Strength:
        """The points and programs that the run judged, and how many there are to judge."""
        options = self.options
        chosen = [] if options.cases else groups_of(options)
        counts = (g.count(options.effort) for g in chosen if g.level != "invalid")
        judged = programs_of(self.tally)
        return Strength(
            self.ledger.judged(hello, self.tally),
            len(self.ledger.cells(hello)),
            judged,
            sum(min(n, options.examples or n) for n in counts) or judged,
            opened(chosen, options.effort, hello, self.tally, options.seed),
        )

    def _failures(self, hello: Hello, *, tries: bool) -> tuple[Failure, ...]:
        """The causes, the most telling first, and choices that are not allowed.

        Where no cause was found, there is one unshrunk failure for each op and symptom. If `tries`,
        the repros are run in a new process.
        """
        causes = sorted(self.causes.results(), key=lambda f: (not f.ordinary, -len(f.cells)))
        if not causes:
            causes = [self._unshrunk(v) for v in one_of_each_op(self._unexplained())[:UNSHRUNK]]
        by_signature = {failure.signature: failure for failure in reversed(causes)}
        failures = [written_to(f, self.options.output) for f in reversed(by_signature.values())]
        passing = self._passing(failures) if tries else frozenset()
        failures = [
            replace(_blamed(f, hello), repeats=f.signature not in passing) for f in failures
        ]
        choices = [failure_at(entry, self.options.output) for entry in self._wrong_choices()]
        known = self.known_failures
        return (*failures, *(f for f in choices if not known.covers(f.signature, ())))

    def _passing(self, failures: Sequence[Failure]) -> frozenset[str]:
        """The signatures of failures whose repros pass in a new process."""
        if self.lost or self.interrupted or not failures:
            return frozenset()
        backend, log = self.options.backend, self.options.log
        found: list[str] = []
        try:
            found.extend(passing(failures, backend, log, self.clock.deadline))
        except KeyboardInterrupt:
            self.interrupted = True
        except BackendError as error:
            self.lost = f"the repros cannot be run in a new process: {error}"
        return frozenset(found)

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
