"""What is around an op: comparisons have both answers, sums wrap, chains hold all views."""

from __future__ import annotations

from collections import Counter
from functools import cache
from operator import add, mul, sub

import numpy as np
import pytest

from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import cases, groups
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AllReduceArg, ConstArg, ParamArg, arg_of
from uop.spec.graph import outside
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

LEVELS = "graph", "kernel", "device"


@cache
def of_group(name: str) -> list[Case]:
    """The programs of a default run of the groups of a name."""
    named = [g for level in LEVELS for g in groups(level) if g.name.partition("+")[0] == name]
    found = [g.case(k, 0) for g in named for k in range(g.count("default"))]
    assert found
    return [case for case in found if isinstance(case, Case)]


@pytest.mark.slow
def test_no_program_is_without_a_result() -> None:
    """A group that has a dtype has ops for it: that is not tried for the whole language."""
    every = (c for c in cases(LEVELS, effort="default") if isinstance(c, Case))
    assert not [c.id for c in every if not c.root.src]


def outputs_of(case: Case, batch: int = 0) -> list[tuple[UOp, Array]]:
    results = evaluate(case.root, case.batches[batch].inputs)
    assert isinstance(results, tuple)
    return list(zip(case.root.src, results, strict=True))


def test_a_comparison_at_an_end_has_both_answers() -> None:
    """A constant result, as of a bit above all that are set, has one."""
    found = [a for case in of_group("ends") for _, a in outputs_of(case)]
    both = [0 < np.count_nonzero(a) < a.size for a in found]
    assert sum(both) > 0.8 * len(both)


def test_every_integer_op_is_compared_on_narrow_values() -> None:
    compared = {u.op for c in of_group("ends") for value in c.root.src for u in value.src}
    assert {Op.ADD, Op.MUL, Op.IDIV, Op.MOD, Op.CDIV, Op.CMOD, Op.SHR, Op.XOR, Op.NEG} <= compared


EXACT = {Op.ADD: add, Op.SUB: sub, Op.MUL: mul}


def test_the_inner_op_wraps() -> None:
    wraps = Counter[bool]()
    for case in of_group("wraps"):
        inputs = case.batches[0].inputs
        for u in outside(case.root):
            if (
                u.op in EXACT
                and len({*u.src}) > 1
                and all(isinstance(s.arg, ParamArg) for s in u.src)
            ):
                columns = (inputs[arg_of(s, ParamArg).slot].tolist() for s in u.src)
                results = [EXACT[u.op](*pair) for pair in zip(*columns, strict=True)]
                wraps[min(results) < u.dtype.min or max(results) > u.dtype.max] += 1
    assert wraps[True] > 9 * wraps[False]


def test_chains_hold_each_view_over_each_other() -> None:
    views = (Op.PERMUTE, Op.RESHAPE, Op.SHRINK, Op.PAD, Op.FLIP, Op.EXPAND)
    found = {
        (u.op, u.src[0].op)
        for c in of_group("view-chains")
        for u in outside(c.root)
        if u.op in views and u.src[0].op in views
    }
    assert len(found) > 0.9 * len(views) ** 2


def test_every_pair_of_views_is_there_and_joins_axes_that_repeat() -> None:
    views = (Op.PERMUTE, Op.RESHAPE, Op.SHRINK, Op.PAD, Op.FLIP, Op.EXPAND)
    for case in of_group("view-pairs"):
        pairs = {(u.op, u.src[0].op) for u in case.root.src}
        assert len(pairs) == len(views) ** 2
    joined = {
        tuple(a == b for a, b in zip(u.src[0].shape, u.src[0].src[0].shape, strict=True))
        for case in of_group("view-pairs")
        for u in case.root.src
        if (u.op, u.src[0].op) == (Op.RESHAPE, Op.EXPAND) and len(u.shape) == 1
    }
    assert joined == {(True, False), (False, True)}


def test_lanes_come_in_other_orders_and_the_ends_stay() -> None:
    """Two lanes of a LOAD may be one element; a STORE of such lanes would have two values."""
    orders = set()
    for case in of_group("lanes"):
        loads = [u for u in case.root.toposort() if u.op is Op.LOAD]
        assert any(len(u.src) == 3 and not u.shape for u in loads)
        for load in (u for u in loads if u.shape):
            lanes = [lane.src[1] for lane in load.src[0].src[1].src]
            numbers = [arg_of(n, ConstArg).value for n in lanes]
            assert numbers[-1] - numbers[0] == len(numbers) - 1
            orders.add(tuple(numbers))
    assert len(orders) > 6
    assert any(len(set(numbers)) < len(numbers) for numbers in orders)


def test_divisors_meet_both_ends_of_a_dtype() -> None:
    for case in of_group("divided"):
        ends = np.concatenate([case.batches[k].inputs[0] for k in range(2)])
        dtype = case.root.src[0].dtype
        assert {dtype.min, dtype.max, dtype.min + 1, dtype.max - 1} <= {int(n) for n in ends}


def test_some_numbers_select_no_row() -> None:
    for case in of_group("idioms"):
        numbers = case.batches[0].inputs[1]
        n = len(case.batches[0].inputs[0])
        assert ((numbers < 0) | (numbers >= n)).any()
        assert ((numbers >= 0) & (numbers < n)).any()


def test_a_branch_changes_what_is_stored() -> None:
    for case in of_group("branches"):
        flat = next(u for u in case.root.toposort() if u.op is Op.LINEAR).src
        depth, inside = 0, 0
        for u in flat:
            depth += (u.op is Op.IF) - (u.op is Op.ENDIF)
            inside += u.op is Op.STORE and depth > 0
        assert inside > 1


def test_devices_fold_in_numbers_that_are_no_power_of_two_and_in_other_orders() -> None:
    folds = [u for c in of_group("devices") for u in c.root.toposort() if u.op is Op.ALLREDUCE]
    on = [u.src[0].device for u in folds]
    assert {len(d) for d in on if isinstance(d, tuple)} >= {3, 5, 6, 7}
    assert any(d != tuple(sorted(d)) for d in on if isinstance(d, tuple))
    assert {arg_of(u, AllReduceArg).op for u in folds} == {Op.ADD, Op.MAX, Op.MUL}
