"""The rules of pools: folds over windows, in which a pad is no element."""

from __future__ import annotations

import math

import numpy as np

from uop.conformance.adapters.onnx.ops.indexing import scattered
from uop.conformance.adapters.onnx.ops.reduce import dropped
from uop.conformance.adapters.onnx.ops.views import Frame, Spatial, ints, windows, with_pads
from uop.conformance.adapters.onnx.rules import constant, counted, rule
from uop.conformance.adapters.tensors import in_float32
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import PadFill
from uop.spec.dtype import dtypes
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op


def seen(x: Tensor, frame: Frame) -> Tensor:
    """The windows over x (N, C, ...), whose elements outside it are absent."""
    wide = with_pads(x, frame, PadFill.INVALID)
    return windows(wide, frame.sizes, frame.strides, frame.dilations)


def folded(windows: Tensor, op: Op, frame: Frame) -> Tensor:
    """Fold each window."""
    axes = [*range(windows.ndim - len(frame.sizes), windows.ndim)]
    return dropped(windows.reduce(op, axes), axes)


@rule("MaxPool", about=Spatial)
def max_pool(x: Tensor, *, about: Spatial, storage_order: int = 0, outputs: int) -> list[Tensor]:
    frame = about.frame(x.shape[2:])
    parts = seen(x, frame)
    top = folded(parts, Op.MAX, frame)
    if outputs == 1:
        return [top]
    # Column by column, if `storage_order`.
    planes = counted(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * (x.ndim - 2))
    inner = counted(math.prod(x.shape[2:])).reshape(
        x.shape[2:], order="F" if storage_order else "C"
    )
    places = seen(constant(planes * inner.size + inner), frame)
    hit = parts == top.reshape(*top.shape, *[1] * len(frame.sizes))
    last = full((), x.size, dtypes.int64)
    return [top, folded(hit.where(places, last), Op.MIN, frame)]


@rule("AveragePool", about=Spatial)
def average_pool(x: Tensor, *, about: Spatial, count_include_pad: int = 0) -> Tensor:
    frame = about.frame(x.shape[2:])
    counts = constant(_counts(x, frame, count_include_pad).astype(np_dtype(x.dtype)))
    return in_float32(lambda x, n: folded(seen(x, frame), Op.ADD, frame) / n, x, counts)


def _counts(x: Tensor, frame: Frame, with_pad: int) -> Array:
    """How many elements each window has."""
    result = np.ones((), np.int64)
    for k, n in enumerate(x.shape[2:]):
        before, after = frame.before[k], frame.after[k]
        row = counted(before + n + after + frame.beyond[k]) - before
        inside = (row < n + after) if with_pad else (row >= 0) & (row < n)
        span = (frame.sizes[k] - 1) * frame.dilations[k] + 1
        parts = np.lib.stride_tricks.sliding_window_view(inside, span)
        counts = parts[:: frame.strides[k], :: frame.dilations[k]].sum(-1)
        result = result[..., None] * counts
    return result


@rule("LpPool", since=2, about=Spatial)
def lp_pool(x: Tensor, *, about: Spatial, p: int = 2) -> Tensor:
    frame = about.frame(x.shape[2:])
    return folded(seen(abs(x) ** p, frame), Op.ADD, frame) ** (1 / p)


@rule("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    return x.reduce(Op.MAX, [*range(2, x.ndim)])


@rule("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    return in_float32(lambda x: x.reduce(Op.ADD, [*range(2, x.ndim)]) / math.prod(x.shape[2:]), x)


@rule("GlobalLpPool", since=2)
def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    return (abs(x) ** p).reduce(Op.ADD, [*range(2, x.ndim)]) ** (1 / p)


@rule("MaxUnpool", known=(2,), about=Spatial)
def max_unpool(x: Tensor, places: Tensor, shape: Array | None = None, *, about: Spatial) -> Tensor:
    """Put elements where MaxPool took them from; its places count in the smallest such shape."""
    frame = about.frame(x.shape[2:])
    sizes = [
        (n - 1) * step + size - before - after
        for n, step, size, before, after in zip(
            x.shape[2:], frame.strides, frame.sizes, frame.before, frame.after, strict=True
        )
    ]
    own = [*x.shape[:2], *sizes]
    empty = full((math.prod(own), 1), 0, x.dtype)
    y = scattered(empty, places.reshape(-1), x.reshape(-1, 1)).reshape(*own)
    if shape is None:
        return y
    more = [(0, n - m) for n, m in zip(ints(shape), own, strict=True)]
    return y.pad(*more, fill=PadFill.ZERO)


@rule("Col2Im", known=(1, 2), about=Spatial)
def columns_to_image(x: Tensor, image: Array, block: Array, *, about: Spatial) -> Tensor:
    """Add the columns, which are windows of an image, at their places."""
    lengths, sizes = ints(image), ints(block)
    frame = about.frame(lengths, sizes)
    padded = [
        n + before + after
        for n, before, after in zip(lengths, frame.before, frame.after, strict=True)
    ]
    places = counted(math.prod(padded)).reshape(padded)
    spans = [(k - 1) * d + 1 for k, d in zip(sizes, frame.dilations, strict=True)]
    parts = np.lib.stride_tricks.sliding_window_view(places, spans)
    keys = [slice(None, None, step) for step in (*frame.strides, *frame.dilations)]
    rank = len(sizes)
    # The windows are the last axis of the columns, their elements the one before.
    at = parts[tuple(keys)].transpose([*range(rank, 2 * rank), *range(rank)]).reshape(-1)
    n, channels = x.shape[0], x.shape[1] // math.prod(sizes)
    rows = x.reshape(n * channels, at.size).T
    empty = full((places.size, n * channels), 0, x.dtype)
    total = scattered(empty, constant(at), rows, "add").T.reshape(n, channels, *padded)
    inner = [(before, before + size) for before, size in zip(frame.before, lengths, strict=True)]
    return total.shrink((0, n), (0, channels), *inner)
