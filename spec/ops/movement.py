"""Declarations of the movement ops: views, indexing and reinterpretation."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, cast

from uop.spec.args import DTypeArg, FlipArg, PadArg, PermuteArg, arg_of
from uop.spec.dtype import Kind, dtypes
from uop.spec.ops import gradients
from uop.spec.ops.constraints import (
    has_value,
    have_values,
    is_shape,
    one_axis,
    one_device,
    one_dtype,
    shard_axis_kept,
)
from uop.spec.ops.kinds import value
from uop.spec.ops.names import Op
from uop.spec.properties import addrspace, axis, dtype, min_max, shape
from uop.spec.properties.axis import at_boundary, shards
from uop.spec.properties.shape import index_values
from uop.spec.properties.words import from_arg
from uop.spec.registry import Clause, Constraint
from uop.spec.text.codec import shown

if TYPE_CHECKING:
    from uop.spec.registry import Node

movement = partial(value, "movement", addrspace=addrspace.of_first)
"""Declares an op on a value or a location."""
_view = partial(movement, is_view=True)


def _no_permutation(u: Node) -> str | None:
    order = arg_of(u, PermuteArg).order
    rank = len(u.src[0].shape)
    return None if sorted(order) == list(range(rank)) else f"{order} for rank {rank}"


def _wrong_flags(u: Node) -> str | None:
    flags, rank = arg_of(u, FlipArg).flags, len(u.src[0].shape)
    return None if len(flags) == rank else f"{len(flags)} flags for rank {rank}"


def _size_changes(u: Node) -> str | None:
    old, new = u.src[0].shape, index_values(u.src[1])
    if math.prod(old) == math.prod(new):
        return None
    return f"{old} of {shown(math.prod(old))} to {new} of {shown(math.prod(new))}"


def _cannot_expand(u: Node) -> str | None:
    old, new = u.src[0].shape, index_values(u.src[1])
    fits = all(s in (1, t) for s, t in zip(old, new, strict=True))
    return None if fits else f"{old} to {new}"


def _sticks_out(u: Node) -> str | None:
    """Describe where PAD puts T outside the new shape."""
    return _outside(u.src[0].shape, index_values(u.src[1]), index_values(u.src[2]))


def _keeps_outside(u: Node) -> str | None:
    """Describe where SHRINK reads outside T."""
    return _outside(index_values(u.src[2]), index_values(u.src[1]), u.src[0].shape)


def _outside(inner: tuple[int, ...], offset: tuple[int, ...], outer: tuple[int, ...]) -> str | None:
    fits = all(o + s <= t for s, o, t in zip(inner, offset, outer, strict=True))
    return None if fits else f"{inner} at {offset} in {outer}"


def _too_many_indices(u: Node) -> str | None:
    rank, count = len(u.src[0].shape), len(u.src) - 1
    return None if count <= rank else f"{count} indices for rank {rank}"


def _wrong_index(u: Node) -> str | None:
    for i in u.src[1:]:
        if i.dtype is not dtypes.index and not i.dtype.is_int:
            return f"an index of {i.dtype.name}"
        if len(i.shape) > 1:
            return f"an index of shape {i.shape}"
    return None


def _shapes_differ(u: Node) -> str | None:
    found = {s.shape: None for s in u.src}
    return None if len(found) < 2 else " ".join(map(str, found))


def _no_bits(u: Node) -> str | None:
    for d in (u.src[0].dtype, arg_of(u, DTypeArg).dtype):
        if d.kind in (Kind.INDEX, Kind.VOID):
            return d.name
    return None


def _bytes_change(u: Node) -> str | None:
    t, new = u.src[0], arg_of(u, DTypeArg).dtype
    if t.dtype.itemsize == new.itemsize:
        return None
    if t.shape and t.shape[-1] * t.dtype.itemsize % new.itemsize == 0:
        return None
    return f"{t.dtype.name}{list(t.shape)} as {new.name}"


def _flips(u: Node, axis: int) -> str | None:
    return "is flipped along it" if arg_of(u, FlipArg).flags[axis] else None


def _resizes(u: Node, axis: int) -> str | None:
    """PAD, SHRINK: the shard axis gets another size, by operand 2."""
    new = index_values(u.src[2])
    return None if new[axis] == u.src[0].shape[axis] else f"to {new}"


def _loses_boundary(u: Node, axis: int) -> str | None:
    """RESHAPE: no axis of the new shape starts at the shard axis and splits as it does."""
    new = index_values(u.src[1])
    found = at_boundary(u.src[0].shape, axis, new)
    if found is not None and new[found] % shards(u.src[0]) == 0:
        return None
    return f"to {new}"


def _splits_bytes(u: Node, axis: int) -> str | None:
    """BITCAST: an element of the new dtype has bytes of two shards."""
    shape, new = u.src[0].shape, arg_of(u, DTypeArg).dtype.itemsize
    shard = shape[axis] // shards(u.src[0]) * u.src[0].dtype.itemsize
    if axis != len(shape) - 1 or shard % new == 0:
        return None
    return f"has {shard} bytes a shard"


def _indexes_shards(u: Node) -> str | None:
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


_view(
    Op.PERMUTE,
    "Axis k of the result is axis order[k] of T. order = (1, 0) is transpose.",
    ("T",),
    Constraint("PERMUTE.c1", "order is a permutation of the axes of T", _no_permutation),
    has_value("PERMUTE.c2"),
    arg=PermuteArg,
    shape=shape.permute,
    axis=axis.follow_permutation,
    gradient=gradients.permute,
)

_view(
    Op.FLIP,
    "Reverse along the flagged axes.",
    ("T",),
    Constraint("FLIP.c1", "one flag for each axis of T", _wrong_flags),
    has_value("FLIP.c2"),
    shard_axis_kept("FLIP.c3", _flips),
    arg=FlipArg,
    gradient=gradients.flip,
)

_view(
    Op.RESHAPE,
    "The same elements in row-major order under another shape of the same size.",
    ("T", "s'"),
    is_shape("RESHAPE.c1", 1),
    Constraint("RESHAPE.c2", "the product of s' is the product of s", _size_changes),
    shard_axis_kept("RESHAPE.c3", _loses_boundary),
    has_value("RESHAPE.c4"),
    shape=shape.operand(1),
    axis=axis.reshape,
    gradient=gradients.reshape,
)

_view(
    Op.EXPAND,
    "Broadcast axes of size 1 to s'.",
    ("T", "s'"),
    is_shape("EXPAND.c1", 1, like=0),
    Constraint("EXPAND.c2", "each axis of T is 1 or that of s'", _cannot_expand),
    has_value("EXPAND.c3"),
    shape=shape.operand(1),
    gradient=gradients.expand,
)

_view(
    Op.PAD,
    "T at offset o in a space of shape s'; the elements around it are absent (INVALID) "
    "or 0 (ZERO), as its fill says.",
    ("T", "o", "s'"),
    is_shape("PAD.c1", 1, like=0),
    is_shape("PAD.c2", 2, like=0),
    Constraint("PAD.c3", "T at o lies inside s'", _sticks_out),
    has_value("PAD.c4"),
    shard_axis_kept("PAD.c5", _resizes),
    arg=PadArg,
    default_arg=PadArg(),
    shape=shape.operand(2),
    addrspace=addrspace.pad,
    min_max=min_max.pad,
    gradient=gradients.pad,
)

_view(
    Op.SHRINK,
    "Keep s' elements from offset o along each axis. The inverse of PAD.",
    ("T", "o", "s'"),
    is_shape("SHRINK.c1", 1, like=0),
    is_shape("SHRINK.c2", 2, like=0),
    Constraint("SHRINK.c3", "s' at o lies inside T", _keeps_outside),
    has_value("SHRINK.c4"),
    shard_axis_kept("SHRINK.c5", _resizes),
    shape=shape.operand(2),
    gradient=gradients.shrink,
)

movement(
    Op.INDEX,
    "Index leading axes: a ()-shaped index removes its axis, a (k,)-shaped one makes it k.",
    ("T", "i*"),
    Constraint("INDEX.c1", "at most as many indices as T has axes", _too_many_indices),
    Constraint("INDEX.c2", "indices are integers of shape () or (k,)", _wrong_index),
    one_device("INDEX.c3"),
    has_value("INDEX.c4"),
    Constraint("INDEX.c5", "at most one operand is sharded, T not on an index", _indexes_shards),
    Clause("INDEX.u1", "every index lies in 0..size-1, or is INVALID"),
    Clause("INDEX.u2", "no index is UNSPECIFIED"),
    Clause("INDEX.n1", "a kernel reaches memory by INDEX of a buffer, or by the buffer"),
    shape=shape.index,
    axis=axis.index,
    by_types=True,
    gradient=gradients.index,
)

movement(
    Op.STACK,
    "Join values of one shape along a new leading axis.",
    ("T*",),
    one_dtype("STACK.c1"),
    Constraint("STACK.c2", "operands have one shape", _shapes_differ),
    one_device("STACK.c3"),
    have_values("STACK.c4"),
    one_axis("STACK.c5"),
    dtype=dtype.stack,
    shape=shape.stack,
    addrspace=addrspace.value,
    min_max=min_max.join_all,
    axis=axis.stack,
    by_types=True,
    gradient=gradients.stack,
)

movement(
    Op.BITCAST,
    "The same bytes, little-endian, as another dtype; the last axis scales by itemsize.",
    ("T",),
    Constraint("BITCAST.c1", "neither dtype is index or void", _no_bits),
    Constraint("BITCAST.c2", "total bytes are kept along the last axis", _bytes_change),
    shard_axis_kept("BITCAST.c3", _splits_bytes),
    arg=DTypeArg,
    dtype=from_arg("dtype"),
    shape=shape.bitcast,
    min_max=min_max.reinterpreted,
    gradient=gradients.stopped,
    undefined="A NaN made by arithmetic (its bits are open); a bool from a byte above 1.",
)
