"""What the suite is biased to does come up: absent elements, sizes, chains, constants, atomics."""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uop.conformance.strategies import HypothesisChoices
from uop.conformance.suite import generate, values
from uop.conformance.suite.case import Case
from uop.conformance.suite.levels.graph import random_graph as graph
from uop.conformance.suite.levels.group import Generated, Group
from uop.conformance.suite.levels.op import absent, sizes
from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.interpreter.values import Value
from uop.spec.args import PadFill
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp

OF_ABSENT = [d for d in DECLARATIONS.values() if d.dtypes and d.arg is None]
SLOW_DATA = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@cache
def cases(level: str, name: str) -> list[Case]:
    """Those of the default effort in the groups of a level that have this name, or part of it."""
    groups = [g for g in generate.groups(level) if name in g.name and isinstance(g, Group)]
    return [g.case(k, 0) for g in groups for k in range(g.count("default"))]


def leaves_empty(u: UOp) -> bool:
    return u.op is Op.PAD and u.arg.fill is PadFill.INVALID  # type: ignore[union-attr]


def consumer(root: UOp) -> str:
    """What takes the result of the op."""
    return root.src[0].op.name if root.op in (Op.SINK, Op.TUPLE) else root.op.name


def test_every_op_meets_a_pad_in_each_operand_before_each_consumer() -> None:
    seen: Counter[tuple[str, int, str]] = Counter()
    for case in cases("op", "absent"):
        for u in case.root.toposort():
            if u.op.name == case.op:
                for k, operand in enumerate(u.src):
                    if leaves_empty(operand):
                        seen[case.op, k, consumer(case.root)] += 1
    for declaration in OF_ABSENT:
        for k in range(len(declaration.src)):
            for name in ("REDUCE", "STORE", "WHERE", "LOAD"):
                assert seen[declaration.op.name, k, name], (declaration.op, k, name)


def test_what_moves_absent_elements_is_followed_by_a_fold_and_by_a_store() -> None:
    seen = {(c.id.group, consumer(c.root)) for c in cases("op", "absent-")}
    names = {name for name, _ in seen}
    assert {"absent-stacked", "absent-stacked-last", "absent-to-uint8", "absent-picked"} <= names
    for group in generate.groups("op"):
        if group.name in ("absent-stacked", "absent-to-uint64"):
            made = {consumer(group.case(k, 0).root) for k in range(2)}  # type: ignore[union-attr]
            assert made == {"REDUCE", "STORE"}


def test_a_fill_would_show() -> None:
    """With zeros in place of what is absent most results are other ones."""
    some = cases("op", "absent")[::9]
    shown = sum(plain(c.root.substitute(zeros(c.root)), c) != plain(c.root, c) for c in some)
    assert shown > 0.6 * len(some)


def zeros(root: UOp) -> dict[UOp, UOp]:
    return {
        u: UOp(Op.PAD, *u.src, arg=u.arg.__class__(PadFill.ZERO))
        for u in root.toposort()
        if leaves_empty(u)
    }


def plain(root: UOp, case: Case) -> list[bytes]:
    """The results as bytes, with zero where an element is absent or has no value."""
    full = evaluate_full(root, case.batches[0].inputs)
    parts = [full] if isinstance(full, Value) else full.values() if isinstance(full, dict) else full
    return [
        (
            v.data if v.invalid is None else np.where(v.invalid, v.data.dtype.type(0), v.data)
        ).tobytes()
        for v in parts
    ]


def test_a_usual_run_sees_every_size() -> None:
    for op in sizes.KINDS:
        found = [c for c in cases("op", "sizes") if c.op == op.name]
        seen = {s for c in found for b in c.batches for a in b.inputs.values() for s in a.shape}
        assert set(sizes.SIZES) <= seen, op


def test_ranks_reach_from_none_to_six() -> None:
    shapes = {a.shape for c in cases("op", "ranks") for b in c.batches for a in b.inputs.values()}
    assert {len(s) for s in shapes} == set(range(sizes.MOST_AXES + 1))


def test_large_arrays_have_a_million_elements() -> None:
    group = next(g for g in generate.groups("op") if g.name == "large")
    case = group.case(0, 0)
    assert isinstance(case, Case)
    assert case.batches[0].inputs[0].size == 1 << 20
    assert max(prod(shape) for shape in sizes.LARGE) < 1 << 21


def test_full_edges_hold_every_pair_of_special_values() -> None:
    case = generate.case_by_id("op/ADD/float16/edges/1")
    assert isinstance(case, Case)
    columns = [a.view(np.uint16).tolist() for a in case.batches[0].inputs.values()]
    table = values.specials(dtypes.float16).view(np.uint16).tolist()
    assert set(zip(*columns, strict=True)) == {(a, b) for a in table for b in table}


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("absent", lambda u: leaves_empty(u)),
        ("chains", lambda u: u.op in (Op.CAST, Op.BITCAST) and u.src[0].op is not Op.PARAM),
        ("gates", lambda u: u.op is Op.LOAD and len(u.src) == 3),
        ("constants", lambda u: {s.op for s in u.src} > {Op.CONST}),
    ],
)
def test_graphs_hold_what_their_flavour_is_for(name: str, held: object) -> None:
    found = [c for c in cases("graph", name) if c.id.group == name]
    often = sum(sum(map(held, c.root.toposort())) >= 2 for c in found)  # type: ignore[arg-type]
    assert often > len(found) / 2


def test_small_dtypes_are_run_on_every_value() -> None:
    """One operand of up to 16 bits, two of 8: of the ops with a shift count those it has."""
    whole = {(g.op, g.dtype) for g in generate.groups("op")
             if g.name == "exhaustive" and g.count("default")}  # fmt: skip
    for d in OF_ABSENT:
        for dtype in d.dtypes:
            width = dtype.bits * len(d.src)
            if len(d.src) < 3 and width <= 16 and (len(d.src) == 1 or dtype.bits == 8):
                assert (d.op.name, dtype.name) in whole, (d.op, dtype)


def test_gaps_of_a_ledger_are_filled_by_cases_that_the_effort_left_out() -> None:
    cells = {("MOD", "int8"), ("SIN", "float32")}
    usual = {str(c.id) for op, dtype in cells
             for c in generate.cases(ops=[op], dtypes=[dtype], effort="smoke")}  # fmt: skip
    more = list(generate.left_out_cases(cells, "smoke"))
    assert {(id.op, id.dtype) for id in more} == cells
    assert not usual & set(map(str, more))
    held = [generate.case_by_id(str(id)) for id in more if id.group == "aimed"]
    assert held
    assert any(u.op.name == c.op for c in held if isinstance(c, Case) for u in c.root.toposort())


def test_floats_of_every_size_are_added_to_by_many_work_items() -> None:
    dtypes_ = {c.dtype for c in cases("kernel", "added")}
    assert {"float16", "bfloat16", "fp8e4m3", "fp8e5m2", "float32", "int8"} <= dtypes_
    depths = [max_depth(c.root) for c in cases("kernel", "added")]
    assert max(depths) >= 2


def max_depth(root: UOp) -> int:
    """How many branches lie within one another."""
    deepest = depth = 0
    body = next(u for u in root.toposort() if u.op is Op.LINEAR)
    for u in body.src:
        depth += (u.op is Op.IF) - (u.op is Op.ENDIF)
        deepest = max(deepest, depth)
    return deepest


FLAVOURS = ("absent", "specials", "chains", "gates", "constants")


@given(st.data(), st.sampled_from(FLAVOURS))
@SLOW_DATA
def test_hypothesis_drives_the_biased_graphs(data: st.DataObject, name: str) -> None:
    flavour = graph.FLAVOURS[name]
    has_a_meaning(graph.build(flavour.homes[0], flavour, HypothesisChoices(data), 0))


@given(st.data(), st.sampled_from(OF_ABSENT), st.integers(0, 3))
@SLOW_DATA
def test_hypothesis_drives_the_builder_of_absent_elements(
    data: st.DataObject, declaration: object, way: int
) -> None:
    take = absent.CONSUMERS[way]
    dtype = declaration.dtypes[0]  # type: ignore[attr-defined]
    ways = [(k, take) for k in range(len(declaration.src))]  # type: ignore[attr-defined]
    for index in range(len(ways)):
        has_a_meaning(
            absent.padded_operand(declaration, dtype, ways, HypothesisChoices(data), index)  # type: ignore[arg-type]
        )


def has_a_meaning(program: Generated) -> None:
    for batch in program.batches:
        evaluate(program.root, batch.inputs)
