"""The rules of ops that lay elements out anew, at places that shapes and attributes say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from uop.conformance.adapters.onnx.library import dtype_of
from uop.conformance.adapters.onnx.ops.views import (
    axes_of,
    axis_of,
    from_left,
    ints,
    joined,
    picked,
    positions,
)
from uop.conformance.adapters.onnx.rules import constant, count_of, counted, rule
from uop.conformance.adapters.tensors import padded, shrunk
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.errors import MalformedError, UnsupportedError
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor


@rule("Constant")
def of_attribute(
    *,
    value: Array | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
) -> Tensor:
    for floats in (value_float, value_floats):
        if floats is not None:
            return constant(np.asarray(floats, np.float32))
    for numbers in (value_int, value_ints):
        if numbers is not None:
            return constant(np.asarray(numbers, np.int64))
    if value is None:
        raise MalformedError("expected one value among the attributes; found none")
    return constant(value)


@rule("ConstantOfShape", known=(0,))
def of_shape(shape: Array, *, value: Array | None = None) -> Tensor:
    held = np.zeros(1, np.float32) if value is None else value
    one = constant(held).reshape()
    return one.expand(*ints(shape)) if shape.size else one


@rule("Shape")
def shape_of(x: Tensor, *, start: int = 0, end: int | None = None) -> Tensor:
    return constant(np.asarray(x.shape[slice(start, end)], np.int64))


@rule("Size")
def size_of(x: Tensor) -> Tensor:
    return constant(np.asarray(x.size))


@rule("Reshape", since=5, known=(1,))
def reshape(x: Tensor, shape: Array, *, allowzero: int = 0) -> Tensor:
    """0 keeps the size of the axis, unless `allowzero`."""
    wanted = ints(shape)
    sizes = [
        x.shape[k] if size == 0 and not allowzero and k < x.ndim else size
        for k, size in enumerate(wanted)
    ]
    if -1 in sizes and 0 in sizes:
        sizes[sizes.index(-1)] = 0
    return x.reshape(sizes)


@rule("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    cut = axis if axis >= 0 else axis + x.ndim
    return x.reshape(math.prod(x.shape[:cut]), math.prod(x.shape[cut:]))


@rule("Transpose")
def transpose(x: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    return x.permute([*reversed(range(x.ndim))] if perm is None else perm)


@rule("Squeeze", moved=("axes",))
@rule("Squeeze", since=13, known=(1,))
def squeeze(x: Tensor, axes: Array | None = None) -> Tensor:
    gone = (
        {k for k, n in enumerate(x.shape) if n == 1} if axes is None else {*axes_of(axes, x.ndim)}
    )
    return x.reshape([n for k, n in enumerate(x.shape) if k not in gone])


@rule("Unsqueeze", moved=("axes",))
@rule("Unsqueeze", since=13, known=(1,))
def unsqueeze(x: Tensor, axes: Array) -> Tensor:
    new = axes_of(axes, x.ndim + len(axes.reshape(-1)))
    sizes = iter(x.shape)
    return x.reshape([1 if k in new else next(sizes) for k in range(x.ndim + len(new))])


@rule("Expand", known=(1,))
def expand(x: Tensor, shape: Array) -> Tensor:
    return x.expand(*np.broadcast_shapes(x.shape, tuple(ints(shape))))


@rule("Tile", since=6, known=(1,))
def tile(x: Tensor, repeats: Array) -> Tensor:
    times = ints(repeats)
    sides = [part for n in x.shape for part in (1, n)]
    wide = [part for n, k in zip(x.shape, times, strict=True) for part in (k, n)]
    return (
        x.reshape(sides).expand(wide).reshape([n * k for n, k in zip(x.shape, times, strict=True)])
    )


@rule("Concat")
def concat(*tensors: Tensor, axis: int) -> Tensor:
    return joined(tensors, axis_of(axis, tensors[0].ndim))


@rule("Split", since=2, moved=("split",))
@rule("Split", since=13, known=(1,))
def split(
    x: Tensor,
    sizes: Array | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    outputs: int,
) -> list[Tensor]:
    along = axis_of(axis, x.ndim)
    count = num_outputs or outputs
    each = -(-x.shape[along] // count)
    ends = np.cumsum(sizes) if sizes is not None else np.arange(1, count + 1) * each
    bounds = [0, *(min(int(end), x.shape[along]) for end in ends)]
    return [shrunk(x, along, a, b) for a, b in pairwise(bounds)]


@rule("Slice", moved=("starts", "ends", "axes"))
@rule("Slice", since=10, known=(1, 2, 3, 4))
def slices(
    x: Tensor, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
) -> Tensor:
    chosen = axes_of(axes, x.ndim)[: len(starts)]
    keys = [slice(None)] * x.ndim
    every = [1] * len(starts) if steps is None else ints(steps)
    for axis, start, end, step in zip(chosen, ints(starts), ints(ends), every, strict=True):
        # Python's slices count an end below -n from the front in the same way, but for -1.
        stop = None if step < 0 and end < -x.shape[axis] else end
        keys[axis] = slice(start, stop, step)
    return x[tuple(keys)] if keys else x


@rule("Pad", since=11, known=(1, 3))
def pad(
    x: Tensor,
    pads: Array,
    value: Tensor | None = None,
    axes: Array | None = None,
    *,
    mode: str = "constant",
) -> Tensor:
    chosen = axes_of(axes, x.ndim)
    sides = ints(pads)
    for k, axis in enumerate(chosen):
        before, after = sides[k], sides[k + len(chosen)]
        x = _padded_by(x, axis, before, after, value, mode)
    return x


@rule("Pad", since=2)
def pad_attribute(
    x: Tensor, *, pads: Sequence[int], value: float = 0.0, mode: str = "constant"
) -> Tensor:
    return pad(x, np.asarray(pads), full((), value, x.dtype), mode=mode)


def _padded_by(
    x: Tensor, axis: int, before: int, after: int, value: Tensor | None, mode: str
) -> Tensor:
    n = x.shape[axis]
    x = shrunk(x, axis, max(-before, 0), n - max(-after, 0))
    before, after, n = max(before, 0), max(after, 0), x.shape[axis]
    if mode != "constant":
        if mode not in ("edge", "reflect", "wrap"):
            raise UnsupportedError(f"mode {mode!r}")
        # numpy has the same names.
        return picked(x, axis, np.pad(counted(n), (before, after), mode))  # type: ignore[call-overload]
    wide = padded(x, axis, before, after)
    if value is None or not before + after:
        return wide
    place = positions(wide, axis)
    inside = (place >= before) & (place < before + n)
    return inside.where(wide, value.reshape())


@rule("Trilu", known=(1,))
def trilu(x: Tensor, diagonal: Array | None = None, *, upper: int = 1) -> Tensor:
    shift = 0 if diagonal is None else int(diagonal.reshape(()))
    distance = positions(x, x.ndim - 1) - positions(x, x.ndim - 2)
    kept = distance >= shift if upper else distance <= shift
    return kept.where(x, full((), 0, x.dtype))


@rule("EyeLike")
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    (rows, columns), chosen = x.shape, x.dtype if dtype is None else dtype_of(dtype)
    count_of(rows * columns)
    return constant(np.eye(rows, columns, k=k, dtype=np_dtype(chosen)))


@rule("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    (n, c, h, w), b = x.shape, blocksize
    if mode == "DCR":
        blocks = x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape(n, c // (b * b), b, b, h, w).permute(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, c // (b * b), h * b, w * b)


@rule("Range", known=(0, 1, 2))
def numbers(start: Array, limit: Array, delta: Array) -> Tensor:
    if not delta.item():
        raise MalformedError("expected a delta that is not 0")
    steps = counted((limit.item() - start.item()) / delta.item())
    return constant((start + steps * delta).astype(start.dtype))


@rule("OneHot", known=(1,), since=9)
def one_hot(indices: Tensor, depth: Array, values: Tensor, *, axis: int = -1) -> Tensor:
    """Indices outside -depth..depth-1 have no hot element."""
    rank, size = indices.ndim + 1, count_of(depth.reshape(()).item())
    at = axis_of(axis, rank)
    wide = from_left(indices, size).reshape(*indices.shape[:at], 1, *indices.shape[at:])
    places = constant(counted(size)).reshape(*(size if k == at else 1 for k in range(rank)))
    return (wide == places).where(values[1], values[0])
