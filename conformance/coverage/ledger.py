"""The ledger of a run: the points of the spec that it covered, why not the others, its strength."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from uop.conformance.coverage.exercised import Exercised
from uop.conformance.coverage.points import (
    KINDS,
    Key,
    Point,
    by_point,
    keys_of,
    not_of_runs,
    ops_of_decisions,
    points_of,
)
from uop.conformance.judging.lowering import UNSUPPORTED, not_listed, submission_of
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.protocol.types import Hello
from uop.conformance.report.model import Evidence, KindSums, LedgerSums, LeftOut, Strength, counted
from uop.conformance.report.tally import Sums, Tally, main_reason
from uop.conformance.run.selection import COSTLY
from uop.conformance.suite.case import CaseId, InvalidCase
from uop.conformance.suite.generate import AnyGroup
from uop.conformance.suite.levels.group import Group
from uop.spec.latitude import STRICT, Profile, Unordered
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS

MOST_OPENED = 3
"""The number of ops listed, those with the largest gain first."""

FIRST = 2
"""The number of case ids listed as evidence of a point."""
NO_CASE = "no case that was judged shows it"
ENDED = "the run ended before"
CLOSED = "the profile leaves no choice, by cmp_nan=ieee"


@dataclass(slots=True)
class Checks:
    """How many cases cover a point, and the first ones with their positions in the id order."""

    checks: int = 0
    first: tuple[tuple[int, str], ...] = ()

    def add(self, *others: Checks) -> None:
        """Merge other checks. The result does not depend on their order."""
        self.checks += sum(other.checks for other in others)
        firsts = {*self.first, *(one for other in others for one in other.first)}
        self.first = tuple(nsmallest(FIRST, firsts))


@dataclass(slots=True, eq=False)
class Ledger:
    """The points that the cases of a run cover. `ids` are the selected cases in order."""

    ids: Sequence[CaseId]
    narrowed: bool = False
    """Whether options or the backend limit the run to some ops, dtypes or cases."""
    profile: Profile = STRICT
    seen: dict[Key, Checks] = field(default_factory=dict)
    skipped: dict[Key, Counter[str]] = field(default_factory=dict)
    """The skip reasons of cases that would have covered a point."""
    places: dict[str, int] = field(default_factory=dict)
    forgotten: int = 0
    _points: dict[Point, Checks] | None = None
    """The points of `seen`, until a case is added: a report asks for them several times."""
    _expected: list[Point] | None = None

    def __post_init__(self) -> None:
        self.expect(self.ids)

    def expect(self, ids: Iterable[CaseId]) -> None:
        """Append new ids to the id order."""
        for id in ids:
            self.places.setdefault(str(id), self.forgotten + len(self.places))

    def forget(self) -> None:
        """Drop the ids that were judged, but for those that are evidence."""
        self.forgotten += len(self.places)
        self.places.clear()

    def add(self, verdict: Verdict, shown: Exercised | None) -> None:
        """Count a case and its coverage; `shown` is None if the case was not generated."""
        for key in keys_of(verdict, shown) if shown else ():
            if verdict.status is Status.SKIPPED:
                self.skipped.setdefault(key, Counter())[verdict.reason] += 1
            else:
                self._note(key, self.places[verdict.id], verdict.id)

    def points(self) -> dict[Point, Checks]:
        """The covered points with their checks."""
        if self._points is None:
            self._points = {}
            for point, several in by_point(self.seen).items():
                # At a closed one an earlier op of the program has several accepted results.
                if not self._is_closed(point):
                    self._points[point] = Checks()
                    self._points[point].add(*several)
        return self._points

    def expected(self) -> list[Point]:
        """The points that the selected cases can cover, in order."""
        if self._expected is None:
            self._expected = points_of(self.ids, self.narrowed)
        return self._expected

    def unseen(self, tally: Tally) -> dict[Point, str]:
        """The points that no case covered, with the reasons."""
        seen, skipped = self.points(), by_point(self.skipped)

        def why(point: Point) -> str:
            reason = main_reason(sum(skipped.get(point, ()), Counter()))
            return CLOSED if self._is_closed(point) else reason or _why_not(point, tally)

        return {point: why(point) for point in self.expected() if point not in seen}

    def gaps(self, tally: Tally) -> set[Point]:
        """The uncovered points that further cases on the same op and dtype may cover."""
        return {
            p
            for p, why in self.unseen(tally).items()
            if p.dtype and why != CLOSED and not _is_declined(p, tally)
        }

    def missing(self, hello: Hello, tally: Tally) -> tuple[str, ...]:
        """The listed ops and dtypes that lack evidence, so that the run is inconclusive.

        Each listed and selected cell needs a judged program with a constrained or empty result.
        Cells whose programs the backend all declined are exempt, up to half of the cells.
        """
        listed, reasons = self.cells(hello), self.unseen(tally)
        without = self._without(listed, reasons, tally)
        declined = [p for p in without if _is_declined(p, tally)]
        messages = [f"{p.about} {p.dtype}: {reasons[p]}" for p in without if p not in declined]
        if 2 * len(without) > len(listed):
            reason = main_reason(Counter(reasons[p] for p in without))
            messages.append(f"{len(without)} of {len(listed)} ops and dtypes: {reason}")
        return tuple(messages)

    def cells(self, hello: Hello) -> list[Point]:
        """The selected cells (op and dtype) that the backend lists."""
        return [p for p in self.expected() if p.kind == "cell" and _is_listed(p, hello)]

    def judged(self, hello: Hello, tally: Tally) -> int:
        """The number of listed cells with evidence."""
        listed = self.cells(hello)
        return len(listed) - len(self._without(listed, self.unseen(tally), tally))

    def _without(
        self, listed: Sequence[Point], reasons: Mapping[Point, str], tally: Tally
    ) -> list[Point]:
        return [p for p in listed if p in reasons and not _is_empty(p, tally)]

    def sums(self, tally: Tally) -> LedgerSums:
        """The ledger as part of a report."""
        seen, expected = self.points(), self.expected()
        kinds = {
            kind: KindSums(
                says,
                sum(p.kind == kind for p in expected),
                sum(p.kind == kind and p in seen for p in expected),
            )
            for kind, says in KINDS.items()
        }
        reasons: dict[str, list[str]] = {}
        for point, why in self.unseen(tally).items():
            reasons.setdefault(why, []).append(str(point))
        return LedgerSums(
            len(expected),
            sum(p in seen for p in expected),
            kinds,
            tuple(LeftOut(why, tuple(reasons[why])) for why in sorted(reasons)),
            tuple(LeftOut(why, tuple(points)) for why, points in not_of_runs().items()),
            {
                str(point): Evidence(e.checks, tuple(id for _, id in e.first))
                for point, e in sorted(seen.items(), key=lambda pair: str(pair[0]))
            },
        )

    def _is_closed(self, point: Point) -> bool:
        """Whether the profile leaves one accepted result for an op that may have several."""
        if point.kind != "latitude" or self.profile.cmp_nan == "either":
            return False
        declaration = DECLARATIONS[Op[point.about]]
        is_unordered = isinstance(declaration.latitude, Unordered)
        return is_unordered and declaration.op not in self.profile.decomposed

    def _note(self, key: Key, place: int, id: str) -> None:
        self._points = None
        evidence = self.seen.setdefault(key, Checks())
        if len(evidence.first) == FIRST and place > evidence.first[-1][0]:
            evidence.checks += 1
        else:
            evidence.add(Checks(1, ((place, id),)))


def ledger_lines(ledger: LedgerSums) -> list[str]:
    """The ledger as lines for a terminal. A run of single cases lists the covered points only."""
    if not ledger.total:
        counts = Counter(point.partition(" ")[0] for point in ledger.evidence)
        shown = ", ".join(counted(counts[kind], kind) for kind in KINDS if counts[kind])
        return [f"ledger: these cases show {shown}"] if shown else []
    line = f"ledger: {ledger.checked:,} of {ledger.total:,} points checked"
    kinds = ", ".join(
        f"{of.checked:,} of {of.total:,} {kind}s" for kind, of in ledger.kinds.items() if of.total
    )
    counts = Counter[str]()
    for left in ledger.unchecked:
        who, verb, _ = left.reason.partition(UNSUPPORTED)
        counts[f"{who}{verb}what it takes" if verb else left.reason] += len(left.points)
    reasons = [f"{n:,} {reason}" for reason, n in counts.items()]
    lines = [f"{line}: {kinds}" if kinds else line]
    return [*lines, f"not checked: {'; '.join(reasons)}"] if reasons else lines


def _is_listed(point: Point, hello: Hello) -> bool:
    return not not_listed(CaseId("op", point.about, point.dtype, "", 0), hello)


def _is_empty(point: Point, tally: Tally) -> bool:
    """Whether all judged results are empty: only their shapes and dtypes were checked."""
    return any(cell.programs and not cell.counts.elements for cell in _cells_of(point, tally))


def _is_declined(point: Point, tally: Tally) -> bool:
    return any(not cell.programs for cell in _cells_of(point, tally))


def _why_not(point: Point, tally: Tally) -> str:
    """Why no case covered a point: the main skip reason of its cells."""
    cells = _cells_of(point, tally)
    if any(cell.programs for cell in cells) or (point.kind == "rule" and not cells):
        return NO_CASE
    return main_reason(sum((cell.skipped for cell in cells), Counter())) or ENDED


def _cells_of(point: Point, tally: Tally) -> list[Sums]:
    """The cells whose cases could cover a point; one cell for a point with a dtype."""
    if point.dtype:
        cell = tally.cells.get(("op", point.about, point.dtype))
        return [] if cell is None else [cell]
    return [cell for cell in tally.cells.values() if _is_about(point, cell)]


def _is_about(point: Point, cell: Sums) -> bool:
    if point.kind == "label":
        return cell.level == "invalid" and cell.op == point.about.partition(".")[0]
    if point.kind == "decision":
        return cell.level == "op" and cell.op in ops_of_decisions()[point.about]
    return cell.op == point.about


def programs_of(tally: Tally) -> int:
    """The number of judged programs, without invalid ones."""
    return sum(cell.programs for cell in tally.cells.values() if cell.level != "invalid")


def opened(
    groups: Iterable[AnyGroup], effort: str, hello: Hello, tally: Tally, seed: int
) -> dict[str, int]:
    """For each unlisted op the number of programs that need only it: skipped or not selected.

    The first program of an unselected group represents the group.
    """
    gains = Counter[str]()
    for cell in tally.cells.values():
        for reason, n in cell.skipped.items():
            _, _, names = reason.partition(UNSUPPORTED)
            if cell.level != "invalid" and names in Op.__members__:
                gains[names] += n
    if "tensor" in hello.forms:
        for group in groups:
            if not isinstance(group, Group) or group.dtype not in hello.dtypes:
                continue
            if group.op in Op.__members__ and group.op not in hello.ops:
                lacking = {group.op} if group.name in COSTLY else _lacking(group, hello, seed)
                if lacking == {group.op}:
                    gains[group.op] += group.count(effort)
    return dict(sorted(gains.items(), key=lambda item: (-item[1], item[0]))[:MOST_OPENED])


def _lacking(group: Group, hello: Hello, seed: int) -> set[str]:
    case = group.case(0, seed)
    reason = "" if isinstance(case, InvalidCase) else submission_of(case, hello).reason
    return set(reason.partition(UNSUPPORTED)[2].split(", "))


def strength_line(strength: Strength) -> str:
    """The figures in one line."""
    share = f"{strength.programs / strength.suite:.0%}" if strength.suite else "nothing"
    line = f"{share} of the suite applied"
    if strength.listed:
        line = f"{strength.judged:,} of {strength.listed:,} listed cells judged, {line}"
    more = ", ".join(f"{op} {n:,} programs more" for op, n in strength.opens.items() if n)
    return f"{line}; one more op in the list: {more}" if more else line
