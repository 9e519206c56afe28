"""Kernels of several results: loops that never run, folds in folds, axes, gates, narrow places."""

from __future__ import annotations

from functools import cache

import numpy as np

from uop.conformance.suite import generate
from uop.conformance.suite.case import Case
from uop.conformance.suite.levels.group import Group
from uop.interpreter.evaluate import evaluate
from uop.spec.args import AxisType, RangeArg, SpecialArg, arg_of
from uop.spec.graph import calls
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


@cache
def cases(name: str) -> list[Case]:
    """Those of a default run in the groups of this name."""
    groups = [g for g in generate.groups("kernel") if g.name == name and isinstance(g, Group)]
    return [g.case(k, 0) for g in groups for k in range(g.count("default"))]


def bodies(case: Case) -> list[UOp]:
    return [call.src[0] for call in calls(case.root)]


def bound(u: UOp) -> int | None:
    """None for a bound that is no CONST."""
    return int(u.src[0].arg.value) if u.src[0].op is Op.CONST else None  # type: ignore[union-attr]


def test_groups_of_effects_are_in_loops_that_run_never_once_and_more_often() -> None:
    for case in cases("effects"):
        ends = [u for u in case.root.toposort() if u.op is Op.END]
        several = [u for u in ends if u.src[0].op is Op.GROUP and len(u.src[0].src) > 1]
        assert len(several) >= 4
    bounds = {
        bound(u.src[1]) for c in cases("effects") for u in c.root.toposort() if u.op is Op.END
    }
    assert {0, 1, 2, None} <= bounds


def test_folds_are_inside_two_loops_and_a_fold_over_two_others() -> None:
    for case in cases("nested"):
        for body in bodies(case):
            order = body.toposort()
            inside = open_ranges(order)
            folds = [u for u in order if u.op is Op.REDUCE]
            assert sorted(len(inside[u]) for u in folds) == [2, 4]
            assert all(len(u.src) == 3 for u in folds)
    unrolled = {
        bound(u)
        for c in cases("nested")
        for u in c.root.toposort()
        if u.op is Op.RANGE and arg_of(u, RangeArg).axis_type is AxisType.UNROLL
    }
    assert unrolled <= {5, 6, 7}
    assert len(unrolled) > 1


def test_several_folds_share_a_workgroup() -> None:
    for case in cases("shared"):
        for body in bodies(case):
            ranges = [u for u in body.toposort() if u.op is Op.RANGE]
            types = {arg_of(r, RangeArg).axis_type for r in ranges}
            assert {AxisType.LOCAL, AxisType.GROUP_REDUCE} <= types


def test_launches_have_fewer_axes_of_groups_than_of_items_and_more() -> None:
    for index in range(2):
        ranks = set()
        for body in (b for c in cases("axes") if c.id.index == index for b in bodies(c)):
            names = [arg_of(u, SpecialArg).name for u in body.toposort() if u.op is Op.SPECIAL]
            groups = sum(name.startswith("gidx") for name in names)
            ranks.add((groups > len(names) - groups, groups < len(names) - groups))
        assert {(True, False), (False, True)} <= ranks


def test_gates_of_both_values_decide_what_is_written() -> None:
    for name in ("register-gates", "local-gates"):
        for case in cases(name):
            given = case.batches[0].inputs
            found = evaluate(case.root, given)
            root = without_gates(case.root)
            ungated = evaluate(root, given)
            assert isinstance(found, dict)
            assert isinstance(ungated, dict)
            same = (found[0] == ungated[0]).reshape(-1, 5)
            assert same[:, 4].all()
            assert not same.all()


def without_gates(root: UOp) -> UOp:
    new: dict[UOp, UOp] = {}
    for u in root.toposort():
        src = [new[s] for s in u.src]
        new[u] = u.with_src(src[:2] if u.op is Op.STORE else src)
    return new[root]


def test_places_of_few_bits_reach_the_upper_half() -> None:
    for case in cases("positions"):
        given = case.batches[0].inputs
        found = evaluate(case.root, given)
        assert isinstance(found, dict)
        for slot, half in ((0, 128), (2, 64)):
            changed = np.flatnonzero(
                found[slot].view(np.uint8).reshape(2 * half, -1)
                != given[slot].view(np.uint8).reshape(2 * half, -1)
            )
            assert changed.max() >= half
