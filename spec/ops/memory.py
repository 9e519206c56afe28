"""Declarations of REPLICATED (one of equal copies on devices) and SLICE (a part of a buffer)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from uop.spec.args import DTypeArg, ReplicatedArg, SliceArg, arg_of
from uop.spec.dtype import Kind, dtypes
from uop.spec.ops import gradients
from uop.spec.ops.constraints import has_value, is_index, shard_axis_kept
from uop.spec.ops.movement import movement
from uop.spec.ops.names import Op
from uop.spec.ops.sizes import shape_node, size_node
from uop.spec.properties import addrspace, axis, min_max, shape
from uop.spec.properties.shape import index_value, size_of
from uop.spec.properties.words import from_arg
from uop.spec.registry import Clause, Constraint
from uop.spec.text.codec import shown

if TYPE_CHECKING:
    from uop.spec.registry import Build, Node


def _cannot_collapse(u: Node) -> str | None:
    axes, t = arg_of(u, ReplicatedArg).axes, u.src[0].shape
    if list(axes) == sorted(set(axes)) and all(0 <= a < len(t) for a in axes):
        return None if all(t[a] > 0 for a in axes) else f"no element along {axes} of {t}"
    return f"{axes} for rank {len(t)}"


def _first_copy(build: Build, u: Node) -> Node | None:
    """REPLICATED: on one device, the first of the copies."""
    t, axes = u.src[0], arg_of(u, ReplicatedArg).axes
    if axis.shards(t) > 1 and t.axis in axes:
        return None
    kept = (1 if a in axes else size for a, size in enumerate(t.shape))
    first = build(Op.SHRINK, t, shape_node(build, [0] * len(t.shape)), shape_node(build, kept))
    return first if t.addrspace is None else build(Op.CONTIGUOUS, first)


def _times(build: Build, a: int | Node, b: int | Node) -> int | Node:
    """The product of two sizes: a number if both are."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return build(Op.MUL, size_node(build, a), size_node(build, b))


def _no_slice(u: Node) -> str | None:
    arg, old = arg_of(u, SliceArg), u.src[0].dtype
    if arg.size < 0:
        return f"size {arg.size}"
    if arg.dtype is not dtypes.void and Kind.INDEX not in (old.kind, arg.dtype.kind):
        return None
    return None if arg.dtype is old else f"{old.name} as {arg.dtype.name}"


def _slice_outside(u: Node) -> str | None:
    """SLICE.c4: the view consists of whole elements of the new dtype (D-072)."""
    t, arg = u.src[0], arg_of(u, SliceArg)
    start, wide = index_value(u.src[1]) * t.dtype.itemsize, arg.dtype.itemsize
    if start % wide:
        return f"byte {start} for elements of {wide} bytes"
    end, have = start + arg.size * wide, math.prod(t.shape) * t.dtype.itemsize
    return None if end <= have else f"bytes {start} to {end} of {shown(have)}"


def _slice_by_views(build: Build, u: Node) -> Node:
    """SLICE by views: SHRINK in elements of the smaller dtype, then BITCAST."""
    t, arg = u.src[0], arg_of(u, SliceArg)
    old, new, start = t.dtype.itemsize, arg.dtype.itemsize, size_of(u.src[1])
    whole: int | Node = 1
    for size in t.shape:
        whole = _times(build, whole, size)
    flat = build(Op.RESHAPE, t, shape_node(build, [whole]))
    if arg.dtype is not t.dtype and new < old:
        flat = build(Op.BITCAST, flat, arg=DTypeArg(arg.dtype))
        start, old = _times(build, start, old // new), new
    begin, count = shape_node(build, [start]), shape_node(build, [-(-arg.size * new // old)])
    part = build(Op.SHRINK, flat, begin, count)
    return part if part.dtype is arg.dtype else build(Op.BITCAST, part, arg=DTypeArg(arg.dtype))


movement(
    Op.REPLICATED,
    "T, whose elements are the same all along the axes: one of the copies; axes become 1.",
    ("T",),
    has_value("REPLICATED.c1"),
    Constraint("REPLICATED.c2", "axes are sorted, distinct, and not empty ones", _cannot_collapse),
    Clause("REPLICATED.u1", "the copies are the same"),
    arg=ReplicatedArg,
    shape=shape.replicated,
    addrspace=addrspace.value,
    axis=axis.replicated,
    decomposition=_first_copy,
    gradient=gradients.replicated,
)

movement(
    Op.SLICE,
    "size elements of dtype in the memory of T, from an offset in elements of T on.",
    ("T", "offset"),
    has_value("SLICE.c1"),
    is_index("SLICE.c2", "offset is a ()-shaped index, not negative", 1, "offset"),
    Constraint("SLICE.c3", "size is not negative, both dtypes have bits", _no_slice),
    Constraint("SLICE.c4", "it starts at an element of dtype, inside T", _slice_outside),
    # No device has all elements of a sharded value.
    shard_axis_kept("SLICE.c5", lambda u, axis: "is in several memories"),
    arg=SliceArg,
    dtype=from_arg("dtype"),
    shape=shape.of_slice,
    min_max=min_max.reinterpreted,
    axis=axis.null,
    undefined="Where the dtype changes: what BITCAST leaves open.",
    decomposition=_slice_by_views,
)
