"""Each left-hand side of a compiler's rewrite occurs in the programs of a run."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from math import frexp, inf, isnan

import pytest

from uop.conformance.suite.case import Case
from uop.conformance.suite.choices import CountedChoices
from uop.conformance.suite.generate import cases
from uop.conformance.suite.levels.graph.pairs import IN_SMOKE, TOGETHER
from uop.conformance.suite.levels.graph.patterns import idioms, models, numbers
from uop.conformance.suite.levels.graph.patterns.rewrites import (
    SECTIONS,
    VARIANTS,
    Builder,
    built,
    groups,
    rewrites,
    table,
)
from uop.conformance.suite.vocabulary import whole
from uop.spec.args import ConstArg, DTypeArg, ReduceArg
from uop.spec.dtype import DTYPES, VALUES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

TABLE: dict[str, dict[str, str]] = tomllib.loads(
    files("uop.conformance.suite.levels.graph.patterns")
    .joinpath("rewrites.toml")
    .read_text("utf-8")
)
KINDS = {
    "numbers": {"int", "uint", "float"},
    "signed": {"int", "float"},
    "floats": {"float"},
    "integers": {"int", "uint"},
    "int": {"int"},
    "bits": {"int", "uint", "bool"},
    "bool": {"bool"},
    "values": {"int", "uint", "float", "bool"},
}
ROWS = [(section, pattern) for section, rows in TABLE.items() for pattern in rows]
NAMED: dict[str, Callable[[DType, float], bool]] = {
    "power": lambda d, v: v > 1 and frexp(v)[0] == 0.5,
    "lowest": lambda d, v: v == d.min,
    "highest": lambda d, v: v == d.max,
    "ones": lambda d, v: v == (-1 if d.is_signed else d.max),
    "width": lambda d, v: v == d.bits - 1,
    "inf": lambda d, v: v == inf,
    "nan": lambda d, v: isnan(v),
}
Bound = dict[str, UOp]


def occurs(e: ast.expr, u: UOp, bound: Bound) -> bool:
    """Whether a node is of a pattern; `bound` gets what the names stand for."""
    if isinstance(e, ast.Name):
        return _is_bound(e.id, u, bound)
    if not isinstance(e, ast.Call):
        return u.op is Op.CONST and _is_number(ast.literal_eval(e), u)
    assert isinstance(e.func, ast.Name)
    args = e.args
    if u.op is not Op.__members__[e.func.id]:
        return False
    if u.op is Op.REDUCE:
        assert isinstance(u.arg, ReduceArg)
        return u.arg.op.name == ast.unparse(args[0]) and occurs(args[1], u.src[0], bound)
    if isinstance(u.arg, DTypeArg) and len(args) == 2:
        inner = occurs(args[0], u.src[0], bound)
        like = bound.get(ast.unparse(args[1]))
        return inner and (like is None or u.dtype is like.dtype)
    return all(occurs(arg, s, bound) for arg, s in zip(args, u.src, strict=False))


def _is_bound(name: str, u: UOp, bound: Bound) -> bool:
    if name in NAMED:
        return u.op is Op.CONST and NAMED[name](u.dtype, _value(u))
    if name in "cd" and u.op is Op.RESHAPE:
        u = u.src[0]
    if (name in "cd") != (u.op is Op.CONST) or (name in "pq" and u.dtype is not dtypes.bool):
        return False
    return bound.setdefault(name, u) is u


def _is_number(number: float, u: UOp) -> bool:
    value = _value(u)
    return value == number and str(float(value))[0] == str(float(number))[0]


def _value(u: UOp) -> float:
    assert isinstance(u.arg, ConstArg)
    return u.dtype.decode(u.arg.bits)


@cache
def nodes(effort: str) -> Mapping[Op, list[tuple[str, UOp]]]:
    """The nodes of the programs of a run by op, each with the kind of dtype that it is about."""
    found: dict[Op, list[tuple[str, UOp]]] = {op: [] for op in Op}
    for case in cases(("op", "graph"), effort=effort):
        if isinstance(case, Case) and case.dtype not in ("index", "void"):
            kind = DTYPES[case.dtype].kind.value
            for u in case.root.toposort():
                found[u.op].append((kind, u))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("section", "pattern"), ROWS, ids=str)
def test_a_default_run_has_each_left_hand_side_three_times(section: str, pattern: str) -> None:
    e = ast.parse(pattern, mode="eval").body
    assert isinstance(e, ast.Call)
    op = Op.__members__[ast.unparse(e.func)]
    seen = Counter(kind for kind, u in nodes("default")[op] if occurs(e, u, {}))
    few = {kind: seen[kind] for kind in KINDS[section] if seen[kind] < (3 if kind != "bool" else 1)}
    assert few == {}


@pytest.mark.parametrize("name", IN_SMOKE)
def test_a_smoke_run_has_all_on_some_dtypes(name: str) -> None:
    dtype = DTYPES[name]
    listed = rewrites(dtype, whole())
    (ours,) = (g for g in groups(whole()) if (g.dtype, g.name) == (name, "rewrites"))
    judged = listed[: TOGETHER * ours.counts[0]]
    expected = {
        p for section, rows in TABLE.items() if dtype.kind.value in KINDS[section] for p in rows
    }
    assert {row.pattern for row in judged} == expected


@pytest.mark.parametrize("name", IN_SMOKE)
def test_a_smoke_run_has_all_compositions_on_some_dtypes(name: str) -> None:
    dtype = DTYPES[name]
    listed = rewrites(dtype, whole(), "compositions")
    (ours,) = (g for g in groups(whole()) if (g.dtype, g.name) == (name, "compositions"))
    judged = {row.pattern for row in listed[: TOGETHER * ours.counts[0]]}
    kind = dtype.kind.value
    assert judged == {
        p for s, rows in table("compositions").items() if kind in KINDS[s] for p in rows
    }


@pytest.mark.parametrize("dtype", [d for d in VALUES if d is not dtypes.index], ids=str)
def test_every_composition_is_built_on_the_dtypes_of_its_section(dtype: DType) -> None:
    for section, rows in table("compositions").items():
        for pattern in rows if dtype.kind.value in KINDS[section] else ():
            assert built(pattern, dtype, whole(), 0) is not None, pattern


def test_what_converts_to_any_dtype_converts_to_four() -> None:
    rows = [row for row in rewrites(dtypes.int8, whole()) if row.pattern == "CAST(CAST(x))"]
    roots = [built(row.pattern, dtypes.int8, whole(), row.turn) for row in rows]
    assert len({root.src[0].dtype for root in roots if root is not None}) == len(rows) == VARIANTS


def test_a_smoke_run_has_nine_in_ten() -> None:
    found = 0
    for _, pattern in ROWS:
        e = ast.parse(pattern, mode="eval").body
        assert isinstance(e, ast.Call)
        found += any(
            occurs(e, u, {}) for _, u in nodes("smoke")[Op.__members__[ast.unparse(e.func)]]
        )
    assert found >= 0.9 * len(ROWS)


def test_the_kinds_of_the_sections_are_those_of_the_generator() -> None:
    assert KINDS.keys() == SECTIONS.keys() == TABLE.keys()


def test_a_smoke_run_has_each_line_of_the_idioms(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, set[DType]] = {}

    class Noted(Builder):
        def node(self, e: ast.expr, like: DType) -> UOp:
            made = super().node(e, like)
            found.setdefault(ast.unparse(e), set()).add(self.home)
            return made

    monkeypatch.setattr(idioms, "Builder", Noted)
    smoke = [g for m in (idioms, numbers, models) for g in m.groups(whole()) if g.counts[0]]
    for group in smoke:
        group.build(CountedChoices(0, str(group.dtype)), 0)
    every = [
        (target, value)
        for name in dict.fromkeys(g.name for g in smoke if g.name not in ("alike", "converted"))
        for target, value in idioms.lines(name)
    ]
    results = {ast.unparse(value) for target, value in every if not target}
    # Some byte orders have two dtypes, of their width.
    assert {text for text in results if len(found.get(text, ())) < 2} == set()
