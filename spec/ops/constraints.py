"""Constraints that several ops share, each made with the label of the op that declares it.

Those on sharded values apply to values that are split over two or more devices, where each device
works on its shard alone (D-070).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from uop.spec.args import Device
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.properties.axis import shards
from uop.spec.properties.device import conflicting
from uop.spec.properties.shape import broadcast_shapes
from uop.spec.registry import Constraint, Shape

if TYPE_CHECKING:
    from uop.spec.registry import Node


def names(allowed: Sequence[DType]) -> str:
    return " ".join(d.name for d in allowed)


def one_dtype(label: str, *positions: int) -> Constraint:
    """The operands at these positions, by default all, share one dtype (D-020)."""

    def broken(u: Node) -> str | None:
        found = [u.src[p].dtype for p in positions] if positions else [s.dtype for s in u.src]
        return None if len(set(found)) <= 1 else names(found)

    return Constraint(label, "operands have one dtype", broken)


def dtype_among(label: str, position: int, allowed: Sequence[DType]) -> Constraint:
    def broken(u: Node) -> str | None:
        found = u.src[position].dtype
        return None if found in allowed else found.name

    return Constraint(label, lambda: f"operand {position} is one of: {names(allowed)}", broken)


def has_value(label: str) -> Constraint:
    """The first operand is not void (D-012)."""

    def broken(u: Node) -> str | None:
        found = u.src[0]
        return f"void, from {found.op.name}" if found.dtype is dtypes.void else None

    return Constraint(label, "operand 0 has a value", broken)


def have_values(label: str) -> Constraint:
    """No operand is void."""

    def broken(u: Node) -> str | None:
        found = next((s for s in u.src if s.dtype is dtypes.void), None)
        return None if found is None else f"void, from {found.op.name}"

    return Constraint(label, "operands have a value", broken)


def are_effects(label: str) -> Constraint:
    """Every operand is void."""

    def broken(u: Node) -> str | None:
        found = next((s for s in u.src if s.dtype is not dtypes.void), None)
        return None if found is None else f"a value, from {found.op.name}"

    return Constraint(label, "operands are effects: void", broken)


def is_location(label: str, name: str) -> Constraint:
    """The first operand, of this name, is memory."""

    def broken(u: Node) -> str | None:
        return None if u.src[0].addrspace is not None else f"a value, from {u.src[0].op.name}"

    return Constraint(label, f"{name} is a location", broken)


def one_shape(label: str, names: str) -> Constraint:
    """All operands, of these names, have the same shape."""

    def broken(u: Node) -> str | None:
        found = [s.shape for s in u.src]
        return None if len(set(found)) == 1 else " ".join(map(str, found))

    return Constraint(label, f"{names} have one shape", broken)


def op_among(label: str, title: str, position: int, *allowed: Op) -> Constraint:
    """The operand at a position is of one of these ops."""

    def broken(u: Node) -> str | None:
        found = u.src[position].op
        return None if found in allowed else found.name

    return Constraint(label, title, broken)


def is_index(label: str, title: str, position: int, name: str) -> Constraint:
    """The operand at a position, of this name, is a ()-shaped index and not negative."""

    def broken(u: Node) -> str | None:
        found = u.src[position]
        if found.dtype is not dtypes.index or found.shape != ():
            return f"{found.dtype.name}{list(found.shape)}"
        return f"a negative {name}" if found.min_max and found.min_max.max < 0 else None

    return Constraint(label, title, broken)


def broadcastable(label: str) -> Constraint:
    def broken(u: Node) -> str | None:
        shapes = [s.shape for s in u.src]
        return None if broadcast_shapes(*shapes) is not None else " ".join(map(str, shapes))

    return Constraint(label, "shapes broadcast: right-aligned, each axis equal or 1", broken)


def one_device(label: str) -> Constraint:
    return Constraint(label, "operands live on one device", conflicting)


def one_axis(label: str) -> Constraint:
    """Sharded operands are sharded along the same axis, counted from the right (D-058)."""

    def broken(u: Node) -> str | None:
        sharded = [s for s in u.src if s.device is not None and shards(s) > 1]
        found = {cast(int, s.axis) - len(s.shape): str(s.axis) for s in sharded}
        return None if len(found) < 2 else f"axes {', '.join(found.values())}"

    return Constraint(label, "sharded operands are sharded along one axis", broken)


def splits_over_devices(label: str, target: Callable[[Node], tuple[Device, Shape]]) -> Constraint:
    """A value sharded over n devices has an axis 0 that splits into n equal parts (D-058)."""

    def broken(u: Node) -> str | None:
        device, shape = target(u)
        if not isinstance(device, tuple):
            return None
        fits = bool(device) and bool(shape) and shape[0] % len(device) == 0
        return None if fits else f"{shape} over {len(device)} devices"

    return Constraint(label, "axis 0 splits into equal parts, one per device", broken)


def distinct_devices(label: str, target: Callable[[Node], Device]) -> Constraint:
    """The devices of a value are distinct by name."""

    def broken(u: Node) -> str | None:
        names = target(u)
        if not isinstance(names, tuple):
            return None
        twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
        return None if twice is None else f"{twice!r} twice among {', '.join(names)}"

    return Constraint(label, "the devices of several are different ones", broken)


def is_shape(label: str, position: int, *, like: int | None = None) -> Constraint:
    """The operand is a STACK of ()-shaped index nodes >= 0 (D-009), one per axis of `like`."""

    def broken(u: Node) -> str | None:
        found = u.src[position]
        if found.op is not Op.STACK or found.dtype is not dtypes.index or len(found.shape) != 1:
            return f"{found.op.name} : {found.dtype.name}{list(found.shape)}"
        if any(dim.min_max is not None and dim.min_max.max < 0 for dim in found.src):
            return "a negative number"
        if like is not None and len(found.src) != len(u.src[like].shape):
            return f"{len(found.src)} numbers for rank {len(u.src[like].shape)}"
        return None

    count = "" if like is None else f", one for each axis of operand {like}"
    title = f"operand {position} is a STACK of ()-shaped index nodes, none below 0{count}"
    return Constraint(label, title, broken)


def shard_axis_kept(label: str, changes: Callable[[Node, int], str | None]) -> Constraint:
    """`changes` describes what a node does to the shard axis, None if each shard is kept."""

    def broken(u: Node) -> str | None:
        if shards(u.src[0]) == 1:
            return None
        axis = cast(int, u.src[0].axis)
        found = changes(u, axis)
        return None if found is None else f"{u.src[0].shape} sharded on axis {axis} {found}"

    return Constraint(label, "the shards of T stay where they are", broken)
