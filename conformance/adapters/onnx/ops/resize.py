"""The rules of resizing: each axis by itself, as a weighted sum of elements near a coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, or_

import numpy as np

from uop.conformance.adapters.onnx.ops.views import axes_of, ints, picked
from uop.conformance.adapters.onnx.rules import constant, counted, rule
from uop.conformance.adapters.tensors import along, in_float32
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.functions import full
from uop.spec.frontend.tensor import Tensor


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
