"""Declares ops without a value: void, of shape (), with at most a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from uop.spec.args import Arg, Device
from uop.spec.dtype import dtypes
from uop.spec.ops.constraints import is_index
from uop.spec.ops.names import Op
from uop.spec.properties import device, dtype, min_max, shape
from uop.spec.registry import AccessKind, Clause, Constraint, OpDef, define

if TYPE_CHECKING:
    from uop.spec.registry import Node

BOUND = "the bound is a ()-shaped index, not negative"


def effect(
    op: Op,
    section: str,
    doc: str,
    src: tuple[str, ...],
    *constraints: Constraint,
    arg: type[Arg] | None = None,
    on: Callable[[Node], Device] = device.first_that_has_one,
    clauses: tuple[Clause, ...] = (),
    access: AccessKind | None = None,
    by_types: bool = False,
) -> OpDef:
    """Declare an op without a value; `on` derives its device."""
    return define(
        OpDef(
            op,
            section=section,
            doc=doc,
            src=src,
            arg=arg,
            dtype=dtype.always(dtypes.void),
            shape=shape.scalar,
            device=on,
            min_max=min_max.none,
            access=access,
            by_types=by_types,
            constraints=constraints,
            clauses=clauses,
        )
    )


def counter(
    op: Op, section: str, doc: str, arg: type[Arg], clauses: tuple[Clause, ...] = ()
) -> OpDef:
    """Declare an op that counts from 0 to its bound - 1: a loop variable or a work item."""
    return define(
        OpDef(
            op,
            section=section,
            doc=doc,
            src=("bound",),
            arg=arg,
            dtype=dtype.always(dtypes.index),
            shape=shape.scalar,
            device=device.null,
            min_max=min_max.counter,
            constraints=(is_index(f"{op.name}.c1", BOUND, 0, "bound"),),
            clauses=clauses,
        )
    )
