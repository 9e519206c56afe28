"""The ledger of a run: every point of the spec that its cases can show, and which of them did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import TypeVar

from uop.conformance.case import CaseId
from uop.conformance.delivery import not_listed
from uop.conformance.exercised import RULES
from uop.conformance.protocol import Hello
from uop.conformance.report import Tally, counted, main_reason
from uop.conformance.value_classes import BIT, named, possible
from uop.conformance.verdict import Status, Verdict
from uop.conformance.wire import Json
from uop.spec.clauses import clauses
from uop.spec.decisions import decisions
from uop.spec.dtype import DTYPES
from uop.spec.labels import CONDITIONS
from uop.spec.latitude import STRICT, Exact, Profile, Rounded, Ulp, Unordered
from uop.spec.ledger.rows import rows
from uop.spec.ops.names import Op
from uop.spec.properties import addrspace, axis, device, min_max
from uop.spec.registry import DECLARATIONS, labels

KINDS = {
    "cell": "an op on a dtype: a program of level op of which something was constrained",
    "value": "an op on a dtype that reads an input with values of a class",
    "latitude": "what an op may return on a dtype: a result that might be one of several",
    "label": "a constraint: a program that breaks it, and no other, and must be rejected",
    "rule": "a derived property of an op where it says something",
    "decision": "a reading of an open point: programs of level op on the ops that it is about",
}
"""The kinds of points, each with what counts as a check of one."""
OF_VALUES = frozenset(
    {"elementwise", "decomposed", "reduce", "movement", "load", "store", "marker"}
)
"""The sections of ops that work on values, or hand them on."""
SAYS_NOTHING = (
    device.null,
    addrspace.value,
    min_max.none,
    min_max.range_of_dtype,
    min_max.binary,
    axis.null,
)
"""The rules of declarations by which no node differs from another of its dtype."""
NEVER_SHOWN = {
    "PTRADD min_max": "its operand is memory, of which no more is known than its dtype",
    "BITCAST addrspace": "nothing says what memory holds as elements of another dtype (VALUE.n2)",
}
"""The rules that declarations have and no program shows, each with the reason."""
NEEDED = {"min_max": "property", "device": "device", "axis": "device"}
"""The level without which nothing is expected of a rule, where that is not level op."""
DRAWN = "drawn"
"""The group of invalid cases that may break any label."""
HALF = Fraction(1, 2)
FIRST = 2
"""So many ids of checks stand with each point."""
NO_CASE = "no case that was judged shows it"
ENDED = "the run ended before"
CLOSED = "the profile leaves no choice, by cmp_nan=ieee"
NOT_OF_RUNS = {
    "clause": "a program that breaks it has no meaning, so that nothing follows for a backend",
    "label": "no text breaks it: where the arg is left out, its default is taken",
    "condition": "it is about data and calls in Python, which no backend is sent",
    "decision": "it is about no op that a backend runs: tests of this project pin it",
}
"""Why no run shows anything of these, by kind."""


@dataclass(frozen=True, slots=True)
class Point:
    """One thing to check: a kind, an op or a name, and for some kinds a dtype and a detail."""

    kind: str
    about: str
    dtype: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.about, self.dtype, self.detail)))


Key = tuple[str, str, int]
"""A kind of points, what they are about, and a set of value classes or rules."""
T = TypeVar("T")


@dataclass(slots=True)
class Evidence:
    """How many checks exercised a point, and the first of them, as places in the order of ids."""

    checks: int = 0
    first: tuple[int, ...] = ()

    def add(self, other: Evidence) -> None:
        """The order of what is added does not matter."""
        self.checks += other.checks
        self.first = tuple(sorted({*self.first, *other.first})[:FIRST])


@dataclass(slots=True, eq=False)
class Ledger:
    """Which points the cases of a run show; `ids` are those that were selected, in their order."""

    ids: Sequence[CaseId]
    narrowed: bool = False
    """Whether the run was narrowed to some ops, dtypes or cases."""
    profile: Profile = STRICT
    seen: dict[Key, Evidence] = field(default_factory=dict)
    skipped: dict[Key, Counter[str]] = field(default_factory=dict)
    """Why cases were skipped that would have shown something, if they were made."""
    places: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.expect(self.ids)

    def expect(self, ids: Iterable[CaseId]) -> None:
        """Take the places of ids behind those that are known."""
        for id in ids:
            self.places.setdefault(str(id), len(self.places))

    def add(self, verdict: Verdict, shown: Json | None) -> None:
        """Count a case with what it exercises, or would; None where it was not made."""
        for key in _keys(verdict, shown) if shown else ():
            if verdict.status is Status.SKIPPED:
                self.skipped.setdefault(key, Counter())[verdict.reason] += 1
            else:
                self._note(key, self.places[verdict.id])

    def points(self) -> dict[Point, Evidence]:
        """Every point that was exercised, with its checks."""
        found: dict[Point, Evidence] = {}
        for point, several in _by_point(self.seen).items():
            found[point] = Evidence()
            for evidence in several:
                found[point].add(evidence)
        return found

    def expected(self) -> list[Point]:
        """Every point that the selected cases are about, in order."""
        cells = dict.fromkeys((id.op, id.dtype) for id in self.ids if id.level == "op")
        ops = dict.fromkeys(op for op, _ in cells)
        levels = {id.level for id in self.ids}
        broken = dict.fromkeys(
            f"{id.op}.{id.group}" for id in self.ids if id.level == "invalid" and id.group != DRAWN
        )
        if "invalid" in levels and not self.narrowed:
            broken |= dict.fromkeys(labels().keys() - _unspoken())
        of_rules = ops if self.narrowed else dict.fromkeys(op.name for op in DECLARATIONS)
        return [
            *(Point("cell", op, dtype) for op, dtype in cells),
            *(point for op, dtype in cells for point in _of_values(op, dtype)),
            *(Point("latitude", op, dtype) for op, dtype in cells if _is_open(op, dtype)),
            *(Point("label", label) for label in broken),
            *(Point("rule", op, detail=rule) for op in of_rules for rule in _rules(op, levels)),
            *(Point("decision", n) for n, of in _ops_of_decisions().items() if of & ops.keys()),
        ]

    def unseen(self, tally: Tally) -> dict[Point, str]:
        """Every point that was not checked, and why."""
        seen, skipped = self.points(), _by_point(self.skipped)
        return {
            p: CLOSED
            if self._is_closed(p)
            else main_reason(sum(skipped.get(p, ()), Counter())) or _why_not(p, tally)
            for p in self.expected()
            if p not in seen
        }

    def gaps(self, tally: Tally) -> set[Point]:
        """The points of which other cases on an op and dtype may show something."""
        return {
            p
            for p, why in self.unseen(tally).items()
            if p.dtype and why != CLOSED and not _is_declined(p, tally)
        }

    def missing(self, hello: Hello, tally: Tally) -> tuple[str, ...]:
        """What keeps a run from a verdict: what the backend lists without any evidence.

        Each op on each dtype that it lists, as far as selected, needs a judged program of which
        something is constrained, or that have no elements, unless the backend declined them all;
        most need one anyway.
        """
        listed = [p for p in self.expected() if p.kind == "cell" and _is_listed(p, hello)]
        reasons = self.unseen(tally)
        without = [p for p in listed if p in reasons and not _is_empty(p, tally)]
        declined = [p for p in without if _is_declined(p, tally)]
        found = [f"{p.about} {p.dtype}: {reasons[p]}" for p in without if p not in declined]
        if 2 * len(declined) > len(listed):
            kept = main_reason(Counter(reasons[p] for p in declined))
            found.append(f"{len(declined)} of {len(listed)} ops and dtypes: {kept}")
        return tuple(found)

    def to_json(self, tally: Tally) -> Json:
        """The section `ledger` of a report."""
        seen, expected = self.points(), self.expected()
        names = list(self.places)
        kinds = {
            kind: {
                "says": says,
                "total": sum(p.kind == kind for p in expected),
                "checked": sum(p.kind == kind and p in seen for p in expected),
            }
            for kind, says in KINDS.items()
        }
        reasons: dict[str, list[str]] = {}
        for point, why in self.unseen(tally).items():
            reasons.setdefault(why, []).append(str(point))
        return {
            "total": len(expected),
            "checked": sum(p in seen for p in expected),
            "kinds": kinds,
            "unchecked": [_listed(why, reasons[why]) for why in sorted(reasons)],
            "not_of_runs": [_listed(why, points) for why, points in _not_of_runs().items()],
            "evidence": {
                str(point): {"checks": e.checks, "first": [names[k] for k in e.first]}
                for point, e in sorted(seen.items(), key=lambda pair: str(pair[0]))
            },
        }

    def _is_closed(self, point: Point) -> bool:
        """Whether there is but one result by the profile, of an op that has several."""
        if point.kind != "latitude" or self.profile.cmp_nan == "either":
            return False
        op = Op[point.about]
        unordered = isinstance(DECLARATIONS[op].latitude, Unordered)
        return unordered and op not in self.profile.decomposed

    def _note(self, key: Key, place: int) -> None:
        evidence = self.seen.setdefault(key, Evidence())
        if len(evidence.first) == FIRST and place > evidence.first[-1]:
            evidence.checks += 1
        else:
            evidence.add(Evidence(1, (place,)))


def ledger_lines(ledger: Json) -> list[str]:
    """What a terminal shows of the section: of a run of few cases only what they show."""
    if not ledger["total"]:
        counts = Counter(point.partition(" ")[0] for point in ledger["evidence"])
        shown = ", ".join(counted(counts[kind], kind) for kind in KINDS if counts[kind])
        return [f"ledger: these cases show {shown}"] if shown else []
    unchecked = ledger["unchecked"]
    line = f"ledger: {ledger['checked']:,} of {ledger['total']:,} points checked"
    kinds = ", ".join(
        f"{of['checked']:,} of {of['total']:,} {kind}s"
        for kind, of in ledger["kinds"].items()
        if of["total"]
    )
    told = [f"{len(u['points']):,} {u['reason']}" for u in unchecked]
    lines = [f"{line}: {kinds}" if kinds else line]
    return [*lines, f"not checked: {'; '.join(told)}"] if told else lines


def _keys(verdict: Verdict, shown: Json) -> Iterator[Key]:
    """What a case shows, or might have shown if it was skipped."""
    level, op, dtype, *_ = verdict.id.split("/")
    cell, skipped = f"{op} {dtype}", verdict.status is Status.SKIPPED
    if shown["label"]:
        yield "label", shown["label"], 0
    if level == "op" and (skipped or verdict.constrained):
        yield "cell", cell, 0
    if level == "op" and (skipped or _is_used(cell, verdict, shown["values"])):
        yield "latitude", cell, 0
    for kind in ("value", "rule"):
        for about, members in shown[f"{kind}s"].items():
            yield kind, about, members


def _by_point(noted: Mapping[Key, T]) -> dict[Point, list[T]]:
    """What was noted, by point; of a decision what was of the cells of its ops."""
    found: dict[Point, list[T]] = {}
    for (kind, about, members), what in noted.items():
        for point in _points_of(kind, about, members):
            found.setdefault(point, []).append(what)
    cells = [(point.about, what) for point, what in found.items() if point.kind == "cell"]
    for number, ops in _ops_of_decisions().items():
        if together := [what for op, several in cells if op in ops for what in several]:
            found[Point("decision", number)] = together
    return found


def _points_of(kind: str, about: str, members: int) -> Iterator[Point]:
    op, _, dtype = about.partition(" ")
    if kind == "value":
        yield from (Point(kind, op, dtype, name) for name in named(members))
    elif kind == "rule":
        rules = (name for k, name in enumerate(RULES) if members >> k & 1)
        yield from (Point(kind, op, detail=name) for name in rules)
    else:
        yield Point(kind, op, dtype)


def _of_values(op: str, dtype: str) -> Iterator[Point]:
    if op in Op.__members__ and DECLARATIONS[Op[op]].section in OF_VALUES:
        yield from (Point("value", op, dtype, name) for name in named(possible(DTYPES[dtype])))


def _is_open(op: str, dtype: str) -> bool:
    """Whether an op may return one of several results on a dtype."""
    is_exact = op not in Op.__members__ or isinstance(DECLARATIONS[Op[op]].latitude, Exact)
    return DTYPES[dtype].is_float and not is_exact


def _is_used(cell: str, verdict: Verdict, values: Mapping[str, int]) -> bool:
    """Whether a result may be one of several; where one is rounded, those are the bits of NaNs."""
    meets_nan = values.get(cell, 0) & BIT["nan"] > 0
    return meets_nan if _is_rounded(*cell.split()) else verdict.elements > verdict.single


def _is_rounded(op: str, dtype: str) -> bool:
    """Whether numbers are rounded once: within half an ulp there is but one."""
    latitude = DECLARATIONS[Op[op]].latitude
    is_half = type(latitude) is Ulp and latitude.budget(DTYPES[dtype]) <= HALF
    return isinstance(latitude, Rounded) or (is_half and DTYPES[dtype].is_float)


def _rules(op: str, levels: set[str]) -> Iterator[str]:
    """The properties of an op that can say something on these levels."""
    declaration = DECLARATIONS[Op[op]]
    for name in RULES:
        says = getattr(declaration, name) not in SAYS_NOTHING and f"{op} {name}" not in NEVER_SHOWN
        if name in RULES[:2] or (says and NEEDED.get(name, "op") in levels):
            yield name


def _is_listed(point: Point, hello: Hello) -> bool:
    return not not_listed(CaseId("op", point.about, point.dtype, "", 0), hello)


def _is_empty(point: Point, tally: Tally) -> bool:
    """Whether it was judged on results without elements alone: by their shape and dtype."""
    cell = tally.cells.get(("op", point.about, point.dtype))
    return cell is not None and cell.programs > 0 and not cell.elements


def _is_declined(point: Point, tally: Tally) -> bool:
    """Whether the backend was asked, and said no to every program."""
    cell = tally.cells.get(("op", point.about, point.dtype))
    return cell is not None and not cell.programs


def _why_not(point: Point, tally: Tally) -> str:
    """Why a point was not checked of which no case was made: why those of its cells were not."""
    cells = [cell for key, cell in tally.cells.items() if _is_about(point, *key)]
    if any(cell.programs for cell in cells) or (not cells and not point.dtype):
        return NO_CASE
    return main_reason(sum((cell.skipped for cell in cells), Counter())) or ENDED


def _is_about(point: Point, level: str, op: str, dtype: str) -> bool:
    """Whether the cases of a level, op and dtype are those that would show a point."""
    if point.kind == "label":
        return level == "invalid" and op == point.about.partition(".")[0]
    if point.kind == "decision":
        return level == "op" and op in _ops_of_decisions()[point.about]
    return op == point.about and (point.kind == "rule" or (level, dtype) == ("op", point.dtype))


@cache
def _ops_of_decisions() -> Mapping[str, frozenset[str]]:
    """The decisions that rows about ops cite, with these ops."""
    found: dict[str, set[str]] = {}
    for row in rows().values():
        for number in row.decisions:
            found.setdefault(number, set()).update(row.ops)
    return {n: frozenset(found[n]) for n in decisions() if found.get(n)}


def _unspoken() -> set[str]:
    """The labels of args that are taken as the default where a text leaves them out."""
    return {f"{op.name}.arg" for op, d in DECLARATIONS.items() if d.default_arg is not None}


def _not_of_runs() -> dict[str, list[str]]:
    """What no run shows, by the reason."""
    by_kind = {
        "clause": list(clauses()),
        "condition": list(CONDITIONS),
        "label": sorted(_unspoken()),
        "decision": [n for n in decisions() if n not in _ops_of_decisions()],
    }
    of_rules = {why: [f"rule {name}"] for name, why in NEVER_SHOWN.items()}
    return {NOT_OF_RUNS[kind]: names for kind, names in by_kind.items()} | of_rules


def _listed(reason: str, points: list[str]) -> Json:
    return {"reason": reason, "points": points}
