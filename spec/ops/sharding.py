"""Constraints on sharded values: each device works on its shard alone.

They apply to values that are split over two or more devices (D-070).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from uop.spec.args import DTypeArg, FlipArg, arg_of
from uop.spec.properties.axis import at_boundary, shards
from uop.spec.properties.shape import index_values
from uop.spec.registry import Constraint

if TYPE_CHECKING:
    from uop.spec.registry import Node


def shard_axis_kept(label: str, changes: Callable[[Node, int], str | None]) -> Constraint:
    """`changes` describes what a node does to the shard axis, None if each shard is kept."""

    def broken(u: Node) -> str | None:
        if shards(u.src[0]) == 1:
            return None
        axis = cast(int, u.src[0].axis)
        found = changes(u, axis)
        return None if found is None else f"{u.src[0].shape} sharded on axis {axis} {found}"

    return Constraint(label, "the shards of T stay where they are", broken)


def flips(u: Node, axis: int) -> str | None:
    return "is flipped along it" if arg_of(u, FlipArg).flags[axis] else None


def resizes(position: int) -> Callable[[Node, int], str | None]:
    """A change of the size of the shard axis, to that in operand number `position`."""

    def changes(u: Node, axis: int) -> str | None:
        new = index_values(u.src[position])
        return None if new[axis] == u.src[0].shape[axis] else f"to {new}"

    return changes


def loses_boundary(u: Node, axis: int) -> str | None:
    """RESHAPE: no axis of the new shape starts at the shard axis and splits as it does."""
    new = index_values(u.src[1])
    found = at_boundary(u.src[0].shape, axis, new)
    if found is not None and new[found] % shards(u.src[0]) == 0:
        return None
    return f"to {new}"


def splits_bytes(u: Node, axis: int) -> str | None:
    """BITCAST: an element of the new dtype has bytes of two shards."""
    shape, new = u.src[0].shape, arg_of(u, DTypeArg).dtype.itemsize
    shard = shape[axis] // shards(u.src[0]) * u.src[0].dtype.itemsize
    if axis != len(shape) - 1 or shard % new == 0:
        return None
    return f"has {shard} bytes a shard"


def is_sharded(u: Node, axis: int) -> str | None:
    """SLICE: no device has all elements of a sharded value."""
    return "is in several memories"


def shard_axis_indexed(u: Node) -> str | None:
    """INDEX: a device would need an element of another device, or two operands are split.

    A sharded index of a location is refused: each device would write to its own memory.
    """
    t, *indices = u.src
    sharded = sum(shards(s) > 1 for s in u.src)
    if sharded > 1:
        return f"{sharded} sharded operands"
    if shards(t) > 1 and cast(int, t.axis) < len(indices):
        return f"an index on the shard axis {t.axis}"
    if sharded and shards(t) == 1 and t.addrspace is not None:
        return "a sharded index of a location"
    return None


def stored_off_axis(u: Node) -> str | None:
    """STORE: value and location are sharded along the same axis."""
    target = u.src[0]
    for s in u.src[1:]:
        if shards(s) > 1 and (shards(target), target.axis) != (shards(s), s.axis):
            return f"axis {s.axis} into {'no axis' if target.axis is None else target.axis}"
    return None
