"""What a run found: the verdict, a cell per level, op and dtype, failures; as `uop-report/1`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from uop.conformance.case import CaseId
from uop.conformance.judge import Status, Verdict
from uop.conformance.protocol import Hello

SCHEMA = "uop-report/1"


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


@dataclass(frozen=True, slots=True)
class Failure:
    """One cause: the first case that showed it, shrunk and written as `repro`.

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


@dataclass(slots=True)
class Cell:
    """The sums of one level, op and dtype."""

    level: str
    op: str
    dtype: str
    programs: int = 0
    elements: int = 0
    constrained: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """How many were skipped, by reason."""
    max_ulp: float = 0.0

    @property
    def constrained_share(self) -> float:
        return share(self.constrained, self.elements)

    @property
    def skipped_reason(self) -> str | None:
        """The least of the reasons: the first to come depends on timing."""
        return min(self.skipped, default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "op": self.op,
            "dtype": self.dtype,
            "programs": self.programs,
            "elements": self.elements,
            "constrained_share": self.constrained_share,
            "failed": self.failed,
            "skipped_reason": self.skipped_reason,
            "skipped": dict(sorted(self.skipped.items())),
            "max_ulp": self.max_ulp,
        }


@dataclass(slots=True)
class Tally:
    """Sums over verdicts; the order in which they come does not matter."""

    cells: dict[tuple[str, str, str], Cell] = field(default_factory=dict)
    counts: dict[Status, int] = field(default_factory=lambda: dict.fromkeys(Status, 0))
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
        if verdict.status is Status.SKIPPED:
            cell.skipped[verdict.reason] += 1
            return
        cell.programs += 1
        cell.elements += verdict.elements
        cell.constrained += verdict.constrained
        cell.failed += verdict.status in (Status.FAILED, Status.CRASHED)
        cell.max_ulp = max(cell.max_ulp, verdict.max_ulp)
        self.checks += verdict.checks
        self.elements += verdict.elements
        self.single += verdict.single
        self.constrained += verdict.constrained
        self.graphs |= {verdict.digest} - {""}


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A finished or interrupted run. `lost` says why the backend could not go on."""

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

    @property
    def conclusion(self) -> Conclusion:
        counts = self.tally.counts
        if counts[Status.FAILED] or counts[Status.CRASHED]:
            return Conclusion.DOES_NOT
        if self.lost or not counts[Status.PASSED]:
            return Conclusion.INCONCLUSIVE
        return Conclusion.CONFORMS

    def to_json(self) -> dict[str, Any]:
        """The report as `uop-report/1`."""
        tally, counts = self.tally, self.tally.counts
        return {
            "schema": SCHEMA,
            "backend": asdict(self.backend),
            "profile": self.profile,
            "options": dict(self.options),
            "summary": {
                "verdict": self.conclusion.value,
                "interrupted": self.interrupted,
                "programs": tally.programs,
                "checks": tally.checks,
                "elements": tally.elements,
                "constrained_share": share(tally.constrained, tally.elements),
                "single_share": share(tally.single, tally.elements),
                "passed": counts[Status.PASSED],
                "failed": counts[Status.FAILED],
                "skipped": counts[Status.SKIPPED],
                "crashed": counts[Status.CRASHED],
                "seconds": round(self.seconds, 3),
                "peak_bytes": self.peak,
                "untried": list(self.untried),
            },
            "cells": [cell.to_json() for cell in in_order(tally.cells.values())],
            "failures": [asdict(failure) for failure in self.failures],
        }


def untried(hello: Hello, tally: Tally) -> tuple[str, ...]:
    """The ops that a backend lists and of which no case could be judged, each with why not."""
    cells: dict[str, list[Cell]] = {}
    for cell in tally.cells.values():
        if cell.level == "op" and cell.op in hello.ops and cell.dtype in hello.dtypes:
            cells.setdefault(cell.op, []).append(cell)
    return tuple(
        f"{op}: {min(cell.skipped_reason or '' for cell in found)}"
        for op, found in sorted(cells.items())
        if not any(cell.programs for cell in found)
    )


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda cell: (cell.level, cell.op, cell.dtype))


def share(part: int, whole: int) -> float:
    """A share from 0 to 1; of nothing it is 1."""
    return part / whole if whole else 1.0
