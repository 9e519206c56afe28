"""Declarations of the ordering ops: loops, dependences and sinks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from uop.spec.args import RangeArg
from uop.spec.dtype import dtypes
from uop.spec.ops import gradients
from uop.spec.ops.constraints import are_effects, has_value, op_among
from uop.spec.ops.kinds import counter, effect, value
from uop.spec.ops.names import Op
from uop.spec.properties import addrspace, device
from uop.spec.registry import Clause, Constraint

if TYPE_CHECKING:
    from uop.spec.registry import Node


def _no_effect_or_after(u: Node) -> str | None:
    for s in u.src:
        if s.dtype is not dtypes.void and s.op is not Op.AFTER:
            return f"a value, from {s.op.name}"
    return None


_effect = partial(effect, "ordering")

counter(
    "ordering",
    Op.RANGE,
    "A loop variable from 0 to bound - 1; a bound of 0 runs nothing.",
    Clause("RANGE.u1", "a RANGE whose iterations follow each other is closed, by END or REDUCE"),
    Clause("RANGE.u2", "the bound is not UNSPECIFIED"),
    Clause("RANGE.n1", "iterations that run at once are a CONST many"),
    arg=RangeArg,
)

_effect(
    Op.END,
    "Close the loop of a RANGE around the effects of the body.",
    ("body", "range"),
    op_among("END.c1", "the second operand is a RANGE", 1, Op.RANGE),
)

value(
    "ordering",
    Op.AFTER,
    "buf itself, once every dep has been executed.",
    ("buf", "deps*"),
    has_value("AFTER.c1"),
    device=device.of_first,
    addrspace=addrspace.of_first,
    gradient=gradients.to_first,
)

_effect(Op.GROUP, "Several effects as one, in no order.", ("u*",), are_effects("GROUP.c1"))

_effect(
    Op.SINK,
    "The effects of a program under one root.",
    ("s*",),
    Constraint("SINK.c1", "operands are effects, or an AFTER that holds one", _no_effect_or_after),
)

_effect(
    Op.LINEAR,
    "The instructions of a kernel in execution order, sources before uses.",
    ("uops*",),
    Clause("LINEAR.u1", "RANGE and END, IF and ENDIF enclose what they do as brackets would"),
    Clause("LINEAR.u2", "operands have run before what uses them, in its loops and branches"),
    device=device.null,
)
