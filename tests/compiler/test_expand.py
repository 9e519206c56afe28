"""expand: loops over UPCAST and UNROLL written out; `test_optimize.py` runs what is left."""

from __future__ import annotations

from typing import cast

import pytest

from uop.compiler.pipeline import compile, lower
from uop.compiler.stages.expand import EXPANDED, MOST_COPIES, expand
from uop.spec.args import AxisType, RangeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.forms import FORMS, verify
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

X = param(0, (6, 8), dtypes.int32)
SUM = UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD, (1,)))


def left(text: str) -> UOp:
    return lower(SUM, "expand", optimizations=[parse_optimizations(text)])


def count(program: UOp, op: Op) -> int:
    return sum(u.op is op for u in program.toposort())


def test_a_program_without_wide_ranges_is_itself() -> None:
    program = compile(UOp(Op.NEG, X)).stages["optimize"]
    assert expand(program) is program


def test_outputs_side_by_side_are_a_group_of_stores() -> None:
    program = left("SPLIT(0, 3, UPCAST, INNER)")
    (group,) = (u for u in program.toposort() if u.op is Op.GROUP)
    assert [u.op for u in group.src] == [Op.STORE] * 3
    # Each copy folds in a loop of its own.
    assert count(program, Op.REDUCE) == 3
    assert count(program, Op.RANGE) == 1 + 3


def test_a_fold_written_out_is_a_chain() -> None:
    program = left("SPLIT(1, 8, UNROLL, INNER)")
    (fold,) = (u for u in program.toposort() if u.op is Op.REDUCE)
    assert len(fold.src) == 2
    assert count(program, Op.LOAD) == 8
    part = left("SPLIT(1, 4, UNROLL, INNER)")
    assert count(part, Op.LOAD) == 4


@pytest.mark.parametrize("axis_type", EXPANDED, ids=lambda a: a.name)
def test_no_wide_range_is_left(axis_type: AxisType) -> None:
    program = compile(UOp(Op.NEG, X)).stages["optimize"]
    ranges = [u for u in program.toposort() if u.op is Op.RANGE]
    wide = {r: UOp(Op.RANGE, *r.src, arg=RangeArg(k, axis_type)) for k, r in enumerate(ranges)}
    after = expand(program.substitute(wide))
    verify(after, FORMS["expand"])
    assert not count(after, Op.RANGE)
    assert count(after, Op.STORE) == 48


def test_more_copies_than_a_kernel_holds_are_refused() -> None:
    wide = UOp(Op.NEG, param(0, (MOST_COPIES + 1,), dtypes.int32))
    split = parse_optimizations(f"SPLIT(0, {MOST_COPIES + 1}, UPCAST, INNER)")
    with pytest.raises(UnsupportedError, match=str(MOST_COPIES)):
        lower(wide, "expand", optimizations=[split])


def test_an_empty_loop_is_nothing() -> None:
    empty = UOp(Op.NEG, param(0, (0,), dtypes.int32))
    program = lower(empty, "optimize")
    (r,) = (u for u in program.toposort() if u.op is Op.RANGE)
    none = UOp(Op.RANGE, *r.src, arg=RangeArg(cast(RangeArg, r.arg).id, AxisType.UPCAST))
    after = expand(program.substitute({r: none}))
    assert not count(after, Op.STORE)
