"""A backend meets each two of its ops together, with the constants that rewrites look for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import cases, groups
from uop.conformance.suite.levels.graph.pairs import own_share
from uop.conformance.suite.levels.graph.pairs import pairs as pairs_of
from uop.conformance.suite.vocabulary import Vocabulary, computed, whole
from uop.spec.args import ConstArg
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const

TWELVE = "PARAM CONST ADD SUB MUL NEG CMPLT WHERE CAST RESHAPE EXPAND REDUCE"
SMALL = Vocabulary("small", frozenset(TWELVE.split()), frozenset({"int32", "float32"}))
BINARY = (Op.ADD, Op.SUB, Op.MUL)


def pairs(vocabulary: Vocabulary, effort: str) -> Iterator[Case]:
    for group in groups("graph", vocabulary):
        for index in range(group.count(effort)):
            if group.name.startswith("pairs"):
                case = group.case(index, 0)
                assert isinstance(case, Case)
                yield case


@cache
def small(effort: str, dtype: str) -> frozenset[UOp]:
    """The nodes of the programs that a backend of twelve ops gets."""
    return frozenset(u for c in pairs(SMALL, effort) if c.dtype == dtype for u in c.root.toposort())


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize(("outer", "inner"), list(product((*BINARY, Op.CMPLT), BINARY)))
def test_a_small_backend_meets_each_two_ops(dtype: str, outer: Op, inner: Op) -> None:
    nodes = [u for u in small("default", dtype) if u.op is outer and u.src[0].op is inner]
    assert any(u.src[1].op is Op.CONST and u.src[0].src[1].op is Op.CONST for u in nodes)
    assert any(u.src[1] is u.src[0].src[1] for u in nodes)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("op", [*BINARY, Op.CMPLT])
def test_each_op_is_on_one_value_twice_from_smoke_on(dtype: str, op: Op) -> None:
    assert any(u.op is op and u.src[0] is u.src[1] for u in small("smoke", dtype))


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.0), (0.0, 1.0), (1.0, -0.0), (-0.0, 0.0)])
def test_constants_that_rewrites_look_for_are_chosen_between(first: float, second: float) -> None:
    branches = (const(first, dtypes.float32), const(second, dtypes.float32))
    assert any(u.op is Op.WHERE and u.src[1:] == branches for u in small("smoke", "float32"))


def test_a_fold_of_copies_is_over_some_of_the_axes_that_repeat() -> None:
    folds = {
        (u.src[0].src[0].shape, u.arg.axes)  # type: ignore[union-attr]
        for u in small("smoke", "int32")
        if u.op is Op.REDUCE and u.src[0].op is Op.EXPAND
    }
    assert {((1, 1), (0,)), ((1, 1), (0, 1)), ((1, 3), (0, 1)), ((3, 1), (0,))} <= folds


def test_pairs_hold_what_is_listed_alone() -> None:
    for case in pairs(SMALL, "smoke"):
        assert all(SMALL.takes(u) for output in case.root.src for u in computed(output)), case.id


def test_every_dtype_has_pairs_and_the_programs_differ() -> None:
    made = list(pairs(whole(), "default"))
    assert {c.dtype for c in made} == {d for d in whole().dtypes if d not in ("index", "void")}
    assert len({c.root for c in made}) == len(made)


FIRST = {
    dtypes.float32: {0x0, 0x80000000, 0x3F800000, 0xBF800000, 0x40000000, 0x3F000000},
    dtypes.int32: {0, 1, 2, 31, 0xFFFFFFFF, 0x80000000},
    dtypes.uint32: {0, 1, 2, 31, 0xFFFFFFFF, 0x10000},
}
"""The bits of 0, -0, 1, -1, 2 and 1/2; of integers 0, 1, 2, 31 and the ends."""


@pytest.mark.parametrize("dtype", FIRST, ids=str)
@pytest.mark.parametrize("op", [*BINARY, Op.MAX, Op.CMPLT, Op.CMPEQ])
@pytest.mark.parametrize("place", [0, 1])
def test_a_default_run_has_each_op_beside_each_first_constant(
    dtype: DType, op: Op, place: int
) -> None:
    met = set()
    for case in cases(("op",), ops={op.name}, dtypes={dtype.name}):
        if isinstance(case, Case) and case.group == "constants":
            beside = [u.src for u in case.root.src if u.src[1 - place].op is Op.PARAM]
            met |= {s[place].arg.bits for s in beside if isinstance(s[place].arg, ConstArg)}
    assert met >= FIRST[dtype]


@pytest.mark.parametrize("kind", [(dtypes.int8, dtypes.int16), (dtypes.float32, dtypes.float16)])
def test_the_dtypes_of_a_kind_share_out_the_pairs(kind: tuple[DType, DType]) -> None:
    starts = [own_share(dtype, 1000) for dtype in VALUES if dtype.kind is kind[0].kind]
    assert len(set(starts)) == len(starts)
    assert pairs_of(kind[0], whole()) == pairs_of(kind[1], whole())
