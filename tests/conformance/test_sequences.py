"""Sequences of two ops show what a rewrite of them may lose; the oracles are numpy and integers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from uop.conformance.suite import generate
from uop.conformance.suite.case import Case
from uop.conformance.suite.levels.group import Group
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import PermuteArg, arg_of
from uop.spec.dtype import DTYPES
from uop.spec.graph import slot_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

MOVES = (Op.PERMUTE, Op.FLIP, Op.SHRINK, Op.PAD, Op.EXPAND, Op.RESHAPE)


@cache
def cases(name: str) -> list[Case]:
    """Those of a default run in the groups of this name."""
    groups = [g for g in generate.groups("op") if g.name == name and isinstance(g, Group)]
    return [g.case(k, 0) for g in groups for k in range(g.count("default"))]


def outputs(case: Case, batch: int = 0) -> list[Array]:
    found = evaluate(case.root, case.batches[batch].inputs)
    assert isinstance(found, tuple | list)
    return list(found)


def adjacent(root: UOp) -> set[tuple[Op, Op]]:
    return {(s.op, u.op) for u in root.toposort() for s in u.src[:1]}


def test_each_view_of_a_cube_stands_behind_each() -> None:
    """An EXPAND needs an axis of size 1, which a SHRINK makes."""
    pairs = set[tuple[Op, Op]]().union(*(adjacent(c.root) for c in cases("cubes")))
    assert {(a, b) for a in MOVES for b in MOVES if b is not Op.EXPAND} <= pairs
    assert (Op.SHRINK, Op.EXPAND) in pairs


def test_two_permutations_of_a_cube_in_the_other_order_give_something_else() -> None:
    seen = 0
    for case in (c for c in cases("cubes") if c.op == "PERMUTE"):
        cube = case.batches[0].inputs[0]
        for u, found in zip(case.root.src, outputs(case), strict=True):
            if u.op is Op.PERMUTE and u.src[0].op is Op.PERMUTE:
                first, second = (arg_of(v, PermuteArg).order for v in (u.src[0], u))
                assert np.array_equal(found, cube.transpose(first).transpose(second))
                assert not np.array_equal(found, cube.transpose(second).transpose(first))
                seen += 1
    assert seen >= 3


@pytest.mark.parametrize("name", ["int16", "uint16", "int32", "uint32"])
def test_shifts_of_widened_integers_need_the_upper_bits(name: str) -> None:
    narrow = DTYPES[name]
    for case in (c for c in cases("widened") if c.dtype == name):
        given = case.batches[0].inputs[0]
        shifted = [
            (u, found)
            for u, found in zip(case.root.src, outputs(case), strict=True)
            if u.op is Op.SHL
        ]
        assert len(shifted) == 2
        for u, found in shifted:
            assert u.dtype.bits > narrow.bits
            assert not np.array_equal(found, found.astype(given.dtype).astype(found.dtype))


def test_what_undoes_a_function_does_not_undo_it_on_special_values() -> None:
    for case in cases("undone"):
        given = case.batches[0].inputs[0]
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            for found in outputs(case)[:-1]:
                assert not np.array_equal(found, given, equal_nan=True), case.id


def test_tables_are_read_at_the_highest_positions_of_few_bits() -> None:
    for case in (c for c in cases("data") if c.id.index == 0):
        given = case.batches[0].inputs
        params = [u for u in case.root.toposort() if u.op is Op.PARAM]
        places = {u.dtype: given[slot_of(u)] for u in params if slot_of(u) > 1}
        assert {d.bits for d in places} == {8, 16}
        assert all(at.min() > d.max // 2 for d, at in places.items() if not d.is_signed)
