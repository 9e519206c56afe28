"""Run matrix instructions in a kernel: the work items of a workgroup form warps of 32."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.kernel.lanes import Axis, Kind, lanes_of
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.rules.codegen import wmma
from uop.interpreter.values import Value
from uop.spec.args import AxisType, RangeArg, arg_of
from uop.spec.conditions.clauses import undefined
from uop.spec.ops.codegen import WARP
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def need_whole_warps(axes: Sequence[Axis], active: Mask | None) -> None:
    """Raise UndefinedError if only some work items of a warp are active."""
    if active is None:
        return
    counts = Warps(axes, active.shape).split(active[..., None])[..., 0].sum(axis=-1)
    partial = counts[(counts > 0) & (counts < WARP)]
    if partial.size:
        raise undefined("WMMA.u1", f"{int(partial[0])} of {WARP} work items")


def in_warps(u: UOp, operands: Sequence[Value], axes: Sequence[Axis]) -> Value:
    """Run WMMA on the fragments of every warp; unspecified elements spread through it."""
    lanes = Warps(axes, np.broadcast_shapes(*(lanes_of(v.data, 1) for v in operands)))
    data = lanes.joined(wmma(u, *(lanes.split(v.data) for v in operands)))
    if all(v.unspecified is None for v in operands):
        return Value(data)
    # With 0 or 1 per element, a sum above 0 shows that an open element took part.
    marks = (np.zeros(()) if v.unspecified is None else v.unspecified for v in operands)
    a, b, acc = (
        lanes.split(np.broadcast_to(m, v.data.shape)).astype(v.data.dtype)
        for m, v in zip(marks, operands, strict=True)
    )
    rows, columns = wmma(u, a, np.ones_like(b), acc), wmma(u, np.ones_like(a), b, acc)
    return Value(data, None, lanes.joined((rows > 0) | (columns > 0)))


class Warps:
    """Splits the lanes of arrays into warps, and joins them again.

    The warp is the axis of a RANGE of that type; without one, 32 neighbours of a workgroup in the
    order of the launch (D-066).
    """

    def __init__(self, axes: Sequence[Axis], lanes: tuple[int, ...]) -> None:
        items = [a for a in axes if a.kind is Kind.ITEM]
        warps = [a for a in items if _is_warp(a)]
        inner = warps or items
        count = prod(a.size for a in inner)
        if count % WARP or not inner or (warps and count != WARP):
            raise undefined("WMMA.u2", f"{count} work items, where a warp has {WARP}")
        sizes = {a.number: a.size for a in inner}
        self._inner = tuple(sizes)
        self._shape = tuple(sizes.get(k, n) for k, n in enumerate(lanes or (1,) * len(axes)))

    def split(self, array: Array) -> Array:
        """Rearrange lanes and fragment to: other lanes, warps, the 32 lanes of a warp, fragment."""
        wide = np.broadcast_to(array, (*self._shape, array.shape[-1]))
        moved = np.moveaxis(wide, self._inner, self._last_axes(wide))
        others = moved.shape[: -1 - len(self._inner)]
        return moved.reshape((*others, -1, WARP, array.shape[-1]))

    def joined(self, array: Array) -> Array:
        """Return the inverse of `split`."""
        others = [n for k, n in enumerate(self._shape) if k not in self._inner]
        inner = [self._shape[k] for k in self._inner]
        moved = array.reshape((*others, *inner, array.shape[-1]))
        return np.moveaxis(moved, self._last_axes(moved), self._inner)

    def _last_axes(self, array: Array) -> tuple[int, ...]:
        """Return the places of the inner axes, just before the fragment."""
        end = array.ndim - 1
        return tuple(range(end - len(self._inner), end))


def _is_warp(axis: Axis) -> bool:
    u = axis.node
    return u.op is Op.RANGE and arg_of(u, RangeArg).axis_type is AxisType.WARP
