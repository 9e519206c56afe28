"""Steps that several rules share: axes, joins, windows, and picks by positions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from uop.conformance.adapters.onnx.rules import constant, counted
from uop.conformance.adapters.tensors import along
from uop.interpreter.numeric.storage import Array
from uop.spec.args import PadFill
from uop.spec.dtype import dtypes
from uop.spec.errors import MalformedError
from uop.spec.frontend.tensor import Tensor


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the left."""
    if not -rank <= axis < rank:
        raise MalformedError(f"axis {axis}: expected {-rank}..{rank - 1}")
    return axis % rank


def axes_of(axes: Sequence[int] | Array | None, rank: int) -> list[int]:
    """Axes counted from the left, by default all."""
    if axes is None:
        return [*range(rank)]
    return [axis_of(int(axis), rank) for axis in np.asarray(axes).reshape(-1)]


def ints(values: Sequence[int] | Array) -> list[int]:
    return [int(value) for value in np.asarray(values).reshape(-1)]


def shrunk(x: Tensor, axis: int, start: int, end: int) -> Tensor:
    """The elements from start to end along an axis."""
    return x.shrink(*((start, end) if k == axis else (0, dim) for k, dim in enumerate(x.shape)))


def padded(x: Tensor, axis: int, before: int, after: int, fill: PadFill) -> Tensor:
    """Elements more along an axis."""
    return x.pad(*((before, after) if k == axis else (0, 0) for k in range(x.ndim)), fill=fill)


def joined(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """The Tensors one behind the other along an axis: each stands alone where the others are 0."""
    tensors = [t for t in tensors if t.shape[axis]] or tensors[:1]
    if len(tensors) == 1:
        return tensors[0]
    if all(t.shape[axis] == 1 for t in tensors):
        return _stacked(tensors, axis)
    sizes = [t.shape[axis] for t in tensors]
    result, end = tensors[-1], sum(sizes)
    result = padded(result, axis, end - sizes[-1], 0, PadFill.ZERO)
    for k in reversed(range(len(tensors) - 1)):
        start = sum(sizes[:k])
        here = padded(tensors[k], axis, start, end - start - sizes[k], PadFill.ZERO)
        result = (positions(result, axis) < start + sizes[k]).where(here, result)
    return result


def _stacked(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors of size 1 along an axis as the rows of one."""
    rows = Tensor.stack(*tensors)
    order = [*range(1, axis + 1), 0, *range(axis + 1, rows.ndim)]
    moved = rows.permute(order)
    return moved.reshape(*moved.shape[: axis + 1], *moved.shape[axis + 2 :])


def over_channels(vector: Tensor, rank: int) -> Tensor:
    """A vector along the second axis."""
    return along(vector, 1, rank)


def positions(x: Tensor, axis: int) -> Tensor:
    """0, 1, ... along an axis, of size 1 along the others."""
    return along(constant(counted(x.shape[axis])), axis, x.ndim)


def picked(x: Tensor, axis: int, at: Sequence[int] | Array) -> Tensor:
    """The elements at these positions along an axis."""
    if not len(at):
        return shrunk(x, axis, 0, 0)
    return x[(*[slice(None)] * axis, Tensor(np.asarray(at, np.int64)))]


def gathered(x: Tensor, flat: Tensor) -> Tensor:
    """The elements at these positions in row-major order."""
    return x.reshape(-1)[flat.reshape(-1)].reshape(*flat.shape)


def from_left(indices: Tensor, size: int) -> Tensor:
    """Indices as int64, where a negative one counts from the end."""
    wide = indices.cast(dtypes.int64)
    return (wide < 0).where(wide + size, wide)


def strides_of(shape: Sequence[int]) -> list[int]:
    """How far apart neighbours along each axis are in row-major order."""
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def sliding(x: Tensor, axis: int, size: int, stride: int = 1, dilation: int = 1) -> Tensor:
    """The windows along an axis: it becomes the axis of windows, and a last one is added in them.

    Copies of x cut into rows that are `dilation` longer than x: row j starts at j * dilation.
    """
    moved = x.permute(*(k for k in range(x.ndim) if k != axis), axis)
    *rest, n = moved.shape
    span = n - (size - 1) * dilation
    if span < 1:
        raise MalformedError(f"a window of {n - span + 1} elements: expected at most {n}")
    row = n + dilation
    copies = -(-size * row // n)
    flat = moved.reshape(*rest, 1, n).expand(*rest, copies, n).reshape(*rest, copies * n)
    rows = flat.shrink_to(*rest, size * row).reshape(*rest, size, row).shrink_to(*rest, size, span)
    rows = rows[(..., slice(None, None, stride))]
    last = len(rest)
    order = [*range(axis), last + 1, *range(axis, last), last]
    return rows.permute(order)


def windows(
    x: Tensor, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Tensor:
    """The windows over all axes behind the first two: (N, C, counts..., sizes...)."""
    for k, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
        x = sliding(x, 2 + k, size, stride, dilation)
    return x
