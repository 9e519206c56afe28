"""Runs the suite on a backend, or several: judges cases, finds causes and writes the report."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from uop.conformance.checks import OptionError
from uop.conformance.coverage.ledger import Ledger, opened, programs_of
from uop.conformance.coverage.points import Point, check_complete
from uop.conformance.protocol.types import Hello
from uop.conformance.report.files import in_names, write_reports, write_repros, written
from uop.conformance.report.model import Conclusion, KnownFailure, Report, Strength
from uop.conformance.report.tally import not_judged
from uop.conformance.report.terminal import Display
from uop.conformance.report.vote import polled
from uop.conformance.run.causes import AnyPool
from uop.conformance.run.known import KnownLine
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.run.replay import conclusions
from uop.conformance.run.run import JUDGING, SEARCHING, Run
from uop.conformance.run.selection import by_priority, groups_of, in_shard, is_narrowed, selected
from uop.conformance.run.tasks import Observe, tasks_of
from uop.conformance.suite.case import LEVELS, CaseId
from uop.conformance.suite.generate import left_out_cases
from uop.conformance.suite.vocabulary import vocabulary_of
from uop.spec.errors import BackendError, UnsupportedError, UopError

MIN_SEARCH_SECONDS = 150.0
"""Without a time, causes are looked for as long as judging took, or these seconds."""
MARGIN = 1.25
"""By so much more time than a run has had for each case it is told to take."""
FURTHER = {"smoke": 0, "default": 256, "full": 2048}
"""By effort the most cases that a run adds for points that the selected cases do not cover."""
FURTHER_OF_EACH = 3
"""The most cases added for one op and dtype before the ledger is read again."""


@dataclass(slots=True, eq=False)
class Conformance(Run):
    """A run of the suite."""

    ids: list[CaseId] = field(default_factory=list)
    known_now: dict[Path, Conclusion] = field(default_factory=dict)
    """The verdicts on the programs of known failures, as they are now."""

    def prepare(self) -> None:
        """Also raise PassError where the suite has no case for an op that may be chosen."""
        super(Conformance, self).prepare()
        if not self.options.cases:
            check_complete(self.options.ops)

    def select(self, hello: Hello) -> None:
        """Select the cases that the options ask for and the backend lists."""
        ids = selected(self.options, self.vocabulary, hello, self.own.ids)
        is_part = is_narrowed(self.options) or not self.vocabulary.is_whole
        self.ledger = Ledger(tuple(ids), is_part)
        self.ids = in_shard(ids, self.options.shard)

    @property
    def expected(self) -> int:
        return len(self.ids)

    def examine(self, pool: AnyPool, size: int) -> None:
        with suppress(UopError):
            # What fails here is tried again at the end, and says why then.
            self._try_known()
        if self.clock.limit is not None:
            self._judge_cases(pool, self.ids, size, self.clock.at(JUDGING))
            self.judge_again(pool, self.ids)
            self._find_causes(pool)
        self._judge_cases(pool, self.tally.without(self.ids), size, self.clock.deadline)
        self.ids += self._judge_further(pool, size)
        self.judge_again(pool, self.ids)
        self._find_causes(pool)
        if self.options.is_whole and self.card is None and self.clock.is_in_time:
            self.card = pool.ask(Observe())

    def report(self, hello: Hello, options: Options, *, tries: bool) -> Report:
        known, missing = self._known(), self.ledger.missing(hello, self.tally)
        needed = () if options.shard else missing
        report = self.tallied(hello, options, known, needed, tries=tries)
        # What one shard lacks another one may have: `uop merge` decides.
        every = dict.fromkeys((*missing, *report.summary.missing))
        untried = not_judged(hello, self.tally)
        summary = replace(report.summary, missing=tuple(every), untried=untried)
        if summary.open_because and not self.lost:
            summary = replace(summary, open_because=summary.open_because + self._more_time())
        report = replace(report, summary=summary)
        ledger, strength = self.ledger.sums(self.tally), self._strength(hello)
        return replace(report, ledger=ledger, strength=strength)

    def _more_time(self) -> str:
        """The time in which all cases would be judged, by the rate of this run; empty: all were."""
        judged = sum(self.tally.counts.values())
        if self.clock.limit is None or not 0 < judged < len(self.ids):
            return ""
        minutes = self.clock.limit / 60 * len(self.ids) / judged * MARGIN
        return f"; at this rate --time {math.ceil(minutes)}m would do"

    def _judge_cases(
        self, pool: AnyPool, ids: list[CaseId], size: int, deadline: float | None
    ) -> None:
        """Judge cases until all are judged or the deadline is over."""
        tasks = tasks_of(ids, size)
        if deadline is not None:
            turns, workers = by_priority(ids, self.options.seed), self.options.workers
            tasks = tasks_of(turns, size, lambda: self.clock.cases_in_time(self.tally, workers))
        self.judge_cases(pool, tasks, deadline)

    def _find_causes(self, pool: AnyPool) -> None:
        """Find causes as long as judging took, or until the time is over."""
        # Which case shows a cause must not depend on the process that was first.
        places = {str(id): place for place, id in enumerate(self.ids)}
        self.failed = dict(sorted(self.failed.items(), key=lambda item: places[item[0]]))
        now = time.monotonic()
        least = now + max(MIN_SEARCH_SECONDS, now - self.clock.judging_since)
        self.find_causes(pool, self.clock.at(SEARCHING) or least)

    def _known(self) -> tuple[KnownFailure, ...]:
        """The state of each entry about this run, once the programs of all have been run."""
        if not self.lost and not self.interrupted:
            try:
                self._try_known()
            except KeyboardInterrupt:
                self.interrupted = True
            except UopError as error:
                self.lost = str(error)
        in_time = self.clock.is_in_time
        return tuple(self.known_failures.results(self._entries(), self.known_now, in_time))

    def _try_known(self) -> None:
        """Run the programs of known failures that have not been run: first of all in a run.

        BackendError where the backend is lost on them.
        """
        paths = dict.fromkeys(map(self.known_failures.file.repro_of, self._entries()))
        if repros := [path for path in paths if path not in self.known_now]:
            options = self.options
            try:
                self.known_now |= conclusions(
                    repros, options.backend, options.log, self.clock.deadline
                )
            except UopError as error:
                what = f"the programs of {options.known} cannot be judged"
                raise BackendError(f"{what}: {error}") from None

    def _entries(self) -> list[KnownLine]:
        """The entries about this run."""
        options = self.options
        narrowed = is_narrowed(options) or options.levels != LEVELS or bool(options.shard)
        ids = {str(id) for id in self.ids} if narrowed else None
        return self.known_failures.selected(ids)

    def _judge_further(self, pool: AnyPool, size: int) -> list[CaseId]:
        """Judge more cases for points that the ledger lacks, until it gains none; returns ids."""
        stops = self.options.fail_fast and self.failed
        if self.options.cases or self.options.examples or self.options.shard or stops:
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
        for id in left_out_cases(room, self.options.effort, self.vocabulary):
            is_new = id.level in self.options.levels and str(id) not in self.ledger.places
            if is_new and room[id.op, id.dtype] and len(ids) < most:
                room[id.op, id.dtype] -= 1
                ids.append(id)
        return ids

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


def conform(
    options: Options, display: Display | None = None, pool: AnyPool | None = None
) -> Report:
    """Judge a backend, with `pool` where one has been started from these (checked) options.

    Ctrl-C ends the run early: the report says so, and has the results so far. OptionError where a
    file could not be written; the verdict is shown before.
    """
    shown = display or Display()
    report = Conformance(options if pool else options.checked(), shown).result(pool)
    return written(report, write_repros(report.failures), options, shown)


@dataclass(frozen=True, slots=True)
class Poll:
    """The report on several backends, with their votes, and the files that could not be written."""

    report: Report
    problems: tuple[str, ...]
    interrupted: bool
    """Whether one was not judged to the end, nor those behind it."""


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports on several backends, and why there is none on others; the rest as of `Poll`."""

    every: Sequence[Report]
    missing: Sequence[str]
    problems: Sequence[str]
    interrupted: bool

    def poll(self, report: Report, options: Options) -> Poll:
        """The report on all backends, written to the files of the options."""
        problems = write_reports(report, options.json, options.junit, options.html)
        return Poll(report, (*self.problems, *problems), self.interrupted)


def conform_all(
    options: Options, backends: Sequence[str], display: Callable[[], Display] = Display
) -> Poll:
    """Judge several backends on the same cases; raises the errors of `reports_on`."""
    found = reports_on(options, backends, display, Conformance)
    return found.poll(polled(found.every, found.missing), options)


def reports_on(
    options: Options,
    backends: Sequence[str],
    display: Callable[[], Display],
    run: Callable[[Options, Display], Run],
) -> Reports:
    """Run each of several backends, which share the vocabulary of random programs.

    Those that do not start are named; BackendError where none does. After Ctrl-C no other is
    judged.
    """
    every = checked_for(options, backends)
    with _all_started(every) as (pools, missing):
        shared = vocabulary_of([pool.hello(1) for pool in pools.values()], options.skips)
        alike = ((replace(o, vocabulary=o.vocabulary or shared), p) for o, p in pools.items())
        found = reports_of(alike, display, run, missing)
    if not found.every:
        raise BackendError("\n".join(missing))
    return found


def checked_for(options: Options, backends: Sequence[str]) -> list[Options]:
    """The options for each of several backends. OptionError where they are not different."""
    every = [replace(options, backend=name).checked() for name in backends]
    if len(set(backends)) < len(backends):
        raise OptionError(f"expected different backends, found {', '.join(backends)}")
    return every


def reports_of(
    pools: Iterable[tuple[Options, Pool]],
    display: Callable[[], Display],
    run: Callable[[Options, Display], Run],
    missing: list[str],
) -> Reports:
    """Run backends one after the other, each in its pool; those that are lost are named too."""
    reports: list[Report] = []
    problems: list[str] = []
    interrupted = False
    for one, pool in pools:
        shown = display()
        try:
            report = run(replace(one, output=folder_of(one.backend, one)), shown).result(pool)
        except (BackendError, UnsupportedError) as error:
            missing.append(f"{one.backend}: {error}")
            continue
        except KeyboardInterrupt:
            if not reports:
                raise
            interrupted = True
            break
        problems += write_repros(report.failures)
        shown.finished(report)
        reports.append(report)
        interrupted = report.summary.interrupted
        if interrupted:
            break
    return Reports(reports, missing, problems, interrupted)


def folder_of(backend: str, options: Options) -> Path:
    """Where the repros of one of several backends are written."""
    return options.output / in_names(backend)


@contextmanager
def _all_started(every: Sequence[Options]) -> Iterator[tuple[dict[Options, Pool], list[str]]]:
    """A pool for each backend that starts, and why the others do not. BackendError for none."""
    pools: dict[Options, Pool] = {}
    missing: list[str] = []
    with ExitStack() as last:
        for one in every:
            pool = last.enter_context(Pool.start(one))
            try:
                pool.hello(1)
            except (BackendError, UnsupportedError) as error:
                missing.append(f"{one.backend}: {error}")
            else:
                pools[one] = pool
        if not pools:
            raise BackendError("\n".join(missing))
        yield pools, missing
