"""What is better and what is worse in one report than in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum

from uop.conformance.report.asked import Asked
from uop.conformance.report.model import (
    Cell,
    Conclusion,
    Failure,
    KnownFailure,
    Report,
    counted,
)

VERDICTS = (Conclusion.CONFORMS, Conclusion.INCONCLUSIVE, Conclusion.DOES_NOT)
"""The better ones first."""
DEMANDS = frozenset({"profile", "known"})
"""What a run was asked to judge by; what it judged by is told apart from the options."""
STATES = {"failed": 3, "known": 3, "not run": 2, "skipped": 1, "passed": 0}
"""What a cell may be, and how bad that is. To write a failure down makes no backend better."""


class Turn(Enum):
    """What a change is for the backend. It is neither where failures became known, or ceased to."""

    WORSE = "worse"
    BETTER = "better"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changed, in a line, and what that is."""

    turn: Turn
    text: str


def changes(a: Report, b: Report) -> list[Change]:
    """From report `a` to report `b`: the verdict, cells, causes, largest errors, skipped cases.

    Of several backends those are compared that both are about, each with itself.
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
    return [*_verdict(a, b), *_cells(a, b), *_causes(a, b), *_lines(a, b)]


def _by_backend(report: Report) -> Mapping[str, Report]:
    """The reports of one, by what the backends were named on the command line."""
    return {one.options.backend: one for one in report.every}


def notes(a: Report, b: Report) -> list[str]:
    """What makes two reports hard to compare: another backend, suite, profile, choice of cases."""
    options = [option.name for option in fields(Asked) if option.name not in DEMANDS]
    parts = [
        ("suite", a.suite, b.suite),
        ("backend", _who(a), _who(b)),
        ("profile", a.profile, b.profile),
        *((name, getattr(a.options, name), getattr(b.options, name)) for name in options),
        ("other backends", *(tuple(_by_backend(report))[1:] for report in (a, b))),
        ("cut short", a.summary.interrupted, b.summary.interrupted),
    ]
    found = (f"{name}: {_words(x)}, then {_words(y)}" for name, x, y in parts if x != y)
    return list(dict.fromkeys(found))


def _who(report: Report) -> str:
    return f"{report.backend.name} {report.backend.version} {report.backend.device}"


def _words(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _turn(before: float, after: float) -> Turn:
    """Of something that there should be little of."""
    if before == after:
        return Turn.NEITHER
    return Turn.BETTER if after < before else Turn.WORSE


def _verdict(a: Report, b: Report) -> Iterator[Change]:
    """By what fails, known or not, if enough was seen to tell."""
    before, after = _verdict_of(a), _verdict_of(b)
    if Conclusion.INCONCLUSIVE in (a.conclusion, b.conclusion):
        turn = _turn(*(VERDICTS.index(report.conclusion) for report in (a, b)))
    else:
        turn = _turn(_failing(a), _failing(b))
    if before != after:
        yield Change(turn, f"verdict: {before}, then {after}")


def _verdict_of(report: Report) -> str:
    verdict, known = report.conclusion, report.summary.known
    but = f", but for {counted(known, 'known failure')}" if known else ""
    return f"{verdict}{but}" if verdict is Conclusion.CONFORMS else verdict


def _failing(report: Report) -> int:
    """What the backend does wrong, whether it is known or not."""
    twofold = sum(failure.level == "card" for failure in report.failures)
    return report.summary.wrong + report.summary.known + twofold


def _cells(a: Report, b: Report) -> Iterator[Change]:
    before, after = ({cell.place: cell for cell in report.cells} for report in (a, b))
    for place in sorted(before.keys() | after.keys()):
        yield from _cell("/".join(place), before.get(place), after.get(place))


def _cell(name: str, a: Cell | None, b: Cell | None) -> Iterator[Change]:
    """One change at most of its state: a cell of another state has other numbers as well."""
    before, after = _words_on(a), _words_on(b)
    turn = _turn(*(STATES[cell.state if cell else "not run"] for cell in (a, b)))
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
    for signature in sorted(before.keys() - after.keys()):
        line = _line_of(before[signature], b)
        if line is None:
            yield Change(Turn.BETTER, f"cause gone: {signature}")
        else:
            yield Change(Turn.NEITHER, f"cause known now: {signature}: {line.reason}")
    for signature in sorted(after.keys() - before.keys()):
        failure = after[signature]
        message = failure.message.partition("\n")[0]
        said = f"{signature}: {failure.id}: {message}"
        if _line_of(failure, a) is None:
            yield Change(Turn.WORSE, f"new cause: {said}")
        else:
            yield Change(Turn.NEITHER, f"cause no longer known: {said}")


def _line_of(failure: Failure, report: Report) -> KnownFailure | None:
    """The known failure under which a cause stands in a report."""
    names = {failure.signature, failure.id}
    lines = (line for line in report.known if line.state == "known")
    return next((line for line in lines if names & {line.key, *line.cases}), None)


def _lines(a: Report, b: Report) -> Iterator[Change]:
    """The known failures of both that were fixed, have expired, or no longer are so."""
    before, after = ({line.key: line.state for line in report.known} for report in (a, b))
    for key in sorted(before.keys() & after.keys()):
        was, now = before[key], after[key]
        if was != now:
            turn = _turn(was != "fixed", now != "fixed")
            yield Change(turn, f"known failure {key}: {was}, then {now}")
