"""axis: the dimension along which a value is sharded over the devices of its n-tuple, or null."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from uop.spec.args import LoadArg, PermuteArg, ReduceArg
from uop.spec.properties.dtype import returned

if TYPE_CHECKING:
    from uop.spec.registry import Node


def null(u: Node) -> int | None:
    return None


def of_first(u: Node) -> int | None:
    return u.src[0].axis


def from_devices(u: Node) -> int | None:
    """0 on an n-tuple of devices: the device dimension."""
    return 0 if isinstance(u.device, tuple) else None


def inherit(u: Node) -> int | None:
    """Elementwise: of the first sharded operand, counted from the right as broadcasting aligns."""
    for s in u.src:
        if s.axis is not None:
            return s.axis + len(u.shape) - len(s.shape)
    return None


def follow_permutation(u: Node) -> int | None:
    old = u.src[0].axis
    return None if old is None else cast(PermuteArg, u.arg).order.index(old)


def reshape(u: Node) -> int | None:
    """The new axis that starts at the same shard boundary."""
    old, before, after = u.src[0].axis, u.src[0].shape, u.shape
    if old is None:
        return None
    outer = math.prod(before[:old])
    for axis, _ in enumerate(after):
        if math.prod(after[:axis]) == outer and after[axis] != 1:
            return axis
    return None


def reduce(u: Node) -> int | None:
    old = u.src[0].axis
    return None if old in cast(ReduceArg, u.arg).axes else old


def stack(u: Node) -> int | None:
    """Behind the new leading axis."""
    old = u.src[0].axis if u.src else None
    return None if old is None else old + 1


def index(u: Node) -> int | None:
    """Shifted by the axes the indices removed; null where the shard axis itself is indexed."""
    old, indices = u.src[0].axis, u.src[1:]
    if old is None or old < len(indices):
        return None
    return old - len(indices) + sum(len(i.shape) for i in indices)


def load(u: Node) -> int | None:
    """A copy to a device reshards: 0 on an n-tuple, null on one; without a target it stays."""
    target = cast(LoadArg, u.arg).device
    if target is None:
        return u.src[0].axis
    return 0 if isinstance(target, tuple) else None


def element(u: Node) -> int | None:
    return returned(u).axis
