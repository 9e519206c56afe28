"""optimize: every range gets the axis type it runs as. Nothing is searched: outputs are parallel,
folds are serial.
"""

from __future__ import annotations

from typing import cast

from uop.compiler.rewrite import Fired, RuleSet, quietly, rewrite, rewrites
from uop.spec.args import AxisType, RangeArg
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


def optimize(root: UOp, fired: Fired = quietly) -> UOp:
    """The same kernels with every RANGE over outputs GLOBAL."""
    return rewrite(root, OPTIMIZE, fired)


@rewrites(Op.RANGE)
def run_outputs_in_parallel(u: UOp) -> UOp | None:
    """A LOOP over outputs carries nothing from one element to the next."""
    arg = cast(RangeArg, u.arg)
    if arg.axis_type is not AxisType.LOOP:
        return None
    return UOp(Op.RANGE, *u.src, arg=RangeArg(arg.id, AxisType.GLOBAL))


OPTIMIZE = RuleSet(run_outputs_in_parallel)
