"""The points of the spec that a run can show: those that cases are about, and what shows each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeVar

from uop.conformance.coverage.exercised import RULES, Exercised
from uop.conformance.coverage.value_classes import BIT, named, possible
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.suite.case import CaseId
from uop.spec.conditions.clauses import clauses
from uop.spec.conditions.labels import CONDITIONS
from uop.spec.documents.decisions import decisions
from uop.spec.documents.rows import rows
from uop.spec.dtype import DTYPES
from uop.spec.latitude import Exact, Rounded, Ulp
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


def points_of(ids: Sequence[CaseId], narrowed: bool) -> list[Point]:
    """Every point that the selected cases are about, in order."""
    cells = dict.fromkeys((id.op, id.dtype) for id in ids if id.level == "op")
    if cells and not narrowed:
        cells |= {(op.name, dt.name): None for op, d in DECLARATIONS.items() for dt in d.dtypes}
    ops = dict.fromkeys(op for op, _ in cells)
    levels = {id.level for id in ids}
    broken = dict.fromkeys(
        f"{id.op}.{id.group}" for id in ids if id.level == "invalid" and id.group != DRAWN
    )
    if "invalid" in levels and not narrowed:
        broken |= dict.fromkeys(labels().keys() - unspoken())
    of_rules = ops if narrowed else dict.fromkeys(op.name for op in DECLARATIONS)
    return [
        *(Point("cell", op, dtype) for op, dtype in cells),
        *(point for op, dtype in cells for point in _of_values(op, dtype)),
        *(Point("latitude", op, dtype) for op, dtype in cells if _is_open(op, dtype)),
        *(Point("label", label) for label in broken),
        *(Point("rule", op, detail=rule) for op in of_rules for rule in _rules(op, levels)),
        *(Point("decision", n) for n, of in ops_of_decisions().items() if of & ops.keys()),
    ]


def keys_of(verdict: Verdict, shown: Exercised) -> Iterator[Key]:
    """What a case shows, or might have shown if it was skipped."""
    level, op, dtype, *_ = verdict.id.split("/")
    cell, skipped = f"{op} {dtype}", verdict.status is Status.SKIPPED
    if shown.label:
        yield "label", shown.label, 0
    if level == "op" and (skipped or verdict.constrained):
        yield "cell", cell, 0
    if level == "op" and (skipped or _is_used(cell, verdict, shown.values)):
        yield "latitude", cell, 0
    for kind, members in (("value", shown.values), ("rule", shown.rules)):
        yield from ((kind, about, several) for about, several in members.items())


def by_point(noted: Mapping[Key, T]) -> dict[Point, list[T]]:
    """What was noted, by point; of a decision what was of the cells of its ops."""
    found: dict[Point, list[T]] = {}
    for (kind, about, members), what in noted.items():
        for point in _of_key(kind, about, members):
            found.setdefault(point, []).append(what)
    cells = [(point.about, what) for point, what in found.items() if point.kind == "cell"]
    for number, ops in ops_of_decisions().items():
        if together := [what for op, several in cells if op in ops for what in several]:
            found[Point("decision", number)] = together
    return found


@cache
def ops_of_decisions() -> Mapping[str, frozenset[str]]:
    """The decisions that rows about ops cite, with these ops."""
    found: dict[str, set[str]] = {}
    for row in rows().values():
        for number in row.decisions:
            found.setdefault(number, set()).update(row.ops)
    return {n: frozenset(found[n]) for n in decisions() if found.get(n)}


def not_of_runs() -> dict[str, list[str]]:
    """What no run shows, by the reason."""
    by_kind = {
        "clause": list(clauses()),
        "condition": list(CONDITIONS),
        "label": sorted(unspoken()),
        "decision": [n for n in decisions() if n not in ops_of_decisions()],
    }
    of_rules = {why: [f"rule {name}"] for name, why in NEVER_SHOWN.items()}
    return {NOT_OF_RUNS[kind]: names for kind, names in by_kind.items()} | of_rules


def _of_key(kind: str, about: str, members: int) -> Iterator[Point]:
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


def unspoken() -> set[str]:
    """The labels of args that are taken as the default where a text leaves them out."""
    return {f"{op.name}.arg" for op, d in DECLARATIONS.items() if d.default_arg is not None}
