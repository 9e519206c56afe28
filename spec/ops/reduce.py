"""Declaration of REDUCE, which folds axes to size 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uop.spec import latitude as lat
from uop.spec.args import AllReduceArg, ReduceArg, arg_of
from uop.spec.ops import gradients
from uop.spec.ops.constraints import has_value
from uop.spec.ops.kinds import value
from uop.spec.ops.names import Op
from uop.spec.properties import axis, min_max, shape
from uop.spec.registry import DECLARATIONS, Clause, Constraint

if TYPE_CHECKING:
    from uop.spec.registry import Node


def folds(label: str) -> Constraint:
    """The op of the arg is one that something folds by."""

    def broken(u: Node) -> str | None:
        op = arg_of(u, ReduceArg, AllReduceArg).op
        return None if DECLARATIONS[op].identity else op.name

    return Constraint(label, "op is ADD, MAX, MUL or MIN", broken)


def _wrong_axes(u: Node) -> str | None:
    axes, rank = arg_of(u, ReduceArg).axes, len(u.src[0].shape)
    fine = list(axes) == sorted(set(axes)) and all(0 <= a < rank for a in axes)
    return None if fine else f"{axes} for rank {rank}"


def _no_range(u: Node) -> str | None:
    found = [r.op.name for r in u.src[1:] if r.op is not Op.RANGE]
    return found[0] if found else None


value(
    "reduce",
    Op.REDUCE,
    "Fold T with op, left to right in row-major order, ranges outer; axes become 1. "
    "Absent elements are skipped; where none is left, the result is the identity of op.",
    ("T", "r*"),
    folds("REDUCE.c1"),
    Constraint("REDUCE.c2", "axes are sorted, distinct and axes of T", _wrong_axes),
    Constraint("REDUCE.c3", "operands after T are RANGEs", _no_range),
    has_value("REDUCE.c4"),
    Clause("REDUCE.n1", "its RANGEs are no loops of a LINEAR"),
    arg=ReduceArg,
    shape=shape.reduce,
    min_max=min_max.reduce,
    axis=axis.reduce,
    latitude=lat.REDUCE,
    gradient=gradients.reduce,
)
