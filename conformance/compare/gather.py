"""Gathers the reports of a comparison: judges backends, and reads those of earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uop.conformance.checks import COMMAND, OptionError
from uop.conformance.compare.disagreements import MOST, disagreements
from uop.conformance.native import check_native
from uop.conformance.report.format import read_report
from uop.conformance.report.model import Failure, Report, Tried
from uop.conformance.report.options import ReportedOptions, in_words
from uop.conformance.report.terminal import Display
from uop.conformance.report.vote import with_votes
from uop.conformance.run.commands import SELECTING
from uop.conformance.run.conform import Conformance, Poll, Reports, checked_for, reports_of
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.run.replay import tried
from uop.conformance.shrink.signature import SIGNATURES
from uop.conformance.suite.case import FUZZ, GENERATOR
from uop.spec.case import FileCase
from uop.spec.distribution import own_version
from uop.spec.errors import BackendError, InvalidError, MalformedError, UnsupportedError
from uop.spec.text.profile_text import parse_profile
from uop.spec.text.uop_file import parse_file

SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Read:
    """A report, and the file that it comes from."""

    source: str
    report: Report


def is_report(source: str) -> bool:
    """Whether an argument names the report of an earlier run, not a backend."""
    return source.endswith(SUFFIX) and not source.startswith(COMMAND)


def compare(
    sources: Sequence[str], options: Options, display: Callable[[], Display] = Display
) -> Poll:
    """Judge the backends among the sources one after the other, and read the reports.

    Where there are reports, their options choose the cases. The report has no times, so that equal
    results give equal files. BackendError where there is nothing to compare, NativeError where a
    backend would run native code of a report that is not allowed.
    """
    read = list(_read(sources))
    names = [source for source in sources if not is_report(source)]
    for one in read if names else ():
        check_native(_programs(one.report), native=options.native)
    options = _selecting(read, names, options)
    missing = [why for one in read if one.report.vote for why in one.report.vote.missing]
    pools = ((one, Pool.start(one)) for one in checked_for(options, names))
    judged = reports_of(pools, display, Conformance, missing)
    by_source: dict[str, list[Report]] = {}
    now = [Read(report.options.backend, report) for report in judged.every]
    for one in (*read, *now):
        by_source.setdefault(one.source, []).append(without_times(one.report))
    every = [report for source in sources for report in by_source.get(source, ())]
    if not every:
        raise BackendError("\n".join(missing))
    found = _tried_elsewhere(replace(judged, every=every), names, options)
    report = compared(found.every, _still(missing, found.every))
    return Poll(report, tuple(found.problems), found.interrupted)


def compared(every: Sequence[Report], missing: Sequence[str] = ()) -> Report:
    """The first report, with the others and the votes on each disagreement."""
    return with_votes(every, [row.vote for row in disagreements(every)], missing)


def without_times(report: Report) -> Report:
    """A report without what differs between runs of the same results, nor what no form shows."""
    summary = replace(report.summary, seconds=0.0, searching=0.0, peak_bytes=0)
    return replace(
        report, summary=summary, origin=None, ledger=None, rules=None, others=None, vote=None,
        case_failures={}, graphs=None,
    )  # fmt: skip


def _read(sources: Sequence[str]) -> Iterator[Read]:
    """The reports in the files among the sources, for several backends each of them."""
    for source in filter(is_report, sources):
        for report in read_report(Path(source)).every:
            _require_run_of_suite(source, report.options)
            yield Read(source, report)


def _programs(report: Report) -> Iterator[FileCase]:
    """The programs of a report's failures, without texts that this version cannot read."""
    for failure in report.failures:
        with suppress(MalformedError, InvalidError):
            yield from parse_file(failure.text, failure.repro).cases


def _require_run_of_suite(source: str, options: ReportedOptions) -> None:
    """OptionError for other reports than those of whole runs of `uop conform`."""
    found = ""
    if options.effort == FUZZ:
        found = "one of `uop fuzz`, whose programs are others each time"
    elif options.exported is not None:
        found = "one of `uop judge`"
    elif options.shard:
        found = f"that of shard {options.shard}; `uop merge` joins the shards"
    if found:
        raise OptionError(f"{source}: expected a report of `uop conform`, found {found}")


def _selecting(read: Sequence[Read], names: Sequence[str], options: Options) -> Options:
    """The options with the selection of the reports, if any.

    OptionError unless the reports can be compared with each other, and with what is judged now.
    """
    named = [(one.report.options.backend, one.source) for one in read]
    _require_different([*named, *((name, "the command line") for name in names)])
    if not read:
        return options
    first, *others = read
    for other in others:
        _require_alike(first.source, _comparable(first.report), other)
    if names:
        now = {"suite": own_version(), "generator": GENERATOR, "signatures": SIGNATURES}
        _require_alike("this uop", now, first)
    return replace(options, **{n: getattr(first.report.options, n) for n in SELECTING})


def _require_different(named: Sequence[tuple[str, str]]) -> None:
    """OptionError where a backend comes twice, and where there are not two."""
    seen: dict[str, str] = {}
    for name, source in named:
        if name in seen:
            places = " and ".join(dict.fromkeys((seen[name], source)))
            raise OptionError(f"expected different backends, found {name} twice: {places}")
        seen[name] = source
    if len(seen) < 2:
        found = f"{len(seen)}: {', '.join(seen)}; `uop conform` judges one"
        raise OptionError(f"expected at least two backends, found {found}")


def _comparable(report: Report) -> dict[str, Any]:
    """What reports that are compared have in common, by its name."""
    of_suite = {
        "suite": report.suite,
        "generator": report.generator.version,
        "signatures": report.signatures,
    }
    return of_suite | {name: getattr(report.options, name) for name in SELECTING}


def _require_alike(source: str, expected: dict[str, Any], other: Read) -> None:
    found = _comparable(other.report)
    for name, value in expected.items():
        if found[name] != value:
            raise OptionError(
                f"{other.source}: not comparable: expected {name} {in_words(value)} as in "
                f"{source}, found {in_words(found[name])}"
            )


def _still(missing: Sequence[str], every: Sequence[Report]) -> list[str]:
    """Why backends did not start, the last reason of each, without those that have a report."""
    judged = {report.options.backend for report in every}
    reasons = {why.partition(": ")[0]: why for why in missing}
    return [why for name, why in reasons.items() if name not in judged]


def _tried_elsewhere(found: Reports, names: Sequence[str], options: Options) -> Reports:
    """Run each program on which backends disagree on those that have not shown it themselves."""
    rows, every = disagreements(found.every), list(found.every)
    try:
        for place, report in enumerate(found.every if not found.interrupted else ()):
            name = report.options.backend
            causes = [row.failure for row in rows[:MOST] if row.backend != name]
            if name in names and causes and not report.summary.lost:
                every[place] = replace(report, tried=_tried(report, causes, options))
    except KeyboardInterrupt:
        found = replace(found, interrupted=True)
    return replace(found, every=every)


def _tried(report: Report, causes: Sequence[Failure], options: Options) -> tuple[Tried, ...]:
    """What a backend gives on these programs, as far as it is not lost on them."""
    profile, came = parse_profile(report.profile), list[Tried]()
    with suppress(BackendError, UnsupportedError):
        for one in tried(causes, report.options.backend, profile, options.timeout):
            came.append(one)
    return tuple(came)
