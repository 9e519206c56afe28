"""Rules of axis: the dimension along which a value is sharded over its devices, or None."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from uop.spec.args import LoadArg, PermuteArg, ReduceArg, ReplicatedArg, arg_of
from uop.spec.properties.shape import fixed
from uop.spec.properties.words import of_src, says

if TYPE_CHECKING:
    from uop.spec.registry import Node, Shape


def shards(u: Node) -> int:
    """The number of devices a value is split over; 1 if each device has the whole value."""
    return 1 if not isinstance(u.device, tuple) or u.axis is None else len(u.device)


@says("none")
def null(u: Node) -> int | None:
    return None


of_first = of_src(0, "axis")


@says("0 on several devices, else none")
def from_devices(u: Node) -> int | None:
    """0 on an n-tuple of devices: the device dimension."""
    return 0 if isinstance(u.device, tuple) else None


def inherit(u: Node) -> int | None:
    """That of the first sharded operand, counted from the right as broadcasting aligns shapes."""
    for s in u.src:
        if s.axis is not None:
            return s.axis + len(u.shape) - len(s.shape)
    return None


@says("where the permutation puts that of {src[0]}")
def follow_permutation(u: Node) -> int | None:
    old = u.src[0].axis
    return None if old is None else arg_of(u, PermuteArg).order.index(old)


def reshape(u: Node) -> int | None:
    """The new axis that starts at the same shard boundary."""
    old = u.src[0].axis
    return None if old is None else at_boundary(fixed(u.src[0]), old, fixed(u))


def at_boundary(before: Shape, axis: int, after: Shape) -> int | None:
    """The axis of the new shape with as many elements before it as the old axis has.

    Of several, which have size 1 but for the last, the first longer one is taken.
    """
    outer = math.prod(before[:axis])
    starts = [k for k in range(len(after)) if math.prod(after[:k]) == outer]
    longer = (k for k in starts if after[k] != 1)
    return next(longer, starts[0] if starts else None)


@says("that of {src[0]}; none where that axis is folded")
def reduce(u: Node) -> int | None:
    old = u.src[0].axis
    return None if old in arg_of(u, ReduceArg).axes else old


@says("that of {src[0]}; none where the copies stand along that axis")
def replicated(u: Node) -> int | None:
    old = u.src[0].axis
    return None if old in arg_of(u, ReplicatedArg).axes else old


def stack(u: Node) -> int | None:
    """That of the first sharded operand, after the new leading axis."""
    return next((s.axis + 1 for s in u.src if s.axis is not None), None)


def index(u: Node) -> int | None:
    """That of a sharded index, or that of T, shifted by the axes that the indices remove."""
    old, indices = u.src[0].axis, u.src[1:]
    for position, i in enumerate(indices):
        if i.axis is not None:
            return sum(len(before.shape) for before in indices[:position])
    if old is None or old < len(indices):
        return None
    return old - len(indices) + sum(len(i.shape) for i in indices)


def load(u: Node) -> int | None:
    """A copy to a device reshards: 0 on several devices, None on one; without a target it stays."""
    target = arg_of(u, LoadArg).device
    if target is None:
        return inherit(u)
    return 0 if isinstance(target, tuple) else None
