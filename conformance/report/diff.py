"""Compares two reports: what got better and what got worse.

A run that ends early judges as many cases as the machine lets it. Of such runs only the cases that
both have judged are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum

from uop.conformance.judging.verdict import Status
from uop.conformance.report.model import (
    SKIPPED,
    Cell,
    CellPlace,
    Conclusion,
    Failure,
    KnownFailure,
    Report,
    cell_of,
    conclusion_of,
    counted,
)
from uop.conformance.report.options import ReportedOptions, in_words
from uop.conformance.report.tally import statuses_of

VERDICTS = (Conclusion.CONFORMS, Conclusion.INCONCLUSIVE, Conclusion.DOES_NOT)
"""The conclusions, best first."""
DEMANDS = frozenset({"profile", "known"})
"""Options that `notes` does not list: the profile and the known failures are compared apart."""
CARD = "card"
"""The level of a choice that is made in two ways."""
SEVERITY = {"failed": 3, "known": 3, "not run": 2, "skipped": 1, "passed": 0}
"""The severity of each state of a cell. A known failure is as bad as an unknown one."""


class Turn(Enum):
    """Whether a change is good or bad for the backend; a failure that became known is neither."""

    WORSE = "worse"
    BETTER = "better"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Change:
    """One change: a line of text, and its direction."""

    turn: Turn
    text: str


def changes(a: Report, b: Report) -> list[Change]:
    """List the changes from report `a` to report `b`.

    For several backends, the reports on each common backend are compared.
    """
    before, after = _by_backend(a), _by_backend(b)
    if len(before) == len(after) == 1:
        return _changes(a, b)
    return [
        Change(change.turn, f"{name}: {change.text}")
        for name in before
        if name in after
        for change in _changes(before[name], after[name])
    ]


def _changes(a: Report, b: Report) -> list[Change]:
    if _ends_early(a, b):
        a, b = _shared(a, b)
    return [*_verdict(a, b), *_causes(a, b), *_cells(a, b), *_lines(a, b)]


def _shared(a: Report, b: Report) -> tuple[Report, Report]:
    """Two reports as if their runs had judged only what both have judged.

    A report that does not list its cases shows that of its ops and dtypes alone: then failures
    alone are compared.
    """
    before, after = dict(statuses_of(a)), dict(statuses_of(b))
    if before and after:
        return _restricted(a, before, after), _restricted(b, after, before)
    judged = [{cell.place for cell in one.cells if cell.programs} for one in (a, b)]
    return _of_failures(a, judged[0] & judged[1]), _of_failures(b, judged[0] & judged[1])


def _of_failures(report: Report, places: Collection[CellPlace]) -> Report:
    """A report without what it says of anything but failures in some cells."""
    cells = tuple(
        replace(cell, skipped_reason=None, skipped={}, max_ulp=0.0)
        for cell in report.cells
        if cell.place in places
    )
    verdict = conclusion_of(_failing(report) or report.stale, False, 1)
    return replace(report, cells=cells, summary=replace(report.summary, verdict=verdict))


def _ends_early(a: Report, b: Report) -> bool:
    """Whether one of two runs need not have judged all that it was asked for."""
    return any(
        one.options.seconds is not None or one.summary.interrupted or bool(one.summary.lost)
        for one in (a, b)
    )


def _restricted(report: Report, own: Mapping[str, Status], other: Mapping[str, Status]) -> Report:
    """A report as if its run had judged the cases alone that the other one has judged too.

    It has the causes of which a case passed there. Largest errors stay where both have judged the
    same cases of an op and a dtype.
    """
    counts: dict[CellPlace, Counter[Status]] = {}
    for id in own.keys() & other.keys():
        counts.setdefault(cell_of(id), Counter())[own[id]] += 1
    unlike = {cell_of(id) for id in own.keys() ^ other.keys()}
    cells = [
        replace(
            _cell_of(cell, counts[cell.place]), max_ulp=0 if cell.place in unlike else cell.max_ulp
        )
        for cell in report.cells
        if cell.place in counts
    ]
    total = sum(counts.values(), Counter())
    failures = tuple(
        failure
        for failure in report.failures
        if failure.level == CARD or any(other.get(id) is Status.PASSED for id in failure.cases)
    )
    wrong = total[Status.FAILED] + total[Status.CRASHED]
    summary = replace(
        report.summary,
        verdict=conclusion_of(wrong or report.stale, not total, wrong + total[Status.PASSED]),
        failed=total[Status.FAILED],
        crashed=total[Status.CRASHED],
        known=total[Status.KNOWN],
    )
    return replace(report, cells=tuple(cells), failures=failures, summary=summary)


def _cell_of(cell: Cell, counts: Mapping[Status, int]) -> Cell:
    """A cell with other counts."""
    failed = counts[Status.FAILED] + counts[Status.CRASHED]
    skipped = counts[Status.SKIPPED]
    return replace(
        cell,
        programs=failed + counts[Status.PASSED] + counts[Status.KNOWN],
        failed=failed,
        known=counts[Status.KNOWN],
        skipped={cell.skipped_reason or "": skipped} if skipped else {},
    )


def _by_backend(report: Report) -> Mapping[str, Report]:
    """The reports by backend, as named on the command line."""
    return {one.options.backend: one for one in report.every}


def notes(a: Report, b: Report) -> list[str]:
    """Notes on what makes two reports hard to compare: other backend, suite, profile or options."""
    options = [option.name for option in fields(ReportedOptions) if option.name not in DEMANDS]
    parts = [
        ("suite", a.suite, b.suite),
        ("backend", _who(a), _who(b)),
        ("profile", a.profile, b.profile),
        ("signatures", a.signatures, b.signatures),
        *((name, getattr(a.options, name), getattr(b.options, name)) for name in options),
        ("other backends", *(tuple(_by_backend(report))[1:] for report in (a, b))),
        ("cut short", a.summary.interrupted, b.summary.interrupted),
    ]
    lines = (f"not the same {n}: {in_words(x)}, then {in_words(y)}" for n, x, y in parts if x != y)
    return [*dict.fromkeys(lines), *_reached(a, b)]


def _reached(a: Report, b: Report) -> Iterator[str]:
    """How many cases are compared, where a run ended early."""
    if _ends_early(a, b):
        before, after = dict(statuses_of(a)), dict(statuses_of(b))
        both = counted(len(before.keys() & after.keys()), "case")
        first, second = before.keys() - after, after.keys() - before
        if first or second:
            yield (
                f"compared on the {both} that both runs judged; the first "
                f"judged {len(first):,} more, the second {len(second):,}"
            )


def _who(report: Report) -> str:
    return f"{report.backend.name} {report.backend.version} {report.backend.device}"


def _turn(before: float, after: float) -> Turn:
    """The direction of a change of a count where less is better."""
    if before == after:
        return Turn.NEITHER
    return Turn.BETTER if after < before else Turn.WORSE


def _verdict(a: Report, b: Report) -> Iterator[Change]:
    """The change of the verdict; unless inconclusive, the failures determine its direction."""
    before, after = _verdict_of(a), _verdict_of(b)
    if Conclusion.INCONCLUSIVE in (a.conclusion, b.conclusion):
        turn = _turn(*(VERDICTS.index(report.conclusion) for report in (a, b)))
    else:
        turn = _turn(_failing(a), _failing(b))
    if before != after:
        yield Change(turn, f"verdict: {before}, then {after}")


def _verdict_of(report: Report) -> str:
    verdict = report.conclusion
    but = f", but for {report.excused}" if report.excused else ""
    return f"{verdict}{but}" if verdict is Conclusion.CONFORMS else verdict


def _failing(report: Report) -> int:
    """The number of failures, known or not."""
    twofold = sum(failure.level == CARD for failure in report.failures)
    return report.summary.wrong + report.summary.known + twofold


def _cells(a: Report, b: Report) -> Iterator[Change]:
    before, after = ({cell.place: cell for cell in report.cells} for report in (a, b))
    for place in sorted(before.keys() | after.keys()):
        yield from _cell("/".join(place), before.get(place), after.get(place))


def _cell(name: str, a: Cell | None, b: Cell | None) -> Iterator[Change]:
    """The changes of a cell: its state, or else its counts."""
    before, after = _words_on(a), _words_on(b)
    turn = _turn(*(SEVERITY[cell.state if cell else "not run"] for cell in (a, b)))
    if turn is not Turn.NEITHER:
        yield Change(turn, f"{name}: {before}, then {after}")
    elif a is not None and b is not None:
        if (a.failed, a.known) != (b.failed, b.known):
            fails = (cell.failed + cell.known for cell in (a, b))
            yield Change(_turn(*fails), f"{name}: {before}, then {after}")
        for what, was, now in (
            ("skipped", sum(a.skipped.values()), sum(b.skipped.values())),
            ("largest error in ULP", a.max_ulp, b.max_ulp),
        ):
            if was != now:
                yield Change(_turn(was, now), f"{name}: {what} {was:,g}, then {now:,g}")


def _words_on(cell: Cell | None) -> str:
    if cell is None:
        return "not run"
    match cell.state:
        case "passed":
            return "passed"
        case "skipped":
            return f"skipped ({cell.skipped_reason})"
    state = "failed" if cell.failed else "known to fail"
    more = f"; {cell.known:,} more known" if cell.failed and cell.known else ""
    return f"{state} ({cell.failed or cell.known:,} of {counted(cell.programs, 'program')}{more})"


def _causes(a: Report, b: Report) -> Iterator[Change]:
    before, after = ({f.signature: f for f in report.failures} for report in (a, b))
    # The same cause may be shrunk from another of its cases.
    for one, other in ((before, after), (after, before)):
        cases = {case: f.signature for f in other.values() for case in f.cases}
        for signature in sorted(one.keys() - other.keys()):
            same = cases.get(one[signature].id)
            if same is not None and same not in one:
                other[signature] = other.pop(same)
    for signature in sorted(before.keys() - after.keys()):
        line = _line_of(before[signature], b)
        if line is None:
            yield Change(Turn.BETTER, f"cause gone: {signature}")
        else:
            yield Change(Turn.NEITHER, f"cause known now: {signature}: {line.reason}")
    for signature in sorted(after.keys() - before.keys()):
        failure = after[signature]
        message = failure.message.partition("\n")[0]
        text = f"{signature}: {failure.id}: {message}"
        if _line_of(failure, a) is None:
            yield Change(Turn.WORSE, f"new cause: {text}")
        else:
            yield Change(Turn.NEITHER, f"cause no longer known: {text}")


def _line_of(failure: Failure, report: Report) -> KnownFailure | None:
    """The known failure of a report that covers a cause, if any."""
    names = {failure.signature, failure.id}
    lines = (line for line in report.known if line.state in ("known", SKIPPED))
    return next((line for line in lines if names & {line.key, *line.cases}), None)


def _lines(a: Report, b: Report) -> Iterator[Change]:
    """The changes of state of the known failures that both reports have."""
    before, after = ({line.key: line.state for line in report.known} for report in (a, b))
    for key in sorted(before.keys() & after.keys()):
        was, now = before[key], after[key]
        if was != now:
            turn = _turn(was != "fixed", now != "fixed")
            yield Change(turn, f"known failure {key}: {was}, then {now}")
