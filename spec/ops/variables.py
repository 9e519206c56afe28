"""Declaration of BIND, which gives a variable its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uop.spec.args import ParamArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.ops.kinds import declare
from uop.spec.ops.names import Op
from uop.spec.properties import shape
from uop.spec.properties.words import of_src
from uop.spec.registry import Constraint

if TYPE_CHECKING:
    from uop.spec.registry import Node


def _no_variable(u: Node) -> str | None:
    found = u.src[0]
    is_variable = found.op is Op.PARAM and arg_of(found, ParamArg).min is not None
    return None if is_variable else found.op.name


def _outside_range(u: Node) -> str | None:
    variable, value = u.src
    if value.dtype is not dtypes.index or value.shape != ():
        return f"{value.dtype.name}{list(value.shape)}"
    wide, found = variable.min_max, value.min_max
    if wide is None or found is None or (wide.min <= found.min and found.max <= wide.max):
        return None
    return f"[{found.min}, {found.max}] for [{wide.min}, {wide.max}]"


declare(
    "extension",
    Op.BIND,
    "The number of a variable: the value must lie in the range of the variable.",
    ("variable", "value"),
    Constraint("BIND.c1", "the first operand is a PARAM with a range", _no_variable),
    Constraint("BIND.c2", "value is a ()-shaped index in that range", _outside_range),
    dtype=of_src(1, "dtype"),
    shape=shape.scalar,
    min_max=of_src(1, "min_max"),
    decomposition=lambda build, u: u.src[1],
)
