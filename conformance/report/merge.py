"""Merges the reports of the shards of a run into the report of the whole run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import reduce
from typing import Any, TypeVar

from uop.conformance.checks import OptionError
from uop.conformance.report.model import (
    Against,
    Cell,
    Evidence,
    Failure,
    KindSums,
    KnownFailure,
    LedgerSums,
    LeftOut,
    Report,
    Strength,
    Summary,
    conclusion_of,
)
from uop.conformance.report.tally import NOT_RUN, declined, main_reason, why_open

ALIKE: dict[str, Callable[[Report], Any]] = {
    "suite": lambda r: r.suite,
    "backend": lambda r: r.backend,
    "profile": lambda r: r.profile,
    "generator": lambda r: r.generator,
    "signatures": lambda r: r.signatures,
    "options": lambda r: replace(r.options, shard=""),
    "baseline": lambda r: r.against and r.against.backend,
}
"""What the reports of the shards of one run share."""
FIRST = 2
"""The number of case ids listed as evidence of a point."""
SUMMED = ("programs", "checks", "elements", "measured", "passed", "failed", "skipped", "crashed",
          "known", "seconds", "searching", "again", "retried", "judges_replaced")  # fmt: skip
T = TypeVar("T")


def merged(reports: Sequence[Report]) -> Report:
    """Merge the reports of all shards of a run, given in any order.

    OptionError where they are not of one run, or a shard is missing or occurs twice. Seconds are
    those of all shards together.
    """
    for report in reports[1:]:
        if difference := unlike(reports[0], report):
            raise OptionError(f"expected reports of one run, found another {difference}")
    _require_all([report.options.shard for report in reports])
    return joined(sorted(reports, key=lambda r: int(r.options.shard.partition("/")[0])))


def unlike(a: Report, b: Report) -> str:
    """In what two reports cannot be of one run, and both of it; empty where they can."""
    for what, of in ALIKE.items():
        if of(a) != of(b):
            return f"{what}: {' and '.join(_differing(of(a), of(b)))}"
    return ""


def _differing(a: object, b: object) -> tuple[str, str]:
    """Two values as text; of dataclasses the fields that differ."""
    if not (is_dataclass(a) and is_dataclass(b)):
        return str(a), str(b)
    differing = [f.name for f in fields(a) if getattr(a, f.name) != getattr(b, f.name)]
    one, other = (", ".join(f"{name} {getattr(x, name)}" for name in differing) for x in (a, b))
    return one, other


def joined(reports: Sequence[Report]) -> Report:
    """Join reports of parts of one run."""
    first = reports[0]
    ledgers = [r.ledger for r in reports if r.ledger is not None]
    baselines = [r.against for r in reports if r.against is not None]
    strengths = [r.strength for r in reports if r.strength is not None]
    failures = _failures(failure for report in reports for failure in report.failures)
    known = _by_key(reports, "known", "key", _worse)
    missing = _in_all([report.summary.missing for report in reports])
    return replace(
        first,
        options=replace(first.options, shard=""),
        summary=_summary([r.summary for r in reports], failures, known, missing),
        cells=_by_key(reports, "cells", "place", _one_cell),
        failures=failures,
        known=known,
        unexplained=tuple(id for report in reports for id in report.unexplained),
        cases=_cases(reports),
        card=next((report.card for report in reports if report.card is not None), None),
        ledger=_ledger(ledgers) if ledgers else None,
        against=_against(baselines) if baselines else None,
        strength=_strength(strengths, len(missing)) if strengths else None,
        rules=dict(sum((Counter(r.rules or {}) for r in reports), Counter())) or None,
    )


def _require_all(shards: Sequence[str]) -> None:
    """OptionError unless these are the shards 1/n to n/n, or each another one of a fuzz run.

    Those have a number alone, as no shard of such a run is the last.
    """
    if all(map(str.isdecimal, shards)) and len(set(shards)) == len(shards):
        return
    count = max((int(shard.partition("/")[2] or 1) for shard in shards if "/" in shard), default=1)
    expected = [f"{k}/{count}" for k in range(1, count + 1)]
    if Counter(shards) != Counter(expected):
        found = ", ".join(shard or "a report of a whole run" for shard in shards)
        raise OptionError(
            f"expected each shard of a run once, 1/{count} to {count}/{count}; found {found}"
        )


def _by_key(
    reports: Iterable[Report], name: str, key: str, join: Callable[[T, T], T]
) -> tuple[T, ...]:
    """A field of all reports, its items with the same key joined, in order of the keys."""
    groups: dict[Any, list[T]] = {}
    for report in reports:
        for item in getattr(report, name):
            groups.setdefault(getattr(item, key), []).append(item)
    return tuple(reduce(join, groups[k]) for k in sorted(groups))


def _one_cell(a: Cell, b: Cell) -> Cell:
    """One cell for the programs of two."""
    measured = a.measured + b.measured
    constrained = a.constrained_share * a.measured + b.constrained_share * b.measured
    skipped = dict(sorted((Counter(a.skipped) + Counter(b.skipped)).items()))
    histogram = a.histogram or b.histogram
    if a.histogram and b.histogram:
        histogram = tuple(x + y for x, y in zip(a.histogram, b.histogram, strict=True))
    largest = [one for one in (a.largest, b.largest) if one is not None]
    return replace(
        a,
        programs=a.programs + b.programs,
        elements=a.elements + b.elements,
        measured=measured,
        constrained_share=constrained / measured if measured else 1.0,
        failed=a.failed + b.failed,
        known=a.known + b.known,
        skipped_reason=main_reason(skipped),
        skipped=skipped,
        max_ulp=max(a.max_ulp, b.max_ulp),
        largest=min(largest, key=lambda one: (-one.ulp, one.id), default=None),
        histogram=histogram,
    )


def _failures(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """One failure for each signature: the first, with the cases of all."""
    causes: dict[str, Failure] = {}
    for failure in failures:
        known = causes.setdefault(failure.signature, failure)
        cases = tuple(dict.fromkeys((*known.cases, *failure.cases)))
        causes[failure.signature] = replace(known, cases=cases)
    return tuple(causes.values())


def _worse(a: KnownFailure, b: KnownFailure) -> KnownFailure:
    """A line of the file of known failures by both runs: stale if either says so."""
    cases = tuple(sorted({*a.cases, *b.cases}))
    return replace(b if b.stale else a, cases=cases, note="" if cases else a.note)


def _in_all(every: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The places without evidence in any shard; without `3 of 9 ops and dtypes`, which differs."""
    left = set.intersection(*({text.partition(":")[0] for text in one} for one in every))
    places = {place for place in left if " of " not in place}
    return tuple(text for text in every[0] if text.partition(":")[0] in places)


def _summary(
    every: Sequence[Summary],
    failures: Sequence[Failure],
    known: Sequence[KnownFailure],
    missing: tuple[str, ...],
) -> Summary:
    sums = {name: sum(getattr(one, name) for one in every) for name in SUMMED}
    lost = next((one.lost for one in every if one.lost), "")
    failed = bool(failures) or any(k.stale for k in known) or sums["failed"] or sums["crashed"]
    unjudged = dict(sum((Counter(one.unjudged) for one in every), Counter()))
    by_data = dict(sum((Counter(one.by_data) for one in every), Counter()))
    missing = (*missing, *declined(by_data, sums["programs"]))
    verdict = conclusion_of(failed, lost or missing or unjudged, sums["passed"] + sums["known"])
    measured = sums["measured"] or 1
    return replace(
        every[0],
        **sums,
        verdict=verdict,
        interrupted=any(one.interrupted for one in every),
        lost=lost,
        open_because=why_open(lost, missing, unjudged) if verdict == "inconclusive" else "",
        constrained_share=sum(s.constrained_share * s.measured for s in every) / measured,
        single_share=sum(s.single_share * s.measured for s in every) / measured,
        peak_bytes=max(one.peak_bytes for one in every),
        judge_bytes=max(one.judge_bytes for one in every),
        untried=tuple(t for t in every[0].untried if all(t in one.untried for one in every)),
        missing=missing,
        unfit=any(one.unfit for one in every),
        unjudged=unjudged,
        by_data=by_data,
        liberties={knob: shown for one in every for knob, shown in one.liberties.items()},
    )


def _cases(reports: Sequence[Report]) -> dict[str, str]:
    """The marks of all cases, each from the shard that has it."""
    marks: dict[str, list[str]] = {}
    for report in reports:
        for name, own in report.cases.items():
            row = marks.setdefault(name, [])
            row += [NOT_RUN] * (len(own) - len(row))
            for k, mark in enumerate(own):
                row[k] = mark if mark != NOT_RUN else row[k]
    return {name: "".join(row) for name, row in sorted(marks.items())}


def _ledger(every: Sequence[LedgerSums]) -> LedgerSums:
    """The points that any shard covered; each shard names all that the run was to cover."""
    evidence: dict[str, Evidence] = {}
    for ledger in every:
        for point, one in ledger.evidence.items():
            known = evidence.get(point, Evidence(0, ()))
            evidence[point] = Evidence(
                known.checks + one.checks, (*known.first, *one.first)[:FIRST]
            )
    reasons: dict[str, list[str]] = {}
    for point, why in {
        p: left.reason for one in every for left in one.unchecked for p in left.points
    }.items():
        if point not in evidence:
            reasons.setdefault(why, []).append(point)
    left = sum(map(len, reasons.values()))
    uncovered = Counter(p.partition(" ")[0] for points in reasons.values() for p in points)
    kinds = {
        name: KindSums(kind.says, kind.total, kind.total - uncovered[name])
        for name, kind in every[0].kinds.items()
    }
    return replace(
        every[0],
        checked=every[0].total - left,
        kinds=kinds,
        unchecked=tuple(LeftOut(why, tuple(reasons[why])) for why in sorted(reasons)),
        evidence=dict(sorted(evidence.items())),
    )


def _against(every: Sequence[Against]) -> Against:
    return Against(
        every[0].backend,
        sum(one.shared for one in every),
        sum(one.skipped for one in every),
        tuple({flaky.signature: flaky for one in every for flaky in one.flaky}.values()),
    )


def _strength(every: Sequence[Strength], missing: int) -> Strength:
    judged, programs = every[0].listed - missing, sum(one.programs for one in every)
    return replace(every[0], judged=judged, programs=programs)
