"""Judges several backends one after the other, about the ops and dtypes that all of them list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from uop.conformance.checks import OptionError
from uop.conformance.report.display import Display
from uop.conformance.report.files import in_names, write_reports, write_repros
from uop.conformance.report.model import Report
from uop.conformance.report.vote import polled
from uop.conformance.run.conform import Conformance
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.run.run import Run
from uop.conformance.suite.vocabulary import vocabulary_of
from uop.spec.errors import BackendError, UnsupportedError


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
            pool = Pool.start(one)
            last.callback(pool.end)
            try:
                pool.hello(1)
            except (BackendError, UnsupportedError) as error:
                missing.append(f"{one.backend}: {error}")
            else:
                pools[one] = pool
        if not pools:
            raise BackendError("\n".join(missing))
        yield pools, missing
