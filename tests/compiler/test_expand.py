"""expand: loops over UPCAST and UNROLL as axes of shape; `test_optimize.py` runs what is left."""

from __future__ import annotations

from typing import cast

import pytest

from uop.compiler.pipeline import compile, lower
from uop.compiler.stages.expand import (
    ELEMENT_BY_ELEMENT,
    EXPANDED,
    MOST_ELEMENTS,
    PRODUCT_BY_PRODUCT,
    RULES,
    expand,
)
from uop.spec.args import AxisType, RangeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import PassError, UnsupportedError
from uop.spec.kernel.forms import FORMS, verify
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const, param

X = param(0, (6, 8), dtypes.int32)
SUM = UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD, (1,)))


def left(text: str, root: UOp = SUM) -> UOp:
    return lower(root, "expand", optimizations=[parse_optimizations(text)])


def count(program: UOp, op: Op) -> int:
    return sum(u.op is op for u in program.toposort())


def the(program: UOp, op: Op) -> UOp:
    (found,) = (u for u in program.toposort() if u.op is op)
    return found


def test_a_program_without_wide_ranges_is_itself() -> None:
    program = compile(UOp(Op.NEG, X)).stages["optimize"]
    assert expand(program) is program


def test_outputs_side_by_side_are_elements_of_one_store() -> None:
    program = left("SPLIT(0, 3, UPCAST, INNER)")
    assert the(program, Op.STORE).src[1].shape == (3,)
    # One loop folds all of them.
    assert the(program, Op.REDUCE).src[0].shape == (3,)
    assert count(program, Op.RANGE) == 2


def test_each_loop_has_an_axis_and_other_values_are_1_on_it() -> None:
    a, b = param(0, (6, 1), dtypes.int32), param(1, (1, 8), dtypes.int32)
    program = left("SPLIT(0, 3, UPCAST, INNER); SPLIT(2, 2, UPCAST, INNER)", UOp(Op.MUL, a, b))
    product = the(program, Op.STORE).src[1].src[0]
    assert product.op is Op.MUL
    assert product.shape == (3, 2)
    assert [s.shape for s in product.src] == [(3, 1), (1, 2)]


def test_a_fold_over_an_unrolled_loop_is_one_over_its_axis() -> None:
    fold = the(left("SPLIT(1, 4, UNROLL, INNER)"), Op.REDUCE)
    assert fold.src[0].shape == (4,)
    assert len(fold.src) == 2
    assert cast(ReduceArg, fold.arg).axes == (0,)
    whole = the(left("SPLIT(1, 8, UNROLL, INNER)"), Op.REDUCE)
    assert whole.src[0].shape == (8,)


def test_a_fold_of_what_does_not_change_counts_each_iteration() -> None:
    ones = UOp(Op.EXPAND, param(0, (6, 1), dtypes.int32), dims((6, 8)))
    fold = the(left("SPLIT(1, 4, UNROLL, INNER)", UOp(Op.REDUCE, ones, arg=SUM.arg)), Op.REDUCE)
    assert fold.src[0].op is Op.EXPAND
    assert fold.src[0].shape == (4,)


@pytest.mark.parametrize("axis_type", EXPANDED, ids=lambda a: a.name)
def test_no_wide_range_is_left(axis_type: AxisType) -> None:
    program = compile(UOp(Op.NEG, X)).stages["optimize"]
    ranges = [u for u in program.toposort() if u.op is Op.RANGE]
    wide = {r: UOp(Op.RANGE, *r.src, arg=RangeArg(k, axis_type)) for k, r in enumerate(ranges)}
    after = expand(program.substitute(wide))
    verify(after, FORMS["expand"])
    assert not count(after, Op.RANGE)
    assert the(after, Op.STORE).src[1].shape == (48,)


def test_each_firing_is_observed() -> None:
    seen: list[str] = []
    program = lower(SUM, "optimize", optimizations=[parse_optimizations(
        "SPLIT(0, 3, UPCAST, INNER); SPLIT(2, 2, UNROLL, INNER)")])  # fmt: skip
    expand(program, lambda rule, before, after: seen.append(rule))
    assert sorted(set(seen)) == sorted(set(RULES) - {ELEMENT_BY_ELEMENT, PRODUCT_BY_PRODUCT})


def test_more_elements_than_registers_hold_are_refused() -> None:
    wide = UOp(Op.NEG, param(0, (MOST_ELEMENTS + 1,), dtypes.int32))
    with pytest.raises(UnsupportedError, match=str(MOST_ELEMENTS)):
        left(f"SPLIT(0, {MOST_ELEMENTS + 1}, UPCAST, INNER)", wide)


def test_an_empty_loop_is_nothing() -> None:
    empty = UOp(Op.NEG, param(0, (0,), dtypes.int32))
    program = lower(empty, "optimize")
    r = the(program, Op.RANGE)
    none = UOp(Op.RANGE, *r.src, arg=RangeArg(cast(RangeArg, r.arg).id, AxisType.UPCAST))
    after = expand(program.substitute({r: none}))
    assert not count(after, Op.STORE)


def test_values_of_two_ranks_are_no_expanded_kernel() -> None:
    program = left("SPLIT(0, 3, UPCAST, INNER)", UOp(Op.NEG, X))
    value = the(program, Op.NEG)
    pair = UOp(Op.STACK, index_const(0), index_const(1))
    grid = UOp(Op.ADD, UOp(Op.RESHAPE, pair, dims((2, 1))), index_const(1))
    place = the(program, Op.STORE).src[0]
    memory, index = place.src
    other = UOp(Op.MUL, UOp(Op.INDEX, UOp(Op.RESHAPE, grid, dims((2,))), index_const(0)), index)
    with pytest.raises(PassError, match=r"expand\.axes"):
        verify(
            program.substitute({place: UOp(Op.INDEX, memory, other), value: value}),
            FORMS["expand"],
        )
