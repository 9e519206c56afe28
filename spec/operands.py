"""Which operands of an op are values, and which are shapes or offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uop.spec.ops.declared  # noqa: F401 - enters the declarations
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS

if TYPE_CHECKING:
    from uop.spec.uop import UOp

SHAPE_OPERANDS = ("s", "s'", "o", "offset")
"""The names, in the declarations, of operands that hold a shape or an offset."""

DATA_OPERANDS: dict[Op, int] = {
    op: next((k for k, name in enumerate(d.src) if name in SHAPE_OPERANDS), len(d.src))
    for op, d in DECLARATIONS.items()
    if any(name in SHAPE_OPERANDS for name in d.src)
}


def data_sources(u: UOp) -> tuple[UOp, ...]:
    """Return the operands whose values an evaluator needs: all but shapes and offsets."""
    count = DATA_OPERANDS.get(u.op)
    return u.src if count is None else u.src[:count]
