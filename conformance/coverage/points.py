"""Defines the points of the spec that a run can cover, and which cases cover them.

Says too which parts of the spec lack something that a run needs: storage, rules, cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeVar

from uop.conformance.coverage.exercised import RULES, Exercised
from uop.conformance.coverage.value_classes import BIT, named, possible
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.suite.case import ANY_LABEL, CaseId
from uop.conformance.suite.levels import invalid
from uop.conformance.suite.levels.written import by_file
from uop.interpreter.accepted.rules.table import ACCEPTED_SET, FLOAT_RULES
from uop.interpreter.numeric.storage import np_dtype
from uop.interpreter.rules.table import MEANING
from uop.interpreter.rules.table import RULES as MEANINGS
from uop.spec.conditions.clauses import clauses
from uop.spec.conditions.labels import CONDITIONS
from uop.spec.documents.decisions import decisions
from uop.spec.documents.rows import rows
from uop.spec.dtype import DTYPES, VALUES
from uop.spec.errors import IncompleteError
from uop.spec.latitude import Exact, Rounded, Ulp
from uop.spec.ops.names import Op
from uop.spec.properties import addrspace, axis, device, min_max
from uop.spec.registry import DECLARATIONS, OpDef, labels

KINDS = {
    "cell": "an op on a dtype: a program of level op of which something was constrained",
    "value": "an op on a dtype that reads an input with values of a class",
    "latitude": "what an op may return on a dtype: a result that might be one of several",
    "label": "a constraint: a program that breaks it, and no other, and must be rejected",
    "rule": "a derived property of an op where it says something",
    "decision": "a reading of an open point: programs of level op on the ops that it is about",
}
"""The kinds of points, with what covers a point of the kind."""
OF_VALUES = frozenset(
    {"elementwise", "decomposed", "reduce", "movement", "load", "store", "marker"}
)
"""The sections of ops that compute or move values."""
SAYS_NOTHING = (
    device.null,
    addrspace.value,
    min_max.none,
    min_max.range_of_dtype,
    min_max.binary,
    axis.null,
)
"""Trivial rules: all nodes of a dtype have the same property."""
NEVER_SHOWN = {
    "PTRADD min_max": "its operand is memory, of which no more is known than its dtype",
}
"""Declared rules that no program can cover, with the reasons."""
NEEDED = {"min_max": "property", "device": "device", "axis": "device"}
"""The level whose cases cover a rule; level op for the others."""
HALF = Fraction(1, 2)
NOT_OF_RUNS = {
    "clause": "a program that breaks it has no meaning, so that nothing follows for a backend",
    "label": "no text breaks it: where the arg is left out, its default is taken",
    "condition": "it is about data and calls in Python, which no backend is sent",
    "decision": "it is about no op that a backend runs: tests of this project pin it",
}
"""Why no run can cover these points, by kind."""
CASES = "cases with its special values: a file NAME.uop in conformance/suite/cases/op/"
REJECTED = "a program that is rejected for {}: a case in conformance/suite/cases/invalid/"


@dataclass(frozen=True, slots=True)
class Point:
    """A point to cover: a kind, an op or name, and for some kinds a dtype and a detail."""

    kind: str
    about: str
    dtype: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.about, self.dtype, self.detail)))


Key = tuple[str, str, int]
"""A kind of points, an op or name, and a set of value classes or rules."""
T = TypeVar("T")


def points_of(ids: Sequence[CaseId], narrowed: bool) -> list[Point]:
    """The points that the selected cases can cover, in order."""
    cells = dict.fromkeys((id.op, id.dtype) for id in ids if id.level == "op")
    if cells and not narrowed:
        cells |= {(op.name, dt.name): None for op, d in DECLARATIONS.items() for dt in d.dtypes}
    ops = dict.fromkeys(op for op, _ in cells)
    levels = {id.level for id in ids}
    broken = dict.fromkeys(
        f"{id.op}.{id.group}" for id in ids if id.level == "invalid" and id.group != ANY_LABEL
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
    """The keys of the points that a case covers, or would have covered if it was skipped."""
    level, op, dtype, *_ = verdict.id.split("/")
    cell, skipped = f"{op} {dtype}", verdict.status is Status.SKIPPED
    if shown.label:
        yield "label", shown.label, 0
    if level == "op" and (skipped or verdict.counts.constrained):
        yield "cell", cell, 0
    if level == "op" and (skipped or _is_used(cell, verdict, shown.values)):
        yield "latitude", cell, 0
    for kind, members in (("value", shown.values), ("rule", shown.rules)):
        yield from ((kind, about, several) for about, several in members.items())


def by_point(by_key: Mapping[Key, T]) -> dict[Point, list[T]]:
    """Group values by point. A decision gets the values of the cells of its ops."""
    result: dict[Point, list[T]] = {}
    for (kind, about, members), value in by_key.items():
        for point in _of_key(kind, about, members):
            result.setdefault(point, []).append(value)
    cells = [(point.about, value) for point, value in result.items() if point.kind == "cell"]
    for number, ops in ops_of_decisions().items():
        if together := [value for op, several in cells if op in ops for value in several]:
            result[Point("decision", number)] = together
    return result


@cache
def ops_of_decisions() -> Mapping[str, frozenset[str]]:
    """The ops of each decision that rows about ops cite."""
    ops: dict[str, set[str]] = {}
    for row in rows().values():
        for number in row.decisions:
            ops.setdefault(number, set()).update(row.ops)
    return {n: frozenset(ops[n]) for n in decisions() if ops.get(n)}


def not_of_runs() -> dict[str, list[str]]:
    """The points that no run can cover, by reason."""
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
    """Whether several results of an op on a dtype may be accepted."""
    is_exact = op not in Op.__members__ or isinstance(DECLARATIONS[Op[op]].latitude, Exact)
    return DTYPES[dtype].is_float and not is_exact


def _is_used(cell: str, verdict: Verdict, values: Mapping[str, int]) -> bool:
    """Whether a case has several accepted results; of a rounded op only the NaN bits are free."""
    if _is_rounded(*cell.split()):
        return values.get(cell, 0) & BIT["nan"] > 0
    return verdict.counts.elements > verdict.counts.single


def _is_rounded(op: str, dtype: str) -> bool:
    """Whether results are correctly rounded: at most half an ulp off, so one value is accepted."""
    latitude = DECLARATIONS[Op[op]].latitude
    is_half = type(latitude) is Ulp and latitude.budget(DTYPES[dtype]) <= HALF
    return isinstance(latitude, Rounded) or (is_half and DTYPES[dtype].is_float)


def _rules(op: str, levels: set[str]) -> Iterator[str]:
    """The properties of an op that cases of these levels can cover."""
    declaration = DECLARATIONS[Op[op]]
    for name in RULES:
        says = getattr(declaration, name) not in SAYS_NOTHING and f"{op} {name}" not in NEVER_SHOWN
        if name in RULES[:2] or (says and NEEDED.get(name, "op") in levels):
            yield name


def unspoken() -> set[str]:
    """The labels that no text can break: an omitted arg takes its default."""
    return {f"{op.name}.arg" for op, d in DECLARATIONS.items() if d.default_arg is not None}


def check_complete(ops: Collection[str] | None = None) -> None:
    """Raise IncompleteError for the first incomplete dtype or op, with all missing parts.

    `ops` limits the check to these ops.
    """
    for dtype in VALUES:
        np_dtype(dtype)
    for op, declaration in DECLARATIONS.items():
        if ops is None or op.name in ops:
            parts = tuple(_lacking(declaration))
            if parts:
                raise IncompleteError(op.name, *parts)


def _lacking(declaration: OpDef) -> Iterator[str]:
    op = declaration.op
    if declaration.dtypes and op not in MEANINGS:
        yield MEANING
    # The accepted set of an extension op is that of its decomposition.
    has_choice = declaration.is_elementwise and not isinstance(declaration.latitude, Exact)
    if has_choice and op not in FLOAT_RULES and any(d.is_float for d in declaration.dtypes):
        yield ACCEPTED_SET
    if declaration.section in OF_VALUES and op.name not in by_file("op"):
        yield CASES.replace("NAME", op.name)
    known = invalid.programs().keys() | unspoken()
    yield from (REJECTED.format(c.label) for c in declaration.constraints if c.label not in known)
