"""Operands broadcast in every way, by default on every dtype; results have every rank."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import pytest

from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import groups
from uop.conformance.suite.levels.op.sizes import MOST_AXES
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp

ELEMENTWISE = [d for d in DECLARATIONS.values() if d.is_elementwise and d.dtypes and d.arg is None]
FIXED = {
    *(Op.BINARY, Op.BIND, Op.CONST, Op.CONTRACT, Op.UNROLL, Op.NOOP, Op.PRECAST, Op.STAGE),
    *(Op.ALLREDUCE, Op.PTRADD, Op.RANGE, Op.SLICE, Op.SPECIAL, Op.WMMA, Op.INS, Op.GETADDR),
}
"""Ops whose results have few ranks by what they are, or that are about kernels and devices."""
AT_LEAST_ONE = {Op.STACK, Op.REPLICATED}
"""Ops whose results have an axis."""


@cache
def cases(effort: str, name: str = "") -> tuple[Case, ...]:
    chosen = [g for g in groups("op") if name in ("", g.name)]
    made = (g.case(k, 0) for g in chosen for k in range(g.count(effort)))
    return tuple(case for case in made if isinstance(case, Case))


def pattern(operand: UOp, base: Shape) -> str:
    """How an operand stands to the shape of the first output."""
    if operand.op is Op.CONST:
        return "constant"
    if operand.shape == base:
        return "equal"
    if not operand.shape:
        return "scalar"
    return "missing" if len(operand.shape) < len(base) else "one"


@pytest.mark.parametrize("effort", ["smoke", "default"])
@pytest.mark.parametrize("declaration", ELEMENTWISE, ids=lambda d: d.op.name)
def test_each_operand_is_a_scalar_lacks_an_axis_has_one_of_size_one(
    declaration: OpDef, effort: str
) -> None:
    """On every dtype by default; a smoke run tries one at least."""
    seen: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for case in cases(effort, "patterns"):
        if case.op == declaration.op.name:
            nodes = [u for u in case.root.toposort() if u.op is declaration.op]
            base = case.root.src[0].shape
            for u in nodes:
                for k, operand in enumerate(u.src):
                    seen[case.dtype, k].add(pattern(operand, base))
    arity = len(declaration.src)
    every = {(d.name, k) for d in declaration.dtypes for k in range(arity)}
    assert set(seen) == every if effort == "default" else seen.keys() <= every
    assert {k for _, k in seen} == set(range(arity))
    wanted = {"scalar", "missing", "one", "constant"} if arity > 1 else {"equal", "scalar"}
    assert {cell: wanted - found for cell, found in seen.items() if wanted - found} == {}


def test_results_have_every_rank() -> None:
    ranks: defaultdict[Op, set[int]] = defaultdict(set)
    for case in cases("smoke"):
        for u in case.root.toposort():
            if u.dtype is not dtypes.void:
                ranks[u.op].add(len(u.shape))
    every = set(range(MOST_AXES + 1))
    short = {op.name: every - found for op, found in ranks.items() if op not in FIXED}
    allowed = {op.name: {0} for op in AT_LEAST_ONE}
    assert {name: gap for name, gap in short.items() if gap - allowed.get(name, set())} == {}
