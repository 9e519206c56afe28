"""expand: nothing to expand yet, and nobody passes what would have to be."""

from __future__ import annotations

import pytest

from uop.compiler.pipeline import compile
from uop.compiler.stages.expand import EXPANDED, expand
from uop.spec.args import AxisType, RangeArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

PROGRAM = compile(UOp(Op.NEG, param(0, (5,), dtypes.int32))).stages["optimize"]


def test_a_program_without_wide_ranges_is_itself() -> None:
    assert expand(PROGRAM) is PROGRAM


@pytest.mark.parametrize("axis_type", EXPANDED, ids=lambda a: a.name)
def test_a_wide_range_is_refused(axis_type: AxisType) -> None:
    (r,) = (u for u in PROGRAM.toposort() if u.op is Op.RANGE)
    wide = UOp(Op.RANGE, *r.src, arg=RangeArg(0, axis_type))
    with pytest.raises(UnsupportedError, match=f"axis type {axis_type.name}"):
        expand(PROGRAM.substitute({r: wide}))
