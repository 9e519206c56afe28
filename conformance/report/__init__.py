"""What a run found: the verdict, a cell per level, op and dtype, failures; as `uop-report/1`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from importlib.metadata import version
from typing import Any

from uop.conformance.judging.elements import BINS, Element
from uop.conformance.judging.verdict import MAY_END, Fault, Status, Verdict
from uop.conformance.protocol.types import Hello
from uop.conformance.suite.case import GENERATOR, MIXED, OWN, OWN_ID, CaseId
from uop.conformance.suite.vocabulary import Vocabulary, whole

SCHEMA = "uop-report/1"
MARKS = {
    Status.PASSED: ".",
    Status.FAILED: "F",
    Status.SKIPPED: "s",
    Status.CRASHED: "C",
    Status.KNOWN: "K",
}
"""A case in the text of its group, a character for each index."""
NOT_RUN = " "
MOST_MISSING = 3
"""So many places without evidence are named with the verdict."""


class Conclusion(Enum):
    """The verdict of a run."""

    CONFORMS = "conforms"
    DOES_NOT = "does not conform"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """Who was judged."""

    name: str
    version: str
    device: str
    variant: str = ""

    @property
    def identity(self) -> str:
        """What it goes by in a file of known failures: `tinygrad:X86`."""
        return f"{self.name}:{self.variant}" if self.variant else self.name


@dataclass(frozen=True, slots=True)
class Failure:
    """One cause: the first case that showed it, shrunk, its `text` written as the file `repro`.

    `label` is the broken constraint or the symptom; failures of one cause share a `signature`.
    """

    id: str
    signature: str
    label: str
    level: str
    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    message: str
    repro: str
    text: str = ""
    values: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A line of the file of known failures: the cases that it covered, what its program shows now.

    The state is `known`, `fixed`, `expired`, or `undecided` where its program is not judged;
    `stale` says what to do where it is not `known`, `note` what else there is to say.
    """

    key: str
    reason: str
    link: str
    expires: str
    repro: str
    cases: tuple[str, ...]
    state: str
    stale: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Largest:
    """The result that lies farthest from the reference, and the case that has it."""

    ulp: float
    id: str
    element: Element

    def to_json(self) -> dict[str, Any]:
        return {"ulp": self.ulp, "id": self.id, **asdict(self.element)}


@dataclass(slots=True)
class Cell:
    """The sums of one level, op and dtype; `histogram` as in `elements.Errors`."""

    level: str
    op: str
    dtype: str
    programs: int = 0
    elements: int = 0
    constrained: int = 0
    failed: int = 0
    known: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """How many were skipped, by reason."""
    max_ulp: float = 0.0
    largest: Largest | None = None
    histogram: list[int] = field(default_factory=lambda: [0] * BINS)

    @property
    def constrained_share(self) -> float:
        return share(self.constrained, self.elements)

    @property
    def skipped_reason(self) -> str | None:
        return main_reason(self.skipped)

    def add(self, verdict: Verdict) -> None:
        """Count a judged case."""
        self.programs += 1
        self.elements += verdict.elements
        self.constrained += verdict.constrained
        self.failed += verdict.status in (Status.FAILED, Status.CRASHED)
        self.known += verdict.status is Status.KNOWN
        if verdict.errors is not None:
            counts = zip(self.histogram, verdict.errors.histogram, strict=True)
            self.histogram = [a + b for a, b in counts]
            if verdict.errors.largest is not None:
                self._keep(Largest(verdict.errors.ulp, verdict.id, verdict.errors.largest))
        self.max_ulp = max(self.max_ulp, verdict.max_ulp)

    def _keep(self, found: Largest) -> None:
        """Of equal ones that of the least id: the first depends on timing."""
        known = self.largest
        if known is None or (-found.ulp, found.id) < (-known.ulp, known.id):
            self.largest = found

    def to_json(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "op": self.op,
            "dtype": self.dtype,
            "programs": self.programs,
            "elements": self.elements,
            "constrained_share": self.constrained_share,
            "failed": self.failed,
            "known": self.known,
            "skipped_reason": self.skipped_reason,
            "skipped": dict(sorted(self.skipped.items())),
            "max_ulp": self.max_ulp,
            "largest": self.largest and self.largest.to_json(),
            "histogram": self.histogram if any(self.histogram) else [],
        }


@dataclass(slots=True)
class Tally:
    """Sums over verdicts; the order in which they come does not matter."""

    cells: dict[tuple[str, str, str], Cell] = field(default_factory=dict)
    counts: dict[Status, int] = field(default_factory=lambda: dict.fromkeys(Status, 0))
    cases: dict[str, dict[int, Status]] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    checks: int = 0
    elements: int = 0
    single: int = 0
    constrained: int = 0
    graphs: set[str] = field(default_factory=set)

    @property
    def programs(self) -> int:
        """Programs that were judged."""
        return sum(n for status, n in self.counts.items() if status is not Status.SKIPPED)

    def add(self, verdict: Verdict) -> None:
        id = CaseId.parse(verdict.id)
        key = (id.level, id.op, id.dtype)
        cell = self.cells.setdefault(key, Cell(*key))
        self.counts[verdict.status] += 1
        self.cases.setdefault(group_name(id), {})[id.index] = verdict.status
        if verdict.fault is not None:
            self.faults[verdict.id] = verdict.fault
        if verdict.status is Status.SKIPPED:
            cell.skipped[verdict.reason] += 1
            return
        cell.add(verdict)
        self.checks += verdict.checks
        self.elements += verdict.elements
        self.single += verdict.single
        self.constrained += verdict.constrained
        self.graphs |= {verdict.digest} - {""}

    def accept(self, id: str) -> None:
        """Count a case that failed among the known failures."""
        case = CaseId.parse(id)
        cell, group = self.cells[case.level, case.op, case.dtype], self.cases[group_name(case)]
        self.counts[group[case.index]] -= 1
        self.counts[Status.KNOWN] += 1
        group[case.index] = Status.KNOWN
        cell.failed -= 1
        cell.known += 1

    def status(self, id: str) -> Status | None:
        """What became of a case; None where it was not run."""
        case = CaseId.parse(id)
        return self.cases.get(group_name(case), {}).get(case.index)


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A finished or interrupted run. `lost` says why the backend could not go on.

    `sections` are parts that others add, such as `card` and `ledger`, each as JSON.
    """

    backend: BackendInfo
    profile: str
    options: Mapping[str, Any]
    tally: Tally
    failures: tuple[Failure, ...]
    seconds: float
    lost: str = ""
    interrupted: bool = False
    peak: int = 0
    """Bytes of memory that a process of the backend was seen to hold, at most."""
    untried: tuple[str, ...] = ()
    """Ops that the backend lists and no program judged, with the reason."""
    sections: Mapping[str, Any] = field(default_factory=dict)
    profile_from: str = "declared"
    """Whether the profile was declared or observed; of an observed one, two things at once fail."""
    missing: tuple[str, ...] = ()
    """What the run has too little evidence of for a verdict, with the reason."""
    known: tuple[KnownFailure, ...] = ()
    """The lines of the file of known failures that the run is about."""
    vocabulary: Vocabulary = field(default_factory=whole)
    """What the random programs were drawn from."""

    @property
    def stale(self) -> list[str]:
        """The known failures that fail the run: those that are not `known` any more."""
        return [known.stale for known in self.known if known.stale]

    @property
    def fails_by_stale_lines(self) -> bool:
        """Whether nothing else fails the run."""
        counts = self.tally.counts
        failed = counts[Status.FAILED] or counts[Status.CRASHED] or self.failures
        return bool(self.stale) and not failed

    @property
    def open_because(self) -> str:
        """Why nothing follows from a run in which nothing failed."""
        few = "; ".join(self.missing[:MOST_MISSING])
        more = len(self.missing) - MOST_MISSING
        shown = f"{few}; and {more:,} more" if more > 0 else few
        return self.lost or (shown and f"too little evidence: {shown}") or "nothing was checked"

    @property
    def conclusion(self) -> Conclusion:
        counts = self.tally.counts
        if counts[Status.FAILED] or counts[Status.CRASHED] or self.failures or self.stale:
            return Conclusion.DOES_NOT
        if self.lost or self.missing or not counts[Status.PASSED] + counts[Status.KNOWN]:
            return Conclusion.INCONCLUSIVE
        return Conclusion.CONFORMS

    def to_json(self) -> dict[str, Any]:
        """The report as `uop-report/1`."""
        tally, counts, open_ = self.tally, self.tally.counts, Conclusion.INCONCLUSIVE
        return {
            "schema": SCHEMA,
            "suite": version("uop"),
            "backend": asdict(self.backend),
            "profile": self.profile,
            "profile_from": self.profile_from,
            "generator": {"version": GENERATOR, "vocabulary": self.vocabulary.to_json()},
            "options": dict(self.options),
            "summary": {
                "verdict": self.conclusion.value,
                "interrupted": self.interrupted,
                "lost": self.lost,
                "open_because": self.open_because if self.conclusion is open_ else "",
                "programs": tally.programs,
                "checks": tally.checks,
                "elements": tally.elements,
                "constrained_share": share(tally.constrained, tally.elements),
                "single_share": share(tally.single, tally.elements),
                "passed": counts[Status.PASSED],
                "failed": counts[Status.FAILED],
                "skipped": counts[Status.SKIPPED],
                "crashed": counts[Status.CRASHED],
                "known": counts[Status.KNOWN],
                "seconds": round(self.seconds, 3),
                "peak_bytes": self.peak,
                "untried": list(self.untried),
                "missing": list(self.missing),
            },
            "cells": [cell.to_json() for cell in in_order(tally.cells.values())],
            "failures": [asdict(failure) for failure in self.failures],
            "known": [asdict(known) for known in self.known],
            "cases": {name: _marked(found) for name, found in sorted(tally.cases.items())},
            **self.sections,
        }


def untried(hello: Hello, tally: Tally) -> tuple[str, ...]:
    """The ops that a backend lists and of which no case could be judged, each with why not."""
    cells: dict[str, list[Cell]] = {}
    for cell in tally.cells.values():
        if cell.level == "op" and cell.op in hello.ops and cell.dtype in hello.dtypes:
            cells.setdefault(cell.op, []).append(cell)
    return tuple(
        f"{op}: {main_reason(sum((cell.skipped for cell in found), Counter()))}"
        for op, found in sorted(cells.items())
        if not any(cell.programs for cell in found)
    )


def main_reason(reasons: Mapping[str, int]) -> str | None:
    """What most cases were skipped for, of equals the least: the first to come depends on timing.

    What divides by zero has programs of its own, so that it is the reason for nothing else.
    """
    return min(reasons, key=lambda why: (why == MAY_END, -reasons[why], why), default=None)


def group_name(id: CaseId) -> str:
    """The id without its index: under this name a report lists the cases."""
    if id.level == OWN:
        return str(id)
    return f"{id.level}/{id.op}/{id.dtype}/{id.group}"


def listed_id(name: str, index: int, version: int) -> str:
    """The id of a case that a report lists under a name, at a place."""
    return name if name.startswith(f"{OWN}/") else f"{name}/{index}@{version}"


def cell_of(id: str) -> tuple[str, ...]:
    """The level, op and dtype under which a case of this id counts, or a point of the card."""
    own = OWN_ID.fullmatch(id)
    return (OWN, own["file"], MIXED) if own else tuple(id.split("/")[:3])


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda cell: (cell.level, cell.op, cell.dtype))


def share(part: int, whole: int) -> float:
    """A share from 0 to 1; of nothing it is 1."""
    return part / whole if whole else 1.0


def counted(n: int, name: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{n:,} {name}{'s' * (n != 1)}"


def _marked(found: Mapping[int, Status]) -> str:
    """`..F s`: a mark for each index from 0, a blank for a case that was not run."""
    return "".join(MARKS[found[k]] if k in found else NOT_RUN for k in range(max(found) + 1))
