"""Movement ops with numpy's conventions: negative axes, -1 in a shape, pads, slices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from types import EllipsisType
from typing import SupportsIndex

from uop.spec.args import FlipArg, PadArg, PadFill, PermuteArg, ReduceArg
from uop.spec.conditions.labels import invalid
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed
from uop.spec.registry import Shape
from uop.spec.uop import UOp, dims, index_const

Axes = SupportsIndex | Sequence[int] | None
Key = int | slice | EllipsisType | UOp | None


def reshaped(t: UOp, shape: Sequence[int]) -> UOp:
    """Reshape; one size may be -1 and is inferred."""
    rest = math.prod(dim for dim in shape if dim != -1)
    sizes = [math.prod(t.shape) // max(rest, 1) if dim == -1 else dim for dim in shape]
    return UOp(Op.RESHAPE, t, dims(sizes))


def expanded(t: UOp, shape: Sequence[int]) -> UOp:
    """Broadcast to a shape, right-aligned; -1 keeps the size of an axis."""
    added = len(shape) - len(t.shape)
    aligned = reshaped(t, (1,) * added + t.shape) if added > 0 else t
    sizes = [
        aligned.shape[k] if dim == -1 and k < len(aligned.shape) else dim
        for k, dim in enumerate(shape)
    ]
    return UOp(Op.EXPAND, aligned, dims(sizes))


def permuted(t: UOp, order: Sequence[int]) -> UOp:
    return UOp(Op.PERMUTE, t, arg=PermuteArg(tuple(positive(t, order))))


def flipped(t: UOp, axes: Axes) -> UOp:
    """Reverse along these axes, by default all."""
    chosen = reduced_axes(t, axes)
    missing = [axis for axis in chosen if not 0 <= axis < len(t.shape)]
    # An axis outside the rank becomes a flag too many, which FLIP.c1 rejects.
    flags = [axis in chosen for axis in range(len(t.shape))] + [True] * len(missing)
    return UOp(Op.FLIP, t, arg=FlipArg(tuple(flags)))


def padded(t: UOp, pairs: Sequence[tuple[int, int]], fill: PadFill) -> UOp:
    """Add (before, after) elements along each axis."""
    # PAD.c1 rejects a pair too many.
    lengths = [*t.shape, *[0] * (len(pairs) - len(t.shape))]
    sizes = [n + before + after for n, (before, after) in zip(lengths, pairs, strict=False)]
    return UOp(Op.PAD, t, dims(before for before, _ in pairs), dims(sizes), arg=PadArg(fill))


def shrunk(t: UOp, bounds: Sequence[tuple[int, int]]) -> UOp:
    """Keep the elements from start to end along each axis."""
    return UOp(
        Op.SHRINK, t, dims(start for start, _ in bounds), dims(end - start for start, end in bounds)
    )


def folded(t: UOp, op: Op, axes: Axes) -> UOp:
    """Fold along these axes, by default all; their size becomes 1."""
    return UOp(Op.REDUCE, t, arg=ReduceArg(op, tuple(sorted(reduced_axes(t, axes)))))


def dropped(t: UOp, axes: Axes) -> UOp:
    """Drop these axes, which have size 1."""
    gone = reduced_axes(t, axes)
    return reshaped(t, [dim for axis, dim in enumerate(t.shape) if axis not in gone])


def matmul(a: UOp, b: UOp) -> UOp:
    """The last axis of a meets the last but one of b: both get axes of size 1, MUL broadcasts
    them, and the products are summed. InvalidError TENSOR.c9 where these axes differ in size.
    """
    if not a.shape or not b.shape or a.shape[-1] != b.shape[-2:][0]:
        raise invalid("TENSOR.c9", "@", f"{list(a.shape)} {list(b.shape)}")
    if len(b.shape) > 1:
        b = reshaped(b, (*b.shape[:-2], *[1] * (len(a.shape) > 1), *b.shape[-2:]))
        a = reshaped(a, (*a.shape, 1))
    axis = -2 if len(b.shape) > 1 else -1
    return dropped(folded(UOp(Op.MUL, a, b), Op.ADD, axis), axis)


def reduced_axes(t: UOp, axes: Axes) -> list[int]:
    if axes is None:
        return list(range(len(t.shape)))
    return positive(t, [index(axes)] if isinstance(axes, SupportsIndex) else axes)


def positive(t: UOp, axes: Sequence[int]) -> list[int]:
    """Negative axes as axes from the left."""
    return [axis + len(t.shape) if axis < 0 else axis for axis in axes]


def indexed(t: UOp, keys: Sequence[Key]) -> UOp:
    """numpy's basic indexing, and indexing by integer graphs of shape () or (k,)."""
    used = sum(key is not None and key is not Ellipsis for key in keys)
    if used > len(t.shape):
        raise _no_index(t, f"{used} keys")
    full = _without_ellipsis(keys, len(t.shape) - used)
    axis = 0
    for key in full:
        if key is None:
            t = reshaped(t, (*t.shape[:axis], 1, *t.shape[axis:]))
            axis += 1
        elif isinstance(key, slice):
            t = _sliced(t, axis, key)
            axis += 1
        else:
            before = len(t.shape)
            t = _picked(t, axis, key)
            axis += len(t.shape) - before + 1
    return t


def _without_ellipsis(keys: Sequence[Key], missing: int) -> list[Key]:
    """Replace the first `...` by the missing whole slices."""
    for k, key in enumerate(keys):
        if key is Ellipsis:
            return [*keys[:k], *[slice(None)] * missing, *keys[k + 1 :]]
    return [*keys]


def _picked(t: UOp, axis: int, key: int | EllipsisType | UOp) -> UOp:
    """INDEX one axis: it is moved to the left for that, and the result back."""
    i = key if isinstance(key, UOp) else index_const(_from_left(t, axis, key))
    if axis == 0:
        return UOp(Op.INDEX, t, i)
    rest = [k for k in range(len(t.shape)) if k != axis]
    picked = UOp(Op.INDEX, permuted(t, [axis, *rest]), i)
    if not i.shape:
        return picked
    return permuted(picked, [*range(1, axis + 1), 0, *range(axis + 1, len(t.shape))])


def _from_left(t: UOp, axis: int, key: int | EllipsisType) -> int:
    size = fixed(t)[axis]
    if not isinstance(key, int) or not -size <= key < size:
        raise _no_index(t, f"{key} on axis {axis}")
    return key % size


def _no_index(t: UOp, found: str) -> InvalidError:
    return invalid("TENSOR.c3", f"{t.dtype.name}{list(t.shape)}", found)


def _sliced(t: UOp, axis: int, key: slice) -> UOp:
    start, stop, step = key.indices(t.shape[axis])
    count = len(range(start, stop, step))
    low = start if step > 0 else start + step * (count - 1)
    span = 0 if count == 0 else abs(step) * (count - 1) + 1
    t = shrunk(t, _bounds(t.shape, axis, (low if count else 0, span + (low if count else 0))))
    if step < 0:
        t = flipped(t, axis)
    return t if abs(step) == 1 or count == 0 else _every(t, axis, abs(step), count)


def _every(t: UOp, axis: int, step: int, count: int) -> UOp:
    """The elements 0, step, 2 step, ... along an axis."""
    more = [(0, 0)] * len(t.shape)
    more[axis] = (0, count * step - t.shape[axis])
    t = padded(t, more, PadFill.INVALID)
    rows = reshaped(t, (*t.shape[:axis], count, step, *t.shape[axis + 1 :]))
    return dropped(shrunk(rows, _bounds(rows.shape, axis + 1, (0, 1))), axis + 1)


def _bounds(shape: Shape, axis: int, bounds: tuple[int, int]) -> list[tuple[int, int]]:
    return [bounds if k == axis else (0, dim) for k, dim in enumerate(shape)]
