"""optimize: the axis types of ranges."""

from __future__ import annotations

from typing import cast

from uop.compiler.pipeline import compile
from uop.compiler.stages.optimize import optimize
from uop.spec.args import AxisType, RangeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

X = param(0, (2, 3, 4), dtypes.int32)


def axis_types(program: UOp) -> list[AxisType]:
    ranges = [cast(RangeArg, u.arg) for u in program.toposort() if u.op is Op.RANGE]
    return [arg.axis_type for arg in sorted(ranges, key=lambda arg: arg.id)]


def test_outputs_are_parallel_and_folds_are_serial() -> None:
    stages = compile(UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD, (1,)))).stages
    assert axis_types(stages["rangeify"]) == [AxisType.LOOP, AxisType.LOOP, AxisType.REDUCE]
    assert axis_types(stages["optimize"]) == [AxisType.GLOBAL, AxisType.GLOBAL, AxisType.REDUCE]


def test_it_is_done_once_and_only_that_changes() -> None:
    stages = compile(UOp(Op.NEG, X)).stages
    assert optimize(stages["optimize"]) is stages["optimize"]
    before, after = (stages[name].toposort() for name in ("rangeify", "optimize"))
    assert [u.op for u in before] == [u.op for u in after]
