"""Define the axes of a kernel, and values with a copy for each position on them.

In a kernel of n axes the array of a value has n leading dimensions, then the shape of the
node. A dimension is 1 where the value does not depend on the axis. A value without leading
dimensions is the same everywhere. For matrix instructions the work
items of a workgroup form warps of 32.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np

from uop.interpreter.kernel.schedule import bound, is_parallel
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.rules.codegen import wmma
from uop.interpreter.values import Value, full, together
from uop.spec.args import AxisType, RangeArg, ReduceArg, SpecialArg, arg_of
from uop.spec.conditions.clauses import undefined
from uop.spec.ops.codegen import WARP
from uop.spec.ops.names import Op
from uop.spec.properties.shape import broadcast_shapes, size

if TYPE_CHECKING:
    from uop.spec.uop import UOp

Shape = tuple[int, ...]


class Kind(Enum):
    """How the positions on an axis relate to each other."""

    GROUP = "workgroups: nothing orders them"
    ITEM = "work items of one workgroup: ordered by barriers"
    ITERATION = "iterations of one work item: one after the other"


KINDS = {
    AxisType.GLOBAL: Kind.GROUP,
    AxisType.THREAD: Kind.GROUP,
    AxisType.LOCAL: Kind.ITEM,
    AxisType.WARP: Kind.ITEM,
    AxisType.GROUP_REDUCE: Kind.ITEM,
}


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the lanes: the SPECIAL or RANGE that counts along it."""

    node: UOp
    number: int
    size: int
    kind: Kind

    @property
    def is_always_open(self) -> bool:
        """Whether every instruction runs in each position: in each work item of the launch."""
        return self.node.op is Op.SPECIAL


class Lanes:
    """The axes of a launch, and the layout of arrays on them.

    Each SPECIAL and RANGE has an axis. They stand in the order of the launch: groups, then items,
    dimension 0 fastest, and iterations inside.
    """

    def __init__(self, counters: Iterable[UOp]) -> None:
        by_dimension = sorted(counters, key=_dimension, reverse=True)
        ordered = sorted(
            by_dimension, key=lambda u: (u.op is Op.RANGE, not is_parallel(u), _kind(u).name)
        )
        self.axes = [Axis(u, k, bound(u), _kind(u)) for k, u in enumerate(ordered)]
        self.axis_of = {a.node: a for a in self.axes}
        self.count = len(self.axes)

    def everywhere(self, around: Container[UOp] = ()) -> Shape:
        """The lanes of an instruction that runs in every work item, and in each iteration of the
        RANGEs around it.
        """
        return tuple(a.size if a.is_always_open or a.node in around else 1 for a in self.axes)

    def along(self, axis: Axis) -> Array:
        """Number the positions on an axis."""
        shape = [1] * self.count
        shape[axis.number] = axis.size
        return np.arange(axis.size).reshape(shape)

    def raised(self, array: Array, rank: int, to: int) -> Array:
        """Insert axes of size 1 after the lanes: an array of `rank` axes gets `to` of them."""
        if rank == to or array.ndim == rank or not self.count:
            return array
        here = lanes_of(array, rank)
        return array.reshape((*here, *(1,) * (to - rank), *array.shape[len(here) :]))

    def terms(self, u: UOp, array: Array) -> Array:
        """Move the terms that a REDUCE folds to one leading axis; the remaining axes follow."""
        axes, lanes = self._folded_axes(u), lanes_of(array, len(u.shape))
        full = array.reshape((*(lanes or (1,) * self.count), *array.shape[len(lanes) :]))
        wanted = list(full.shape)
        for r in u.src[1:]:
            wanted[self.axis_of[r].number] = bound(r)
        moved = np.moveaxis(np.broadcast_to(full, wanted), axes, range(len(axes)))
        return moved.reshape(size(moved.shape[: len(axes)]), *moved.shape[len(axes) :])

    def keepdims(self, u: UOp, array: Array) -> Array:
        """Put back the axes that a REDUCE folded, with size 1."""
        return np.expand_dims(array, self._folded_axes(u))

    def _folded_axes(self, u: UOp) -> tuple[int, ...]:
        """Return the axes of the ranges, the first one outermost, then those of the value."""
        numbers = [self.axis_of[r].number for r in u.src[1:]]
        return (*numbers, *(self.count + axis for axis in arg_of(u, ReduceArg).axes))


def _dimension(u: UOp) -> tuple[int, str]:
    """Return the key by which a higher dimension of SPECIAL is greater; ranges keep their order."""
    name = arg_of(u, SpecialArg).name if u.op is Op.SPECIAL else ""
    return len(name), name


def _kind(u: UOp) -> Kind:
    if u.op is Op.SPECIAL:
        is_local = arg_of(u, SpecialArg).name.startswith("lidx")
        return Kind.ITEM if is_local else Kind.GROUP
    return KINDS.get(arg_of(u, RangeArg).axis_type, Kind.ITERATION)


def axis_name(axis: Axis) -> str:
    """Name an axis after its SPECIAL or RANGE."""
    arg = axis.node.arg
    return arg.name if isinstance(arg, SpecialArg) else f"RANGE {cast(RangeArg, arg).id}"


def lane_names(axes: Sequence[Axis], where: Mask) -> str:
    """Name the first position where a mask is true, on the axes that it depends on."""
    if not where.any():
        return ""
    position = np.argwhere(where)[0]
    shown = zip(axes, position, where.shape, strict=False)
    return ", ".join(f"{axis_name(a)} = {int(at)}" for a, at, count in shown if count > 1)


def lanes_of(array: Array, rank: int) -> Shape:
    """Return the leading dimensions; none if the array is the same in every lane."""
    return array.shape[: array.ndim - rank]


def broadcast(*shapes: Shape) -> Shape:
    """The shape that arrays of these shapes have together. That of numpy takes 32 axes at most, and
    each loop of a kernel is one.
    """
    return cast(Shape, broadcast_shapes(*shapes))


def stacked(operands: list[Value], rank: int) -> Value:
    """Stack operands of `rank` axes along a new axis before them; of none it is an empty index."""
    if not operands:
        return Value(np.zeros(0, np.int64))
    shape = broadcast(*(v.data.shape for v in operands))

    def join(arrays: list[Array]) -> Array:
        return np.stack([np.broadcast_to(a, shape) for a in arrays], axis=-(rank + 1))

    return together(operands, join)


def reshaped(u: UOp, t: Value) -> Value:
    """Reshape a value in each lane."""
    rank = len(u.src[0].shape)
    return moved(t, lambda a: a.reshape((*lanes_of(a, rank), *u.shape)))


def repeated(u: UOp, t: Value) -> Value:
    """Repeat the axes of size 1 of a value that EXPAND makes longer."""
    rank = len(u.src[0].shape)
    return moved(t, lambda a: np.broadcast_to(a, (*lanes_of(a, rank), *u.shape)))


def indexed(u: UOp, t: Value, indices: list[Value]) -> Value:
    """Index a value that is not memory: each index selects along its own leading axis."""
    shape, rank = u.src[0].shape, len(u.shape)
    grids, dim = [], 0
    for axis, (i, node) in enumerate(zip(indices, u.src[1:], strict=True)):
        if i.unspecified is not None and i.unspecified.any():
            raise undefined("INDEX.u2", f"an UNSPECIFIED element on axis {axis}", u)
        outside = (i.data < 0) | (i.data >= shape[axis])
        if outside.any():
            found = int(i.data[outside].flat[0])
            raise undefined("INDEX.u1", f"{found} on axis {axis} of size {shape[axis]}", u)
        grids.append(spread(i.data.astype(np.int64, copy=False), len(node.shape), dim, rank))
        dim += len(node.shape)
    for axis in range(len(indices), len(shape)):
        grids.append(np.arange(shape[axis]).reshape((-1, *(1,) * (rank - 1 - dim))))
        dim += 1
    whole = broadcast((*lanes_of(t.data, len(shape)), *(1,) * rank), *(g.shape for g in grids))
    lanes = whole[: len(whole) - rank]

    def pick(array: Array) -> Array:
        wide = np.broadcast_to(array, (*lanes, *shape))
        where = np.ogrid[tuple(slice(n) for n in whole)][: len(lanes)] if lanes else ()
        return np.asarray(wide[(*where, *(np.broadcast_to(g, whole) for g in grids))])

    return moved(t, pick)


def spread(i: Array, own: int, before: int, rank: int) -> Array:
    """Move the `own` axes of an index after `before` others in a shape of `rank` axes."""
    lanes = lanes_of(i, own)
    shape = (*(1,) * before, *i.shape[len(lanes) :], *(1,) * (rank - before - own))
    return i.reshape((*lanes, *shape)) if shape else i


def moved(value: Value, move: Callable[[Array], Array]) -> Value:
    """`Value.map` for masks that may have fewer lanes than the data."""
    return Value(
        move(value.data), *(None if m is None else move(full(m, value.data)) for m in value.masks)
    )


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
    lanes = Warps(axes, broadcast(*(lanes_of(v.data, 1) for v in operands)))
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
