"""Codegen ops: what generated kernels are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uop.spec.args import SourceArg, SpecialArg
from uop.spec.ops.effects import counter, effect
from uop.spec.ops.names import Op
from uop.spec.properties import device
from uop.spec.registry import Constraint

if TYPE_CHECKING:
    from uop.spec.registry import Node

PARTS = (Op.LINEAR, Op.SOURCE, Op.BINARY)


def _wrong_parts(u: Node) -> str | None:
    found = tuple(s.op for s in u.src)
    return None if found == PARTS else " ".join(op.name for op in found)


counter(
    Op.SPECIAL,
    "codegen",
    "The index of this work item along one dimension of the launch: 0 to bound - 1.",
    SpecialArg,
)

effect(
    Op.PROGRAM,
    "codegen",
    "A compiled kernel: its instructions, source and machine code (empty until built).",
    ("linear", "source", "binary"),
    Constraint("PROGRAM.c1", "src is LINEAR, SOURCE, BINARY", _wrong_parts),
    on=device.null,
)

effect(Op.SOURCE, "codegen", "Rendered source code.", (), arg=SourceArg, on=device.null)
