"""Compositions of Tensors that the readers of other languages share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from uop.spec.args import PadFill
from uop.spec.dtype import dtypes
from uop.spec.frontend.tensor import Tensor


def in_float32(apply: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """A composition on narrower floats in float32: its own rounding would add up."""
    dtype = tensors[0].dtype
    if dtype.is_float and dtype.bits < 32:
        return apply(*(t.cast(dtypes.float32) for t in tensors)).cast(dtype)
    return apply(*tensors)


def sign_of(x: Tensor) -> Tensor:
    """-1, 1 or x itself: a zero or a NaN."""
    up = (x > 0).where(1, x)
    return (x < 0).where(-1, up) if x.dtype.is_signed or x.dtype.is_float else up


def floor(x: Tensor) -> Tensor:
    t = x.trunc()
    return (x < t).where(t - 1, t)


def ceil(x: Tensor) -> Tensor:
    t = x.trunc()
    return (x > t).where(t + 1, t)


def nearest_even(x: Tensor) -> Tensor:
    """The nearest integer, of two the even one; a zero keeps its sign, as TRUNC leaves it."""
    t = x.trunc()
    rest, half = abs(x - t), t * 0.5
    is_odd = half != half.trunc()
    away = (rest > 0.5) | ((rest == 0.5) & is_odd)
    return away.where(t + sign_of(x), t)


def along(vector: Tensor, axis: int, rank: int) -> Tensor:
    """A (k,)-shaped Tensor along one of `rank` axes, of size 1 along the others."""
    return vector.reshape([vector.size if k == axis else 1 for k in range(rank)])


def moved(x: Tensor, source: int, to: int) -> Tensor:
    """x with one of its axes at another place, as numpy.moveaxis."""
    order = [k for k in range(x.ndim) if k != source]
    order.insert(to, source)
    return x.permute(order)


def stacked(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors of one shape, one behind the other along an axis."""
    shape = list(tensors[0].shape)
    shape[axis] *= len(tensors)
    return moved(Tensor.stack(*tensors), 0, axis).reshape(shape)


def shrunk(x: Tensor, axis: int, start: int, end: int) -> Tensor:
    """The elements from start to end along an axis."""
    return x.shrink(*((start, end) if k == axis else (0, dim) for k, dim in enumerate(x.shape)))


def padded(x: Tensor, axis: int, before: int, after: int) -> Tensor:
    """Zeros before and after the elements along an axis."""
    sides = ((before, after) if k == axis else (0, 0) for k in range(x.ndim))
    return x.pad(*sides, fill=PadFill.ZERO)


def with_gaps(x: Tensor, gaps: Sequence[int]) -> Tensor:
    """So many zeros between the elements along each axis."""
    for axis, gap in enumerate(gaps):
        n = x.shape[axis]
        if gap and n > 1:
            rows = x.reshape(*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])
            flat = (*x.shape[:axis], n * (gap + 1), *x.shape[axis + 1 :])
            x = shrunk(padded(rows, axis + 1, 0, gap).reshape(*flat), axis, 0, flat[axis] - gap)
    return x
