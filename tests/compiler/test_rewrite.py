"""Rewriting: fixed points, order, sharing, depth, and rules that break their contract."""

from __future__ import annotations

import pytest

from uop.compiler.rewriting.rewrite import Rewriter, RuleSet, rewrite, rewrites
from uop.spec.args import ConstArg
from uop.spec.dtype import dtypes
from uop.spec.errors import PassError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param

X = param(0, (3,), dtypes.int32)
Y = param(1, (3,), dtypes.int32)


@rewrites(Op.NEG)
def negate_twice(u: UOp) -> UOp | None:
    return u.src[0].src[0] if u.src[0].op is Op.NEG else None


@rewrites(Op.CONST)
def count_down(u: UOp) -> UOp | None:
    assert isinstance(u.arg, ConstArg)
    above_zero = u.dtype is dtypes.int32 and u.arg.value
    return const(int(u.arg.value) - 1, u.dtype) if above_zero else None


def test_rules_run_to_a_fixed_point_sources_first() -> None:
    fired: list[tuple[str, UOp, UOp]] = []
    four = X
    for _ in range(4):
        four = UOp(Op.NEG, four)
    graph = UOp(Op.ADD, four, const(2, dtypes.int32))
    after = rewrite(graph, RuleSet(negate_twice, count_down), lambda *seen: fired.append(seen))
    assert after is UOp(Op.ADD, X, const(0, dtypes.int32))
    assert [rule for rule, _, _ in fired] == ["negate_twice"] * 2 + ["count_down"] * 2
    assert fired[0][1:] == (UOp(Op.NEG, UOp(Op.NEG, X)), X)


def test_the_first_rule_that_applies_fires() -> None:
    @rewrites(Op.ADD, Op.MUL)
    def swap_into_sub(u: UOp) -> UOp | None:
        return UOp(Op.SUB, *reversed(u.src))

    @rewrites(Op.ADD)
    def never_reached(u: UOp) -> UOp | None:
        raise AssertionError

    assert rewrite(UOp(Op.ADD, X, Y), RuleSet(swap_into_sub, never_reached)) is UOp(Op.SUB, Y, X)


def test_what_a_rule_makes_is_rewritten_too() -> None:
    @rewrites(Op.SUB)
    def subtract_by_negation(u: UOp) -> UOp | None:
        return UOp(Op.ADD, u.src[0], UOp(Op.NEG, UOp(Op.NEG, UOp(Op.NEG, u.src[1]))))

    after = rewrite(UOp(Op.SUB, X, Y), RuleSet(subtract_by_negation, negate_twice))
    assert after is UOp(Op.ADD, X, UOp(Op.NEG, Y))


def test_a_shared_node_is_rewritten_once_even_between_graphs() -> None:
    fired: list[str] = []
    rewriter = Rewriter(RuleSet(negate_twice), lambda rule, _before, _after: fired.append(rule))
    shared = UOp(Op.NEG, UOp(Op.NEG, X))
    rewriter(UOp(Op.ADD, shared, shared))
    rewriter(UOp(Op.MUL, shared, Y))
    assert fired == ["negate_twice"]


def test_depth_needs_no_stack() -> None:
    deep = X
    for _ in range(40_000):
        deep = UOp(Op.NEG, deep)
    assert rewrite(deep, RuleSet(negate_twice)) is X


def test_rules_that_undo_each_other_run_out_of_budget() -> None:
    @rewrites(Op.ADD)
    def swap(u: UOp) -> UOp | None:
        return UOp(Op.ADD, *reversed(u.src))

    @rewrites(Op.CONST)
    def count_up(u: UOp) -> UOp | None:
        assert isinstance(u.arg, ConstArg)
        return const(int(u.arg.value) + 1, u.dtype)

    with pytest.raises(PassError, match="no fixed point, count_up"):
        Rewriter(RuleSet(count_up), budget=10)(const(0, dtypes.int32))
    with pytest.raises(PassError, match="rewrite: swap goes in a circle"):
        rewrite(UOp(Op.ADD, X, Y), RuleSet(swap))


def test_a_rule_that_wraps_its_own_node_is_found() -> None:
    @rewrites(Op.ADD)
    def wrap(u: UOp) -> UOp | None:
        return UOp(Op.NEG, u)

    with pytest.raises(PassError, match="wrap goes in a circle"):
        rewrite(UOp(Op.ADD, X, Y), RuleSet(wrap))


def test_a_rule_keeps_dtype_and_shape() -> None:
    @rewrites(Op.ADD)
    def widen(u: UOp) -> UOp | None:
        return param(9, (4,), dtypes.int32)

    with pytest.raises(PassError, match="widen turns"):
        rewrite(UOp(Op.ADD, X, Y), RuleSet(widen))
