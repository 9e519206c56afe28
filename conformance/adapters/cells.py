"""Which ops a library has on which dtypes: a program of each is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from uop.conformance.adapters.builder import Builder
from uop.conformance.adapters.compositions import compositions
from uop.conformance.adapters.walk import build
from uop.conformance.suite.levels.nodes import (
    bitcast,
    cast,
    expand,
    flip_all,
    fold,
    pad,
    permute,
    reshape,
    shrink,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, param

LAYOUTS: Mapping[Op, Callable[[UOp], UOp]] = {
    Op.RESHAPE: lambda x: reshape(x, (2, 1)),
    Op.EXPAND: lambda x: expand(x, (3, 2)),
    Op.PERMUTE: lambda x: permute(x, (1, 0)),
    Op.FLIP: flip_all,
    Op.SHRINK: lambda x: shrink(x, (0, 1), (1, 1)),
    Op.PAD: lambda x: pad(x, (0, 1), (1, 4)),
    Op.STACK: lambda x: UOp(Op.STACK, x, x),
    Op.INDEX: lambda x: UOp(Op.INDEX, x, const(0, dtypes.index), param(1, (2,), dtypes.int32)),
    Op.BITCAST: lambda x: bitcast(x, dtypes.uint8),
}
"""An op on a value of shape (1, 2)."""


def cells(make: Callable[[], Builder[Any]], kinds: Iterable[DType]) -> dict[str, frozenset[DType]]:
    """By op the dtypes on which builders translate it, of ops that they do not on all of them."""
    kinds = frozenset(kinds)
    found: dict[str, frozenset[DType]] = {}
    first = make()
    for op in (*LAYOUTS, Op.REDUCE, *compositions(first.ops, first.partial)):
        on = frozenset(dtype for dtype in kinds if _has(op, dtype, make))
        if on < kinds:
            found[op.name] = on
    return found


def programs_of(op: Op, x: UOp) -> list[UOp]:
    """Programs that need an op on a value of shape (1, 2); InvalidError where it takes none."""
    if op in LAYOUTS:
        return [LAYOUTS[op](x)]
    if op is Op.REDUCE:
        return [fold(by, x, (1,)) for by in (Op.ADD, Op.MUL, Op.MAX)]
    if op is Op.CAST:
        return [cast(x, dtypes.int32 if x.dtype.is_float else dtypes.float32)]
    names = enumerate(DECLARATIONS[op].src)
    operands = [param(k + 1, (1, 2), dtypes.bool) if name == "P" else x for k, name in names]
    return [UOp(op, *operands)]


def _has(op: Op, dtype: DType, make: Callable[[], Builder[Any]]) -> bool:
    """Whether a program of an op on a dtype is built; a cell that the language lacks counts."""
    try:
        programs = programs_of(op, param(0, (1, 2), dtype))
    except InvalidError:
        return True
    try:
        for root in programs:
            build([root], make())
    except UnsupportedError:
        return False
    return True
