"""The rules of gathers and scatters: places that are data."""

from __future__ import annotations

import numpy as np

from uop.conformance.adapters.onnx.ops.reduce import dropped
from uop.conformance.adapters.onnx.ops.views import (
    axis_of,
    from_left,
    gathered,
    positions,
    strides_of,
)
from uop.conformance.adapters.onnx.rules import constant, counted, rule
from uop.conformance.adapters.tensors import along
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op


@rule("Gather")
def gather(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    at = axis_of(axis, x.ndim)
    flat = from_left(indices, x.shape[at]).reshape(-1)
    rows = x[(*[slice(None)] * at, flat)]
    return rows.reshape(*x.shape[:at], *indices.shape, *x.shape[at + 1 :])


@rule("GatherElements")
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return gathered(x, _flat_places(x, indices, axis_of(axis, x.ndim)))


def _flat_places(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The place in x of each index along an axis, at its own position along the others."""
    strides = strides_of(x.shape)
    flat = from_left(indices, x.shape[axis]) * strides[axis]
    for k, stride in enumerate(strides):
        if k != axis:
            flat = flat + positions(indices, k) * stride
    return flat


@rule("GatherND")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    depth = indices.shape[-1]
    flat = _flat_rows(x, indices, batch_dims)
    rest = x.shape[batch_dims + depth :]
    rows = x.reshape(-1, *rest)
    return rows[flat.reshape(-1)].reshape(*indices.shape[:-1], *rest)


def _flat_rows(x: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """The place of each tuple of indices among the rows of x behind these axes."""
    depth = indices.shape[-1]
    strides = strides_of(x.shape[: batch_dims + depth])
    flat = full(indices.shape[:-1], 0, dtypes.int64)
    for k in range(batch_dims):
        flat = flat + positions(indices[..., 0], k) * strides[k]
    for k in range(depth):
        size = x.shape[batch_dims + k]
        flat = flat + from_left(indices[..., k], size) * strides[batch_dims + k]
    return flat


REDUCTIONS = {"add": Op.ADD, "mul": Op.MUL, "max": Op.MAX, "min": Op.MIN}


@rule("ScatterElements", "Scatter")
def scatter_elements(
    x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    flat = _flat_places(x, indices, axis_of(axis, x.ndim))
    rows = scattered(x.reshape(-1, 1), flat.reshape(-1), updates.reshape(-1, 1), reduction)
    return rows.reshape(*x.shape)


@rule("ScatterND")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    rest = x.shape[indices.shape[-1] :]
    size = int(np.prod(rest))
    flat = _flat_rows(x, indices)
    rows = scattered(x.reshape(-1, size), flat.reshape(-1), updates.reshape(-1, size), reduction)
    return rows.reshape(*x.shape)


def scattered(x: Tensor, at: Tensor, updates: Tensor, reduction: str = "none") -> Tensor:
    """Rows of x with updates at these rows: each row looks at all updates.

    Without a reduction, places are different, as ONNX demands.
    """
    n, k = x.shape[0], at.size
    if not k or not x.size:
        return x
    hit = along(constant(counted(n)), 0, 3) == at.reshape(1, k, 1)
    op = REDUCTIONS.get(reduction, Op.ADD)
    if reduction not in (*REDUCTIONS, "none"):
        raise UnsupportedError(f"reduction {reduction!r}")
    if reduction == "none":
        placed = hit.where(updates.reshape(1, k, -1), full((), 0, x.dtype))
        any_hit = dropped(hit.reduce(Op.MAX, 1), [1])
        return any_hit.where(dropped(placed.reduce(Op.ADD, 1), [1]), x)
    neutral = {Op.ADD: 0, Op.MUL: 1, Op.MAX: x.dtype.min, Op.MIN: x.dtype.max}[op]
    placed = hit.where(updates.reshape(1, k, -1), full((), neutral, x.dtype))
    return Tensor.of(op, x, dropped(placed.reduce(op, 1), [1]))


@rule("ReverseSequence")
def reverse_sequence(
    x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0
) -> Tensor:
    """Element t of a row of length n is its element n-1-t; those behind the row stay."""
    time = positions(x, time_axis)
    ends = along(lengths.cast(dtypes.int64), batch_axis, x.ndim)
    source = (time < ends).where(ends - 1 - time, time)
    return gather_elements(x, source.expand(*x.shape), axis=time_axis)


@rule("TensorScatter")
def tensor_scatter(
    cache: Tensor,
    update: Tensor,
    starts: Tensor | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Tensor:
    """A cache with the update from a start on, one for each element of the batch."""
    at = axis_of(axis, cache.ndim)
    size, count = cache.shape[at], update.shape[at]
    place = positions(cache, at).expand(*cache.shape)
    if starts is not None:
        place = place - along(starts.cast(dtypes.int64), 0, cache.ndim)
    if mode == "circular":
        place = place % size
    inside = (place >= 0) & (place < count)
    found = gather_elements(update, inside.where(place, 0), axis=at)
    return inside.where(found, cache)
