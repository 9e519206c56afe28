"""Generate level kernel, textbook of axes: loops of every axis type around stores and folds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from uop.conformance.suite.levels.kernel.scalar import flat, less, loop, times
from uop.conformance.suite.levels.kernel.textbook import Kernel, written
from uop.spec.args import AxisType, ReduceArg
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const


def _of_each_type(k: Kernel) -> UOp:
    """Compute a product in loops of every axis type."""
    i, j, u = _axes(k, (2, AxisType.GLOBAL), (3, AxisType.LOCAL), (2, AxisType.UPCAST))
    out, a, b = k.memory(12), k.memory(24), k.memory(18)
    r, s = loop(3, 3, AxisType.GROUP_REDUCE), loop(4, 2, AxisType.UNROLL)
    one, other = a.load(flat((i, u, r, s))), b.load(flat((j, r, s)))
    folded = UOp(Op.REDUCE, UOp(Op.MUL, one, other), r, s, arg=ReduceArg(Op.ADD))
    return out.store(flat((i, j, u)), folded)


def _axes(k: Kernel, *axes: tuple[int, AxisType]) -> list[UOp]:
    """Return the loops around a kernel."""
    k.kind = AxisType.GLOBAL
    k.counters = [loop(n, count, kind) for n, (count, kind) in enumerate(axes)]
    return k.counters


def _unrolled(k: Kernel) -> UOp:
    """Write along an axis of 3 at once what is folded along one of 5."""
    n = k.size()
    i, u = _axes(k, (n, AxisType.GLOBAL), (3, AxisType.UPCAST))
    out, a, v = k.memory(3 * n), k.memory(15 * n), loop(2, 5, AxisType.UNROLL)
    element = a.load(UOp(Op.ADD, times(flat((i, u)), 5), v))
    return out.store(flat((i, u)), UOp(Op.REDUCE, element, v, arg=ReduceArg(Op.ADD)))


def _gated(k: Kernel) -> UOp:
    """Write squares at once, up to the last row and column, and by data."""
    y, x, u, v = _axes(
        k,
        (3, AxisType.GLOBAL),
        (2, AxisType.LOCAL),
        (2, AxisType.UPCAST),
        (3, AxisType.UPCAST),
    )
    out, kept, a = k.memory(25), k.memory(36), k.memory(36)
    row, column = UOp(Op.ADD, times(y, 2), u), UOp(Op.ADD, times(x, 3), v)
    inside = UOp(Op.AND, less(row, index_const(5)), less(column, index_const(5)))
    element = a.load(UOp(Op.ADD, times(column, 6), row))
    here = UOp(Op.ADD, times(row, 6), column)
    return UOp(
        Op.GROUP,
        out.store(UOp(Op.ADD, times(row, 5), column), element, inside),
        kept.store(here, UOp(Op.SUB, element, a.load(here)), less(element, k.number(4))),
    )


def _shared(k: Kernel) -> UOp:
    """Let items share folds by each op, some elements of which are beyond the end."""
    i, j = _axes(k, (3, AxisType.GLOBAL), (2, AxisType.LOCAL))
    a, stores = k.memory(66), []
    for n, (op, start) in enumerate(((Op.ADD, 0), (Op.MUL, 1), (Op.MAX, -100))):
        r, s = loop(2 + 2 * n, 4, AxisType.GROUP_REDUCE), loop(3 + 2 * n, 3, AxisType.REDUCE)
        place = flat((s, r)) if n % 2 else flat((r, s))
        number = k.number(max(start, 0)) if not k.dtype.is_signed else k.number(start)
        at = a.at(UOp(Op.ADD, times(flat((i, j)), 11), place))
        term = UOp(Op.LOAD, at, number, less(place, index_const(11)))
        value = UOp(Op.REDUCE, term, r, s, arg=ReduceArg(op))
        stores.append(k.memory(6).store(flat((i, j)), value))
    return UOp(Op.GROUP, *stores)


def _by_columns(k: Kernel) -> UOp:
    """Read along one axis and write along the other, both at once; fold along the outer one."""
    i, u, v = _axes(k, (2, AxisType.GLOBAL), (3, AxisType.UPCAST), (2, AxisType.UPCAST))
    out, sums, a = k.memory(12), k.memory(12), k.memory(24)
    r = loop(3, 2, AxisType.REDUCE)
    folded = UOp(Op.REDUCE, a.load(flat((r, v, u, i))), r, arg=ReduceArg(Op.MAX))
    stored = out.store(flat((i, v, u)), a.load(flat((v, u, i))))
    return UOp(Op.GROUP, stored, sums.store(flat((v, i, u)), folded))


KERNELS: tuple[Callable[[Kernel], UOp], ...] = (
    *(_of_each_type, _unrolled, _gated, _shared, _by_columns),
)
of_axes = partial(written, KERNELS)
