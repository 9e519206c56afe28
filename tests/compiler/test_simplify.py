"""Simplification: every rule, alone and with all others, keeps the value of every expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.counters import PLACES, G, R, value
from uop.compiler.build import FALSE
from uop.compiler.rewriting.rewrite import Rule, RuleSet, rewrite
from uop.compiler.rewriting.simplify import MOST_CONDITIONS, SIMPLIFY
from uop.spec.args import DTypeArg
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const, param

Draw = Callable[[st.SearchStrategy[Any]], Any]

STEPS = (2, 3, 4, 6, 12, 24, 1, 5)
numbers = st.one_of(st.sampled_from(STEPS), st.integers(-30, 30))


@st.composite
def indices(draw: Draw) -> UOp:
    """Sums, products, quotients and remainders; half of them of what addressing is made of."""
    pool = [G, R, index_const(draw(numbers))]
    for _ in range(draw(st.integers(1, 8))):
        op = draw(st.sampled_from([Op.ADD, Op.ADD, Op.SUB, Op.MUL, Op.MUL, Op.NEG, Op.IDIV,
                                   Op.IDIV, Op.MOD, Op.MOD, Op.MAX]))  # fmt: skip
        a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        if op in (Op.IDIV, Op.MOD) or (op is Op.MUL and draw(st.booleans())):
            b = index_const(draw(numbers.filter(lambda n: n != 0)))
        pool.append(UOp(op, a) if op is Op.NEG else UOp(op, a, b))
    return pool[-1]


@st.composite
def conditions(draw: Draw) -> UOp:
    made = []
    for _ in range(draw(st.integers(1, 3))):
        a, b = draw(indices()), draw(st.one_of(indices(), numbers.map(index_const)))
        op, (a, b) = draw(st.sampled_from([Op.CMPLT, Op.CMPNE])), draw(st.permutations([a, b]))
        made.append(UOp(op, a, b))
    made.append(const(draw(st.booleans()), dtypes.bool))
    result = made[0]
    for c in made[1:]:
        result = UOp(Op.AND, result, c)
    return result


choices = st.tuples(conditions(), indices(), indices()).map(lambda s: UOp(Op.WHERE, *s))
expressions = st.one_of(indices(), conditions(), choices)


def check(before: UOp, rules: RuleSet) -> None:
    after = rewrite(before, rules)
    assert rewrite(after, rules) is after
    for g, r in PLACES:
        assert value(after, g, r) == value(before, g, r), (g, r)


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_all_rules_together_keep_the_value(before: UOp) -> None:
    check(before, SIMPLIFY)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rule", SIMPLIFY.rules, ids=lambda rule: rule.__name__)
@settings(max_examples=40, deadline=None)
@given(before=expressions)
def test_each_rule_alone_keeps_the_value(rule: Rule, before: UOp) -> None:
    check(before, RuleSet(rule))


def div(a: UOp, c: int) -> UOp:
    return UOp(Op.IDIV, a, index_const(c))


def mod(a: UOp, c: int) -> UOp:
    return UOp(Op.MOD, a, index_const(c))


def mul(a: UOp, c: int) -> UOp:
    return UOp(Op.MUL, a, index_const(c))


def add(a: UOp, b: UOp | int) -> UOp:
    return UOp(Op.ADD, a, index_const(b) if isinstance(b, int) else b)


def below(a: UOp, c: int) -> UOp:
    return UOp(Op.CMPLT, a, index_const(c))


def above(a: UOp, c: int) -> UOp:
    return UOp(Op.CMPLT, index_const(c), a)


def both(a: UOp, b: UOp) -> UOp:
    return UOp(Op.AND, a, b)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (add(mul(add(mul(div(G, 12), 3), mod(div(G, 4), 3)), 4), mod(G, 4)), G),
        (add(mul(div(G, 6), 6), mod(G, 6)), G),
        (add(mul(mod(div(G, 3), 4), 6), mul(mod(G, 3), 2)), mul(mod(G, 12), 2)),
        (div(add(mul(G, 6), R), 6), G),
        (mod(add(mul(G, 6), R), 6), R),
        (div(add(mul(G, 6), add(R, 14)), 6), add(add(G, div(add(R, 2), 6)), 2)),
        (div(R, 5), index_const(0)),
        (div(div(G, 2), 3), div(G, 6)),
        (mod(mod(G, 12), 4), mod(G, 4)),
        (div(mod(G, 12), 3), mod(div(G, 3), 4)),
        (UOp(Op.SUB, add(G, R), add(R, 2)), add(G, -2)),
        (UOp(Op.CMPLT, add(G, 3), index_const(10)), UOp(Op.CMPLT, G, index_const(7))),
        (div(add(mul(G, 13), R), 12), add(G, div(add(G, R), 12))),
        (mod(add(mul(G, 35), R), 34), add(G, R)),
        (div(mul(R, -13), 6), add(mul(R, -2), div(mul(R, -1), 6))),
        (both(below(G, 7), below(G, 5)), below(G, 5)),
        (both(below(G, 5), below(G, 7)), below(G, 5)),
        (both(above(G, 2), above(G, 3)), above(G, 3)),
        (both(both(below(G, 7), below(R, 3)), below(G, 5)), both(below(R, 3), below(G, 5))),
        (both(below(G, 7), above(G, 3)), both(below(G, 7), above(G, 3))),
        (UOp(Op.WHERE, below(R, 3), below(G, 5), FALSE), both(below(R, 3), below(G, 5))),
        (UOp(Op.CMPLT, G, index_const(24)), const(True, dtypes.bool)),
        (UOp(Op.CMPLT, index_const(23), G), const(False, dtypes.bool)),
    ],
)
def test_addresses_become_simple(before: UOp, after: UOp) -> None:
    assert rewrite(before, SIMPLIFY) is after


def test_the_smallest_interval_of_a_quotient_is_kept_apart() -> None:
    """-1 // 4 is -1, not 0: floor division, also of what a FLIP or SHRINK makes negative."""
    before = div(UOp(Op.SUB, R, index_const(4)), 4)
    assert [value(rewrite(before, SIMPLIFY), 0, r) for r in range(5)] == [-1, -1, -1, -1, 0]


def test_data_is_left_alone() -> None:
    """Integers of a dtype wrap, floats round: no algebra on them."""
    x = param(0, (), dtypes.uint8)
    f = param(1, (), dtypes.float32)
    zero, one = const(0, dtypes.uint8), const(1.0, dtypes.float32)
    kept = [
        UOp(Op.ADD, UOp(Op.ADD, x, const(200, dtypes.uint8)), const(100, dtypes.uint8)),
        UOp(Op.MUL, x, zero),
        UOp(Op.IDIV, UOp(Op.MUL, x, const(2, dtypes.uint8)), const(2, dtypes.uint8)),
        UOp(Op.MUL, f, one),
        UOp(Op.ADD, f, const(0.0, dtypes.float32)),
        UOp(Op.CAST, UOp(Op.CAST, f, arg=DTypeArg(dtypes.float16)), arg=DTypeArg(dtypes.float32)),
        UOp(Op.CMPNE, f, f),
    ]
    for u in kept:
        assert rewrite(u, SIMPLIFY) is u


def test_what_is_read_anyway_needs_no_gate() -> None:
    place = UOp(Op.INDEX, param(0, (24,), dtypes.float32), G)
    p, read = UOp(Op.CMPLT, G, index_const(7)), UOp(Op.LOAD, place)
    double, other = UOp(Op.ADD, read, read), const(2.0, dtypes.float32)
    chosen = UOp(Op.WHERE, p, read, double)
    assert rewrite(UOp(Op.LOAD, place, double, p), SIMPLIFY) is chosen
    gated = UOp(Op.LOAD, place, other, p)
    for alt in (other, UOp(Op.NEG, gated)):
        kept = UOp(Op.LOAD, place, alt, p)
        assert rewrite(kept, SIMPLIFY) is kept


def test_constants_that_leave_64_bits_are_left_alone() -> None:
    huge = index_const(1 << 62)
    for u in (UOp(Op.MUL, UOp(Op.MUL, G, huge), huge), UOp(Op.IDIV, UOp(Op.IDIV, G, huge), huge)):
        assert rewrite(u, SIMPLIFY).dtype is dtypes.index


def test_a_gate_that_implies_a_choice_makes_it() -> None:
    place = UOp(Op.INDEX, param(0, (24,), dtypes.float32), G)
    zero, one = const(0.0, dtypes.float32), const(1.0, dtypes.float32)
    gate = both(below(G, 5), below(R, 3))
    load = UOp(Op.LOAD, place, zero, gate)
    for p in (gate, below(R, 3), below(G, 7)):
        assert rewrite(UOp(Op.WHERE, p, load, zero), SIMPLIFY) is load
    for p, b in ((below(G, 4), zero), (above(G, 4), zero), (below(R, 3), one)):
        chosen = UOp(Op.WHERE, p, load, b)
        assert rewrite(chosen, SIMPLIFY) is chosen


def test_a_condition_on_data_is_chosen_and_not_joined() -> None:
    """What it compares may be UNSPECIFIED where the other condition is false."""
    data = UOp(Op.LOAD, UOp(Op.INDEX, param(0, (24,), dtypes.int32), G))
    for q in (UOp(Op.CMPLT, data, const(3, dtypes.int32)), below(cast_to_index(data), 3)):
        chosen = UOp(Op.WHERE, below(R, 3), q, FALSE)
        assert rewrite(chosen, SIMPLIFY) is chosen


def test_many_conditions_are_not_compared_with_each_other() -> None:
    gate = both(below(G, 7), below(R, 3))
    for k in range(2 * MOST_CONDITIONS):
        gate = both(gate, UOp(Op.CMPNE, G, index_const(k)))
    assert rewrite(both(gate, below(G, 9)), SIMPLIFY).src[1] is below(G, 9)


def cast_to_index(u: UOp) -> UOp:
    return UOp(Op.CAST, u, arg=DTypeArg(dtypes.index))
