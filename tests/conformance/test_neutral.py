"""Folds of rows of one value, under each optimization that lengthens or shares out a loop."""

from __future__ import annotations

from functools import cache, reduce

import numpy as np
import pytest

from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import groups
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AxisType, RangeArg
from uop.spec.ops.names import Op

MASK = (1 << 32) - 1
INTEGERS = {
    Op.ADD: (0, lambda a, b: (a + b) & MASK),
    Op.MUL: (1, lambda a, b: a * b & MASK),
    Op.MAX: (-(1 << 31) & MASK, lambda a, b: max(a, b, key=lambda n: n ^ 1 << 31)),
    Op.MIN: ((1 << 31) - 1, lambda a, b: min(a, b, key=lambda n: n ^ 1 << 31)),
}
"""Of int32 as numbers below 2^32: what a fold of nothing gives, and one step."""


@cache
def made(dtype: str, effort: str = "default") -> tuple[Case, ...]:
    (found,) = (g for g in groups("schedule") if g.name == "neutral" and g.dtype == dtype)
    cases = [found.case(index, 0) for index in range(found.count(effort))]
    return tuple(case for case in cases if isinstance(case, Case))


def rows_of(case: Case) -> Array:
    assert case.source is not None
    return case.source.batches[0].inputs[0]


@pytest.mark.parametrize(("place", "op"), enumerate((Op.ADD, Op.MAX, Op.MUL, Op.MIN)))
def test_optimized_integer_folds_are_those_of_a_loop(place: int, op: Op) -> None:
    start, step = INTEGERS[op]
    for case in made("int32", "full"):
        rows = rows_of(case)
        found = evaluate(case.root, case.batches[0].inputs)
        assert isinstance(found, dict)
        expected = [reduce(step, (int(n) & MASK for n in row), start) for row in rows]
        assert [int(n) & MASK for n in found[1 + place].reshape(-1)] == expected, case.id


def test_a_default_run_has_each_length_and_each_type_of_axis() -> None:
    cases = made("float32")
    lengths = {rows_of(c).shape[1] for c in cases}
    assert {0, 1} < lengths
    assert len(lengths) >= 5
    ranges = [u.arg for c in cases for u in c.root.toposort() if u.op is Op.RANGE]
    kinds = {arg.axis_type for arg in ranges if isinstance(arg, RangeArg)}
    assert kinds >= {AxisType.UNROLL, AxisType.GROUP_REDUCE, AxisType.UPCAST, AxisType.LOCAL}


def test_rows_are_of_one_infinity_zero_nan_or_extreme_each() -> None:
    rows = max((rows_of(c) for c in made("float32")), key=lambda a: a.shape[1])
    alone = [row[0] for row in rows if len(set(row.view(np.uint32).tolist())) == 1]
    signs = {(float(n), bool(np.signbit(n))) for n in alone}
    big = float(np.finfo(np.float32).max)
    for n in (np.inf, 0.0, big, 1.0):
        assert {(n, False), (-n, True)} <= signs
    assert any(np.isnan(n) for n in alone)
