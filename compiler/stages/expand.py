"""expand: UPCAST and UNROLL ranges become axes of the values. optimize makes none yet, so every
program is expanded.
"""

from __future__ import annotations

from typing import cast

from uop.compiler.rewrite import Fired, quietly
from uop.spec.args import AxisType, RangeArg
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

EXPANDED = (AxisType.UPCAST, AxisType.UNROLL)


def expand(root: UOp, fired: Fired = quietly) -> UOp:
    """The program itself; UnsupportedError where a range is to be expanded."""
    for u in root.toposort():
        if u.op is Op.RANGE and cast(RangeArg, u.arg).axis_type in EXPANDED:
            raise UnsupportedError(
                f"expand: a RANGE of axis type {cast(RangeArg, u.arg).axis_type.name}"
            )
    return root
