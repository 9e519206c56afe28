"""The rules of sampling: grids, regions, deformed convolutions, resizing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product
from operator import add, and_, or_

import numpy as np

from uop.conformance.adapters.onnx.ops.elementwise import between
from uop.conformance.adapters.onnx.ops.views import (
    Spatial,
    axes_of,
    ints,
    over_channels,
    picked,
    strides_of,
)
from uop.conformance.adapters.onnx.rules import constant, count_of, counted, rule
from uop.conformance.adapters.tensors import along, floor, in_float32, nearest_even
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op

Border = Callable[[Tensor, int], Tensor]
"""Brings coordinates on an axis of a size inside."""


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
            flat = flat + between(at, min=0, max=size - 1).cast(dtypes.int64) * stride
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
        "border": lambda at, size: between(at, min=0, max=size - 1),
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
        at = between(at, min=0, max=x.shape[2 + k] - 1)
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


@dataclass(frozen=True, slots=True)
class Resizing:
    """The attributes of Resize that say how an axis is resampled."""

    antialias: int = 0
    coordinate_transformation_mode: str = "half_pixel"
    cubic_coeff_a: float = -0.75
    exclude_outside: int = 0
    extrapolation_value: float = 0.0
    mode: str = "nearest"
    nearest_mode: str = "round_prefer_floor"

    def coordinates(self, n: int, out: int, scale: float, roi: tuple[float, float]) -> Array:
        """Where the elements of the result lie among the n elements of an axis."""
        x = counted(out).astype(np.float64)
        width = scale * n
        match self.coordinate_transformation_mode:
            case "half_pixel":
                return (x + 0.5) / scale - 0.5
            case "pytorch_half_pixel":
                return (x + 0.5) / scale - 0.5 if width != 1 else x - 0.5
            case "half_pixel_symmetric":
                return n / 2 * (1 - out / width) + (x + 0.5) / scale - 0.5
            case "asymmetric":
                return x / scale
            case "align_corners":
                return x * (n - 1) / (width - 1) if width != 1 else x * 0
            case "tf_crop_and_resize":
                start, end = (edge * (n - 1) for edge in roi)
                return start + x * (end - start) / (out - 1) if out > 1 else x + (start + end) / 2
        raise UnsupportedError(f"coordinates {self.coordinate_transformation_mode!r}")

    def nearest(self, x: Array) -> Array:
        match self.nearest_mode:
            case "round_prefer_floor":
                return np.ceil(x - 0.5)
            case "round_prefer_ceil":
                return np.floor(x + 0.5)
            case "floor":
                return np.floor(x)
            case "ceil":
                return np.ceil(x)
        raise UnsupportedError(f"nearest_mode {self.nearest_mode!r}")

    def kernel(self, distance: Array) -> Array:
        """The weights of elements by their distance."""
        d: Array = np.abs(distance)
        if self.mode == "linear":
            linear: Array = np.maximum(1 - d, 0)
            return linear
        a = self.cubic_coeff_a
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = a * (((d - 5) * d + 8) * d - 4)
        return np.where(d <= 1, near, np.where(d < 2, far, 0))

    def taps(self, x: Array, n: int, scale: float) -> tuple[Array, Array]:
        """For each coordinate the positions of some elements, and their weights."""
        stretch = min(scale, 1) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / stretch
        count = int(np.ceil(reach))
        at = np.floor(x)[:, None] + np.arange(-count, count + 2)
        weights = self.kernel((at - x[:, None]) * stretch)
        if self.exclude_outside:
            weights = weights * ((at >= 0) & (at < n))
        if self.exclude_outside or self.antialias:
            weights = weights / weights.sum(-1, keepdims=True)
        used = weights.any(0)
        return np.clip(at, 0, n - 1).astype(np.int64)[:, used], weights[:, used]


def resampled(x: Tensor, axis: int, how: Resizing, at: Array, scale: float) -> Tensor:
    """x at these coordinates of an axis."""
    n = x.shape[axis]
    if how.mode == "nearest":
        return picked(x, axis, np.clip(how.nearest(at), 0, n - 1).astype(np.int64))
    places, weights = how.taps(at, n, scale)

    def apply(x: Tensor) -> Tensor:
        columns = weights.astype(np_dtype(x.dtype))
        parts = (
            picked(x, axis, places[:, k]) * along(constant(columns[:, k]), axis, x.ndim)
            for k in range(places.shape[1])
        )
        return reduce(add, parts)

    return in_float32(apply, x)


@rule("Resize", since=11, known=(1, 2, 3), about=Resizing)
def resize(
    x: Tensor,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    about: Resizing,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Tensor:
    chosen = axes_of(axes, x.ndim)
    lengths = [x.shape[axis] for axis in chosen]
    regions = [(0.0, 1.0)] * len(chosen)
    if about.coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None:
        half = len(chosen)
        regions = [(float(a), float(b)) for a, b in zip(roi[:half], roi[half:], strict=True)]
    if sizes is not None:
        factors, outs = _of_sizes(lengths, ints(sizes), keep_aspect_ratio_policy)
    else:
        factors = [] if scales is None else [float(scale) for scale in scales]
        outs = [
            int(n * (end - start) * scale)
            for n, (start, end), scale in zip(lengths, regions, factors, strict=True)
        ]
    outside = []
    for axis, out, scale, region in zip(chosen, outs, factors, regions, strict=True):
        n = x.shape[axis]
        at = about.coordinates(n, out, scale, region)
        if out != n or scale != 1 or region != (0, 1):
            x = resampled(x, axis, about, at, scale)
        beyond = (at < 0) | (at > n - 1)
        if about.coordinate_transformation_mode == "tf_crop_and_resize" and beyond.any():
            outside.append(along(constant(beyond), axis, x.ndim))
    if not outside:
        return x
    return reduce(or_, outside).where(full((), about.extrapolation_value, x.dtype), x)


def _of_sizes(
    lengths: Sequence[int], wanted: list[int], policy: str
) -> tuple[list[float], list[int]]:
    """The scales and sizes of axes; unless it may stretch, one scale for all."""
    factors = [out / n for out, n in zip(wanted, lengths, strict=True)]
    if policy == "stretch":
        return factors, wanted
    scale = min(factors) if policy == "not_larger" else max(factors)
    return [scale] * len(factors), [int(np.floor(n * scale + 0.5)) for n in lengths]


@rule("Resize", "Upsample", since=9, known=(1,))
def resize_by_scales(x: Tensor, scales: Array, *, mode: str = "nearest") -> Tensor:
    how = Resizing(mode=mode, coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return resize(x, None, scales, about=how)
