"""Ordering ops: what runs before what, and how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from uop.spec.args import RangeArg
from uop.spec.dtype import dtypes
from uop.spec.ops.constraints import has_value
from uop.spec.ops.names import Op
from uop.spec.properties import addrspace, axis, device, dtype, min_max, shape
from uop.spec.registry import Constraint, OpDef, define

if TYPE_CHECKING:
    from uop.spec.registry import Node


def bound_constraint(label: str) -> Constraint:
    """The bound of a RANGE or SPECIAL."""

    def broken(u: Node) -> str | None:
        bound = u.src[0]
        if bound.dtype is not dtypes.index or bound.shape != ():
            return f"{bound.dtype.name}{list(bound.shape)}"
        return "a negative bound" if bound.min_max and bound.min_max.max < 0 else None

    return Constraint(label, "the bound is a ()-shaped index, not negative", broken)


def _no_range(u: Node) -> str | None:
    return None if u.src[1].op is Op.RANGE else u.src[1].op.name


def _no_effect(u: Node) -> str | None:
    found = next((s for s in u.src if s.dtype is not dtypes.void), None)
    return None if found is None else f"a value, from {found.op.name}"


def _no_effect_or_after(u: Node) -> str | None:
    for s in u.src:
        if s.dtype is not dtypes.void and s.op is not Op.AFTER:
            return f"a value, from {s.op.name}"
    return None


def effect(
    op: Op, doc: str, src: tuple[str, ...], broken: Callable[[Node], str | None], title: str
) -> OpDef:
    """Declare a void op over effects."""
    return define(
        OpDef(
            op,
            section="ordering",
            doc=doc,
            src=src,
            dtype=dtype.always(dtypes.void),
            shape=shape.scalar,
            device=device.first_that_has_one,
            addrspace=addrspace.value,
            min_max=min_max.none,
            axis=axis.null,
            constraints=(Constraint(f"{op.name}.c1", title, broken),),
        )
    )


define(
    OpDef(
        Op.RANGE,
        section="ordering",
        doc="A loop variable from 0 to bound - 1; a bound of 0 runs nothing.",
        src=("bound",),
        arg=RangeArg,
        dtype=dtype.always(dtypes.index),
        shape=shape.scalar,
        device=device.null,
        addrspace=addrspace.value,
        min_max=min_max.counter,
        axis=axis.null,
        constraints=(bound_constraint("RANGE.c1"),),
    )
)

effect(
    Op.END,
    "Close the loop of a RANGE around the effects of the body.",
    ("body", "range"),
    _no_range,
    "the second operand is a RANGE",
)

define(
    OpDef(
        Op.AFTER,
        section="ordering",
        doc="buf itself, once every dep has been executed.",
        src=("buf", "deps*"),
        dtype=dtype.of_src(0),
        shape=shape.of_first,
        device=device.first_that_has_one,
        addrspace=addrspace.of_first,
        min_max=min_max.of_src(0),
        axis=axis.of_first,
        constraints=(has_value("AFTER.c1"),),
    )
)

effect(
    Op.GROUP,
    "Several effects as one, in no order.",
    ("u*",),
    _no_effect,
    "operands are effects: void",
)

effect(
    Op.SINK,
    "The effects of a program under one root.",
    ("s*",),
    _no_effect_or_after,
    "operands are effects, or an AFTER that holds one",
)

define(
    OpDef(
        Op.LINEAR,
        section="ordering",
        doc="The instructions of a kernel in execution order, sources before uses.",
        src=("uops*",),
        dtype=dtype.always(dtypes.void),
        shape=shape.scalar,
        device=device.null,
        addrspace=addrspace.value,
        min_max=min_max.none,
        axis=axis.null,
    )
)
