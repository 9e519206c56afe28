"""Codegen ops: what generated kernels are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uop.spec.args import SourceArg, SpecialArg
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.ops.ordering import bound_constraint
from uop.spec.properties import addrspace, axis, device, dtype, min_max, shape
from uop.spec.registry import Constraint, OpDef, define

if TYPE_CHECKING:
    from uop.spec.registry import Node

PARTS = (Op.LINEAR, Op.SOURCE, Op.BINARY)


def _wrong_parts(u: Node) -> str | None:
    found = tuple(s.op for s in u.src)
    return None if found == PARTS else " ".join(op.name for op in found)


define(
    OpDef(
        Op.SPECIAL,
        section="codegen",
        doc="The index of this work item along one dimension of the launch: 0 to bound - 1.",
        src=("bound",),
        arg=SpecialArg,
        dtype=dtype.always(dtypes.index),
        shape=shape.scalar,
        device=device.null,
        addrspace=addrspace.value,
        min_max=min_max.counter,
        axis=axis.null,
        constraints=(bound_constraint("SPECIAL.c1"),),
    )
)

define(
    OpDef(
        Op.PROGRAM,
        section="codegen",
        doc="A compiled kernel: its instructions, source and machine code (empty until built).",
        src=("linear", "source", "binary"),
        dtype=dtype.always(dtypes.void),
        shape=shape.scalar,
        device=device.null,
        addrspace=addrspace.value,
        min_max=min_max.none,
        axis=axis.null,
        constraints=(Constraint("PROGRAM.c1", "src is LINEAR, SOURCE, BINARY", _wrong_parts),),
    )
)

define(
    OpDef(
        Op.SOURCE,
        section="codegen",
        doc="Rendered source code.",
        src=(),
        arg=SourceArg,
        dtype=dtype.always(dtypes.void),
        shape=shape.scalar,
        device=device.null,
        addrspace=addrspace.value,
        min_max=min_max.none,
        axis=axis.null,
    )
)
