"""Accumulates verdicts during a run, and builds the report from the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from uop.conformance.judging.compare import NOTHING, Counts
from uop.conformance.judging.elements import BINS
from uop.conformance.judging.verdict import MAY_END, CaseFailure, Status, Verdict
from uop.conformance.protocol.types import Hello
from uop.conformance.report.model import (
    BackendInfo,
    Cell,
    Conclusion,
    Failure,
    Generator,
    KnownFailure,
    Largest,
    Report,
    Summary,
    conclusion_of,
    counted,
    share,
)
from uop.conformance.report.options import ReportedOptions
from uop.conformance.shrink.signature import SIGNATURES
from uop.conformance.suite.case import GENERATOR, OWN, CaseId
from uop.conformance.suite.vocabulary import Vocabulary, whole
from uop.spec.distribution import own_version

MARKS = {
    Status.PASSED: ".",
    Status.FAILED: "F",
    Status.SKIPPED: "s",
    Status.CRASHED: "C",
    Status.KNOWN: "K",
}
"""The character of each status in `Report.cases`."""
STATUSES = {mark: status for status, mark in MARKS.items()}
NOT_RUN = " "
LONGEST = 10_000
"""The most marks of one text of `Report.cases`."""
MOST_DIGESTS = 1 << 16
"""The most digests of graphs that are kept to count distinct ones."""
MOST_BY_DATA = 0.01
"""The most of the programs that a backend may refuse for their data."""
MOST_MISSING = 3
"""The most places without evidence in the message of an inconclusive run."""


@dataclass(slots=True)
class Sums:
    """The totals of one level, op and dtype."""

    level: str
    op: str
    dtype: str
    programs: int = 0
    counts: Counts = NOTHING
    failed: int = 0
    known: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    largest: Largest | None = None
    histogram: list[int] = field(default_factory=lambda: [0] * BINS)

    def add(self, verdict: Verdict) -> None:
        """Count a judged case."""
        self.programs += 1
        self.counts += verdict.counts
        self.failed += verdict.status.is_failure
        self.known += verdict.status is Status.KNOWN
        if verdict.errors is not None:
            counts = zip(self.histogram, verdict.errors.histogram, strict=True)
            self.histogram = [a + b for a, b in counts]
            if verdict.errors.largest is not None:
                element = asdict(verdict.errors.largest)
                new, current = Largest(verdict.errors.ulp, verdict.id, **element), self.largest
                # On a tie the smaller id: the order of verdicts varies.
                if current is None or (-new.ulp, new.id) < (-current.ulp, current.id):
                    self.largest = new

    def cell(self) -> Cell:
        """Convert the totals to a cell of the report."""
        counts = self.counts
        return Cell(
            level=self.level,
            op=self.op,
            dtype=self.dtype,
            programs=self.programs,
            elements=counts.elements,
            measured=counts.measured,
            constrained_share=share(counts.constrained, counts.measured),
            failed=self.failed,
            known=self.known,
            skipped_reason=main_reason(self.skipped),
            skipped=dict(sorted(self.skipped.items())),
            max_ulp=counts.max_ulp,
            largest=self.largest,
            histogram=tuple(self.histogram) if any(self.histogram) else (),
        )


@dataclass(slots=True)
class Distinct:
    """Counts distinct digests: exactly up to MOST_DIGESTS, else from a share of them."""

    kept: set[int] = field(default_factory=set)
    halvings: int = 0
    """Digests are kept that this power of two divides."""

    def add(self, digest: str) -> None:
        number = int(digest, 16)
        if number % (1 << self.halvings) == 0:
            self.kept.add(number)
        while len(self.kept) > MOST_DIGESTS:
            self.halvings += 1
            self.kept = {n for n in self.kept if n % (1 << self.halvings) == 0}

    @property
    def count(self) -> int:
        return len(self.kept) << self.halvings


@dataclass(slots=True)
class Tally:
    """The totals of a run; they do not depend on the order of verdicts."""

    cells: dict[tuple[str, str, str], Sums] = field(default_factory=dict)
    counts: dict[Status, int] = field(default_factory=lambda: dict.fromkeys(Status, 0))
    cases: dict[str, dict[int, Status]] = field(default_factory=dict)
    case_failures: dict[str, CaseFailure] = field(default_factory=dict)
    keeps_cases: bool = True
    """Whether the report lists all cases: a run without an end would need ever more memory."""
    checks: int = 0
    graphs: Distinct = field(default_factory=Distinct)
    unjudged: Counter[str] = field(default_factory=Counter)
    """By reason the number of cases that are not judged, through no fault of the backend."""
    by_data: Counter[str] = field(default_factory=Counter)
    """By the classes of values for which the backend refuses programs the number of these."""
    retried: int = 0
    """How often the backend was lost on programs of which none is lost alone."""
    is_unfit: bool = False
    """Whether the adapter does not fit its library, so that nothing is judged."""
    fired: Counter[str] = field(default_factory=Counter)

    @property
    def programs(self) -> int:
        """The number of judged programs."""
        return sum(n for status, n in self.counts.items() if status is not Status.SKIPPED)

    @property
    def compared(self) -> Counts:
        """What was compared in all cells."""
        return sum((sums.counts for sums in self.cells.values()), NOTHING)

    def add(self, verdict: Verdict) -> None:
        id = CaseId.parse(verdict.id)
        key = (id.level, id.op, id.dtype)
        sums = self.cells.setdefault(key, Sums(*key))
        self.counts[verdict.status] += 1
        self.note(verdict)
        if self.keeps_cases or verdict.status.is_failure:
            self.cases.setdefault(group_name(id), {})[id.index] = verdict.status
        if verdict.failure is not None:
            self.case_failures[verdict.id] = verdict.failure
        if verdict.status is Status.SKIPPED:
            sums.skipped[verdict.reason] += 1
            return
        sums.add(verdict)
        self.checks += verdict.checks
        if verdict.digest:
            self.graphs.add(verdict.digest)

    def note(self, verdict: Verdict) -> None:
        """Count a case that is not judged through no fault of the backend, or for its data."""
        if verdict.unjudged:
            self.unjudged[verdict.unjudged] += 1
        if verdict.by_data:
            self.by_data[verdict.by_data] += 1

    def status_of(self, id: CaseId) -> Status | None:
        """The status of a case; None if it has no verdict."""
        return self.cases.get(group_name(id), {}).get(id.index)

    def without(self, ids: Iterable[CaseId]) -> list[CaseId]:
        """Those of some cases that have no verdict."""
        return [id for id in ids if self.status_of(id) is None]

    def revise(self, verdict: Verdict) -> None:
        """Count a case that passed as failed: it failed when it was sent again."""
        self._change(verdict.id, verdict.status).failed += 1
        assert verdict.failure is not None
        self.case_failures[verdict.id] = verdict.failure

    def accept(self, id: str) -> None:
        """Count a failed case as a known failure."""
        sums = self._change(id, Status.KNOWN)
        sums.failed -= 1
        sums.known += 1

    def withdraw(self, verdict: Verdict) -> None:
        """Count a failed case as not judged."""
        sums = self._change(verdict.id, verdict.status)
        sums.failed -= 1
        sums.programs -= 1
        sums.skipped[verdict.reason] += 1
        del self.case_failures[verdict.id]
        self.note(verdict)

    def _change(self, id: str, status: Status) -> Sums:
        """Give a case another status; the sums of its cell."""
        case = CaseId.parse(id)
        group = self.cases[group_name(case)]
        self.counts[group[case.index]] -= 1
        self.counts[status] += 1
        group[case.index] = status
        return self.cells[case.level, case.op, case.dtype]

    def report(
        self,
        backend: BackendInfo,
        profile: str,
        options: ReportedOptions,
        seconds: float,
        failures: tuple[Failure, ...] = (),
        known: tuple[KnownFailure, ...] = (),
        *,
        lost: str = "",
        missing: tuple[str, ...] = (),
        profile_from: str = "declared",
        vocabulary: Vocabulary | None = None,
    ) -> Report:
        """Build the report. The arguments are fields of Report and Summary."""
        fails = bool(failures) or any(line.stale for line in known)
        return Report(
            suite=own_version(),
            backend=backend,
            profile=profile,
            profile_from=profile_from,
            generator=Generator(GENERATOR, vocabulary or whole()),
            signatures=SIGNATURES,
            options=options,
            summary=replace(self._summary(fails, lost, missing), seconds=round(seconds, 3)),
            cells=tuple(sums.cell() for _, sums in sorted(self.cells.items())),
            failures=failures,
            known=known,
            cases=self._marks() if self.keeps_cases else {},
            case_failures=self.case_failures,
            graphs=self.graphs.count,
            rules=dict(self.fired) or None,
        )

    def _marks(self) -> dict[str, str]:
        """The marks of each group, such as `..F s`: one per index, a blank where none was run."""
        marks: dict[str, dict[int, Status]] = {}
        for name, group in self.cases.items():
            for index, status in group.items():
                key, place = place_of(name, index)
                marks.setdefault(key, {})[place] = status
        return {
            key: "".join(MARKS[group[k]] if k in group else NOT_RUN for k in range(max(group) + 1))
            for key, group in sorted(marks.items())
        }

    def _summary(self, fails: bool, lost: str, missing: tuple[str, ...]) -> Summary:
        """Conclude from the totals; `fails` where a run fails whatever its cases say."""
        counts, compared = self.counts, self.compared
        judged = counts[Status.PASSED] + counts[Status.KNOWN]
        failed = fails or counts[Status.FAILED] or counts[Status.CRASHED]
        missing = (*missing, *declined(self.by_data, self.programs))
        verdict = conclusion_of(failed, lost or missing or self.unjudged, judged)
        is_open = verdict is Conclusion.INCONCLUSIVE
        by_name: dict[str, Any] = {status.value: n for status, n in counts.items()}
        return Summary(
            verdict=verdict,
            lost=lost,
            open_because=why_open(lost, missing, self.unjudged) if is_open else "",
            programs=self.programs,
            checks=self.checks,
            elements=compared.elements,
            measured=compared.measured,
            constrained_share=share(compared.constrained, compared.measured),
            single_share=share(compared.single, compared.measured),
            **by_name,
            missing=missing,
            unfit=self.is_unfit,
            unjudged=dict(sorted(self.unjudged.items())),
            by_data=dict(sorted(self.by_data.items())),
            retried=self.retried,
        )


def shown_by(report: Report) -> Tally:
    """The totals of a report that displays of progress show."""
    tally, summary = Tally(), report.summary
    tally.counts = {status: getattr(summary, status.value) for status in Status}
    for cell in report.cells:
        constrained = round(cell.constrained_share * cell.elements)
        counts = Counts(cell.elements, constrained=constrained)
        place = cell.level, cell.op, cell.dtype
        tally.cells[place] = Sums(*place, cell.programs, counts, cell.failed)
    return tally


def not_judged(hello: Hello, tally: Tally) -> tuple[str, ...]:
    """The listed ops without a judged program, with the reasons."""
    cells: dict[str, list[Sums]] = {}
    for cell in tally.cells.values():
        if cell.level == "op" and hello.takes(cell.op, cell.dtype):
            cells.setdefault(cell.op, []).append(cell)
    return tuple(
        f"{op}: {main_reason(sum((cell.skipped for cell in sums), Counter()))}"
        for op, sums in sorted(cells.items())
        if not any(cell.programs for cell in sums)
    )


def main_reason(reasons: Mapping[str, int]) -> str | None:
    """The most frequent reason; on a tie the first in text order, as the order of verdicts varies.

    MAY_END counts last: division by zero has programs of its own, so it explains no others.
    """
    return min(reasons, key=lambda why: (why == MAY_END, -reasons[why], why), default=None)


def group_name(id: CaseId) -> str:
    """The id without its index."""
    if id.level == OWN:
        return str(id)
    return f"{id.level}/{id.op}/{id.dtype}/{id.group}"


def place_of(name: str, index: int) -> tuple[str, int]:
    """The key of `Report.cases` for a case of a group, and the place of its mark in the text.

    The numbers of random programs are far apart, so no text spans more than `LONGEST` of them.
    """
    start = index // LONGEST * LONGEST
    return (f"{name}/{start}" if start else name), index - start


def listed_id(name: str, index: int, version: int = GENERATOR) -> str:
    """The id of the case at an index of `Report.cases[name]`, whose name may end in a start."""
    if name.startswith(f"{OWN}/"):
        return name
    *group, start = f"{name}/0".split("/")[:5]
    return f"{'/'.join(group)}/{int(start) + index}@{version}"


def statuses_of(report: Report, version: int = GENERATOR) -> Iterator[tuple[str, Status]]:
    """The id and the status of each case of a report; the ids are those of a generator."""
    for name, marks in report.cases.items():
        for index, mark in enumerate(marks):
            if mark != NOT_RUN:
                yield listed_id(name, index, version), STATUSES[mark]


def why_open(lost: str, missing: tuple[str, ...], unjudged: Mapping[str, int]) -> str:
    """Why a run without failures is inconclusive."""
    if unjudged and not lost:
        return unjudged_text(unjudged)
    few = "; ".join(missing[:MOST_MISSING])
    more = len(missing) - MOST_MISSING
    shown = f"{few}; and {more:,} more" if more > 0 else few
    return lost or (shown and f"too little evidence: {shown}") or "nothing was checked"


def declined(by_data: Mapping[str, int], programs: int) -> tuple[str, ...]:
    """That a backend refuses too many programs for their data: a verdict would say nothing of such
    data. Empty where these are few.
    """
    count = sum(by_data.values())
    if count <= MOST_BY_DATA * (programs + count):
        return ()
    return (f"{counted(count, 'program')} refused for their data: {', '.join(sorted(by_data))}",)


def unjudged_text(unjudged: Mapping[str, int]) -> str:
    """How many programs are not judged through no fault of the backend, and the main reason."""
    return f"{counted(sum(unjudged.values()), 'program')} not judged: {main_reason(unjudged)}"
