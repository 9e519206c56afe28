"""Judges several backends on the same cases, about the ops and dtypes that all of them list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from uop.conformance.checks import OptionError
from uop.conformance.report.display import Display
from uop.conformance.report.files import in_names, write_reports, write_repros
from uop.conformance.report.model import Report
from uop.conformance.report.vote import polled
from uop.conformance.run.conform import Conformance
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.suite.vocabulary import vocabulary_of
from uop.spec.errors import BackendError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Poll:
    """The report on several backends, with their votes, and the files that could not be written."""

    report: Report
    problems: tuple[str, ...]
    interrupted: bool
    """Whether one was not judged to the end, nor those behind it."""


def conform_all(
    options: Options, backends: Sequence[str], display: Callable[[], Display] = Display
) -> Poll:
    """Judge several backends on the same cases.

    The report names those that do not start; BackendError where none does. After Ctrl-C no other
    is judged: the report is on those that were.
    """
    every = [replace(options, backend=name).checked() for name in backends]
    if len(set(backends)) < len(backends):
        raise OptionError(f"expected different backends, found {', '.join(backends)}")
    reports: list[Report] = []
    problems: list[str] = []
    interrupted = False
    with _all_started(every) as (pools, missing):
        shared = vocabulary_of([pool.hello(1) for pool in pools.values()], options.skips)
        for one, pool in pools.items():
            shown, folder = display(), options.output / in_names(one.backend)
            own = replace(one, output=folder, vocabulary=one.vocabulary or shared)
            try:
                report = Conformance(own, shown).result(pool)
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
    if not reports:
        raise BackendError("\n".join(missing))
    report = polled(reports, missing)
    problems += write_reports(report, options.json, options.junit, options.html)
    return Poll(report, tuple(problems), interrupted)


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
