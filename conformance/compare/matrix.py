"""What each backend does with each op, and what it chooses where the spec leaves a choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from uop.conformance.checks import STRICT
from uop.conformance.judging.lowering import LEAVES_OUT
from uop.conformance.judging.verdict import NOT_COMPUTING
from uop.conformance.profile.card import Card, Observation
from uop.conformance.report.html.page_cells import WHOLE
from uop.conformance.report.model import Cell, Report, counted
from uop.conformance.report.tally import main_reason
from uop.spec.errors import UopError
from uop.spec.latitude import KNOBS
from uop.spec.text.profile_text import parse_profile, profile_of
from uop.spec.text.uop_file import parse_file


class State(StrEnum):
    """What a backend does with an op, in words."""

    FAILS = "fails"
    LIBERTY = "conforms with a liberty"
    COMPOSED = "conforms, composed by the adapter"
    CONFORMS = "conforms"
    NOT_JUDGED = "not judged"
    NOT_SUPPORTED = "not supported"


MARKS = {
    State.CONFORMS: "✓",
    State.LIBERTY: "≈",
    State.COMPOSED: "∘",
    State.FAILS: "✕",
    State.NOT_SUPPORTED: "·",
    State.NOT_JUDGED: "?",
}
"""The mark of each state, in the order of a legend."""
NOT_SEEN = "?"
"""The value of a choice that was not observed."""


@dataclass(frozen=True, slots=True)
class Square:
    """What a backend does with an op, or on a level of many ops, and why it is said."""

    state: State
    programs: int
    failed: int
    why: str

    @property
    def text(self) -> str:
        """The mark, with the numbers of programs."""
        numbers = f"{self.failed:,}/{self.programs:,}" if self.failed else f"{self.programs:,}"
        return f"{MARKS[self.state]} {numbers}" if self.programs else MARKS[self.state]


@dataclass(frozen=True, slots=True)
class Choice:
    """What each backend does at one choice that the spec leaves, in the order of backends."""

    name: str
    meaning: str
    observed: tuple[str, ...]

    @property
    def usual(self) -> str:
        """What most do; of equally many the first."""
        seen = Counter(text for text in self.observed if text != NOT_SEEN)
        return seen.most_common(1)[0][0] if seen else NOT_SEEN

    @property
    def differs(self) -> bool:
        return len({text for text in self.observed if text != NOT_SEEN}) > 1


def matrix(every: Sequence[Report]) -> dict[str, list[Square]]:
    """By op a square for each backend, then by level of many ops."""
    by_name = [report.rows for report in every]
    names = {name for cells in by_name for name in cells}
    ordered = [*sorted(names - WHOLE.keys()), *(level for level in WHOLE if level in names)]
    liberties = [_liberties(report) for report in every]
    return {
        name: [
            _square(report, name, cells.get(name, []), taken.get(name, ""))
            for report, cells, taken in zip(every, by_name, liberties, strict=True)
        ]
        for name in ordered
    }


def choices(every: Sequence[Report]) -> list[Choice]:
    """The knobs of profiles, then what else is open, as far as any backend has shown it."""
    cards = [Card(report.card or ()) for report in every]
    free = dict.fromkeys(e.point for card in cards for e in card.entries if not e.knob)
    pairs = list(zip(every, cards, strict=True))
    knobs = [
        Choice(knob, says, tuple(_knob(report, card, knob) for report, card in pairs))
        for knob, says in KNOBS.items()
    ]
    seen = [{e.point: e.observed for e in reversed(card.entries)} for card in cards]
    others = [Choice(point, "", tuple(s.get(point, NOT_SEEN) for s in seen)) for point in free]
    return [c for c in (*knobs, *others) if set(c.observed) != {NOT_SEEN}]


def _square(report: Report, name: str, cells: Sequence[Cell], liberty: str) -> Square:
    programs = sum(cell.programs for cell in cells)
    failed = sum(cell.failed + cell.known for cell in cells)
    if not programs:
        return Square(*_why_not(report, name, cells))
    on = [cell.dtype for cell in cells if cell.failed + cell.known]
    skipped = sum(n for cell in cells for n in cell.skipped.values())
    rest = f"; {skipped:,} more not judged" if skipped else ""
    parts = ", ".join((report.composed or {}).get(name, ()))
    rest += f"; composed of {parts}" if parts else ""
    judged = counted(programs, "program")
    if failed:
        why = f"{failed:,} of {judged} fail, on {', '.join(on)}{rest}"
        return Square(State.FAILS, programs, failed, why)
    if liberty:
        return Square(State.LIBERTY, programs, 0, f"{judged}; {liberty}{rest}")
    return Square(State.COMPOSED if parts else State.CONFORMS, programs, 0, judged + rest)


def _why_not(report: Report, name: str, cells: Sequence[Cell]) -> tuple[State, int, int, str]:
    """The state of an op without a judged program, and the reason."""
    reasons = Counter({why: n for cell in cells for why, n in cell.skipped.items()})
    if why := main_reason(reasons):
        state = State.NOT_JUDGED if LEAVES_OUT in why else State.NOT_SUPPORTED
        return state, 0, 0, why
    vocabulary = report.generator.vocabulary
    if name in WHOLE or vocabulary is None or name in vocabulary.ops:
        return State.NOT_JUDGED, 0, 0, report.summary.lost or "the run has no program of it"
    return State.NOT_SUPPORTED, 0, 0, "the backend does not list it"


def _liberties(report: Report) -> dict[str, str]:
    """By op the liberty that a backend takes with it, as the program of its card shows it."""
    found: dict[str, str] = {}
    for entry in Card(report.card or ()).liberties:
        for op in _ops_of(entry):
            found.setdefault(op, f"{entry.liberty}: {entry.example}")
    return found


def _ops_of(entry: Observation) -> set[str]:
    """The ops of the program that shows a liberty; none where its text cannot be read."""
    try:
        roots = [case.root for case in parse_file(entry.repro).cases]
    except UopError:
        return set()
    nodes = (u for root in roots if root is not None for u in root.toposort())
    return {u.op.name for u in nodes if u.op not in NOT_COMPUTING}


def _knob(report: Report, card: Card, knob: str) -> str:
    """The value of a knob that was observed, else the one that the backend declares."""
    entries = [entry for entry in card.entries if entry.knob == knob]
    if twofold := [entry.observed for entry in entries if not entry.consistent]:
        return ", ".join(twofold)
    seen = {name: value for name, value in card.knobs().items() if name == knob}
    try:
        profile = profile_of(seen) if entries else parse_profile(report.profile)
    except UopError:
        return NOT_SEEN
    value = profile.declared().get(knob)
    if entries:
        return value or STRICT
    return f"{value} (declared)" if value else NOT_SEEN
