"""Declarations of the marker ops, which are the identity on data."""

from __future__ import annotations

from uop.spec.ops import gradients
from uop.spec.ops.constraints import has_value
from uop.spec.ops.names import Op
from uop.spec.properties import axis, dtype, min_max, shape
from uop.spec.registry import Gradient, OpDef, define


def marker(op: Op, doc: str, gradient: Gradient) -> OpDef:
    """Declare an op that is the identity on values."""
    return define(
        OpDef(
            op,
            section="marker",
            doc=doc,
            src=("T",),
            dtype=dtype.of_src(0),
            shape=shape.of_first,
            min_max=min_max.of_src(0),
            axis=axis.of_first,
            gradient=gradient,
            constraints=(has_value(f"{op.name}.c1"),),
        )
    )


marker(Op.CONTIGUOUS, "T, in contiguous memory.", gradients.to_first)
marker(Op.CONTIGUOUSBACKWARD, "T; its gradient is made contiguous.", gradients.contiguous)
marker(Op.DETACH, "T; no gradient flows through it.", gradients.stopped)
