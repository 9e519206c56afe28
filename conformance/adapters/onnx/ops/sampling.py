"""The rules of sampling at coordinates that are data: grids, regions, deformed convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from operator import add, and_

import numpy as np

from uop.conformance.adapters.onnx.ops.elementwise import clip
from uop.conformance.adapters.onnx.ops.frame import Spatial
from uop.conformance.adapters.onnx.ops.views import over_channels, strides_of
from uop.conformance.adapters.onnx.rules import constant, count_of, counted, rule
from uop.conformance.adapters.tensors import along, floor, in_float32, nearest_even
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.functions import full
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op

Border = Callable[[Tensor, int], Tensor]
"""Brings coordinates on an axis of a size inside."""


def between(x: Tensor, low: float, high: float) -> Tensor:
    return clip(x, full((), low, x.dtype), full((), high, x.dtype))


def linear_taps(at: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The two positions around each coordinate, with their weights."""
    low = floor(at)
    part = at - low
    return [(low, -part + 1), (low + 1, part)]


def cubic_taps(at: Tensor, a: float = -0.75) -> list[tuple[Tensor, Tensor]]:
    """The four positions around each coordinate, with the weights of cubic convolution."""
    low = floor(at)
    taps = []
    for k in range(-1, 3):
        d = abs(at - low - k)
        near = ((d * (a + 2) - (a + 3)) * d) * d + 1
        far = (((d - 5) * d + 8) * d - 4) * a
        taps.append((low + k, far if k in (-1, 2) else near))
    return taps


def sampled(
    x: Tensor, taps: Sequence[Sequence[tuple[Tensor, Tensor]]], border: Border | None
) -> Tensor:
    """Sums of elements of x (N, C, ...): for each spatial axis positions (N, P) and weights.

    A position outside is 0, or brought inside by `border`. The result is (N, C, P).
    """
    n, c, *sizes = x.shape
    rows = x.reshape(n, c, -1).permute(0, 2, 1).reshape(-1, c)
    strides = strides_of(sizes)
    parts = []
    for corner in product(*taps):
        first = corner[0][0]
        flat = along(constant(counted(n) * math.prod(sizes)), 0, 2).expand(*first.shape)
        weight = full(first.shape, 1, x.dtype)
        for (at, w), size, stride in zip(corner, sizes, strides, strict=True):
            weight = weight * w
            if border is None:
                weight = ((at >= 0) & (at <= size - 1)).where(weight, full((), 0, x.dtype))
            else:
                at = border(at, size)
            flat = flat + between(at, 0, size - 1).cast(dtypes.int64) * stride
        part = rows[flat.reshape(-1)].reshape(*first.shape, c)
        parts.append(part * weight.reshape(*first.shape, 1))
    return reduce(add, parts).permute(0, 2, 1)


def reflected(at: Tensor, size: int, edge: float) -> Tensor:
    """Coordinates thrown back as often as is needed, at `edge` and as far from the other end."""
    span = size - 1 - 2 * edge
    if span == 0:
        return at * 0
    way = abs(at - edge)
    way = way - floor(way / (2 * span)) * (2 * span)
    return (way > span).where(-way + 2 * span, way) + edge


@rule("GridSample", since=16)
def grid_sample(
    x: Tensor,
    grid: Tensor,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Tensor:
    """Coordinates of the grid go from -1 to 1, those of the last axis of x first."""
    n, rank = x.shape[0], x.ndim - 2
    borders: dict[str, Border | None] = {
        "zeros": None,
        "border": lambda at, size: between(at, 0, size - 1),
        "reflection": partial(reflected, edge=0.0 if align_corners else -0.5),
    }
    ways: dict[str, Callable[[Tensor], list[tuple[Tensor, Tensor]]]] = {
        "nearest": lambda at: [(nearest_even(at), full(at.shape, 1, at.dtype))],
        **dict.fromkeys(("linear", "bilinear"), linear_taps),
        **dict.fromkeys(("cubic", "bicubic"), cubic_taps),
    }
    if padding_mode not in borders or mode not in ways:
        raise UnsupportedError(f"mode {mode!r} with padding {padding_mode!r}")
    border = borders[padding_mode]
    taps = []
    for k in range(rank):
        size = x.shape[2 + k]
        at = grid[..., rank - 1 - k].reshape(n, -1)
        at = (at + 1) * ((size - 1) / 2) if align_corners else ((at + 1) * size - 1) * 0.5
        if border is not None and ways[mode] is not cubic_taps:
            at = border(at, size)
        taps.append(ways[mode](at))
    result = sampled(x, taps, border)
    return result.reshape(*x.shape[:2], *grid.shape[1:-1])


@rule("RoiAlign", since=10)
def roi_align(
    x: Tensor,
    rois: Tensor,
    batch: Tensor,
    *,
    coordinate_transformation_mode: str = "",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    """Means of samples in each cell of each region."""
    if sampling_ratio == 0:
        raise UnsupportedError("sampling_ratio 0: the sizes of regions decide how many samples")
    if mode != "avg":
        raise UnsupportedError(f"mode {mode!r}")
    half = coordinate_transformation_mode == "half_pixel"
    edges = rois * spatial_scale - (0.5 if half else 0.0)
    count, taps, inside = rois.shape[0], [], []
    cells = (output_height, output_width)
    for k, cell in enumerate(cells):
        start, size = edges[:, 1 - k : 2 - k], edges[:, 3 - k : 4 - k] - edges[:, 1 - k : 2 - k]
        size = size if half else size.maximum(1)
        steps = (counted(cell * sampling_ratio) + 0.5) / (cell * sampling_ratio)
        at = start + size * constant(steps.astype(np_dtype(x.dtype))).reshape(1, -1)
        good = (at >= -1) & (at <= x.shape[2 + k])
        at = between(at, 0, x.shape[2 + k] - 1)
        wide = (count, cells[0] * sampling_ratio, cells[1] * sampling_ratio)
        sides = (count, -1, 1) if k == 0 else (count, 1, -1)
        at = at.reshape(*sides).expand(*wide).reshape(count, -1)
        inside.append(good.reshape(*sides).expand(*wide).reshape(count, -1))
        taps.append(linear_taps(at))
    found = sampled(x[batch.cast(dtypes.int64)], taps, lambda at, size: at)
    found = reduce(and_, inside).reshape(count, 1, -1).where(found, full((), 0, x.dtype))
    found = found.reshape(
        count, x.shape[1], output_height, sampling_ratio, output_width, sampling_ratio
    )
    total = found.reduce(Op.ADD, [3, 5]) / sampling_ratio**2
    return total.reshape(count, x.shape[1], output_height, output_width)


@rule("DeformConv", since=19, about=Spatial)
def deform_conv(
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    about: Spatial,
    group: int = 1,
    offset_group: int = 1,
) -> Tensor:
    """A convolution that samples each element of a window at an offset from its place."""
    (n, c, *lengths), (m, each, *sizes) = x.shape, weight.shape
    if len(sizes) != 2:
        raise UnsupportedError(f"{len(sizes)} spatial axes: expected 2")
    frame = about.frame(lengths, sizes)
    outs, taken = offset.shape[-2:], math.prod(sizes)
    offsets = offset.reshape(n * offset_group, taken, 2, *outs)
    taps = []
    for k in range(2):
        inner = counted(sizes[k]) * frame.dilations[k]
        starts = counted(outs[k]) * frame.strides[k] - frame.before[k]
        count_of(math.prod((*sizes, *outs)))
        grid = np.zeros((*sizes, *outs))
        grid = grid + np.expand_dims(inner, tuple(j for j in range(4) if j != k))
        grid = grid + np.expand_dims(starts, tuple(j for j in range(4) if j != 2 + k))
        at = offsets[:, :, k] + constant(grid.reshape(taken, *outs).astype(np_dtype(x.dtype)))
        taps.append(linear_taps(at.reshape(n * offset_group, -1)))
    parts = sampled(x.reshape(n * offset_group, c // offset_group, *lengths), taps, None)
    if mask is not None:
        parts = parts * mask.reshape(n * offset_group, 1, -1)
    parts = parts.reshape(n, group, 1, each, taken, *outs)
    kernels = weight.reshape(group, m // group, each, taken, 1, 1)
    y = in_float32(lambda p, w: (p * w).reduce(Op.ADD, [3, 4]), parts, kernels)
    y = y.reshape(n, m, *outs)
    return y if bias is None else y + over_channels(bias, 4)
