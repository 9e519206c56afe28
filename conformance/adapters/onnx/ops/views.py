"""Steps that several rules share: axes, joins, picks by positions, windows and their pads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uop.conformance.adapters.onnx.rules import constant, counted
from uop.conformance.adapters.tensors import along, moved, padded, shrunk, stacked
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


def joined(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """The Tensors one behind the other along an axis: each stands alone where the others are 0."""
    tensors = [t for t in tensors if t.shape[axis]] or tensors[:1]
    if len(tensors) == 1:
        return tensors[0]
    if all(t.shape[axis] == 1 for t in tensors):
        return stacked(tensors, axis)
    sizes = [t.shape[axis] for t in tensors]
    result, end = tensors[-1], sum(sizes)
    result = padded(result, axis, end - sizes[-1], 0)
    for k in reversed(range(len(tensors) - 1)):
        start = sum(sizes[:k])
        here = padded(tensors[k], axis, start, end - start - sizes[k])
        result = (positions(result, axis) < start + sizes[k]).where(here, result)
    return result


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
    columns = moved(x, axis, x.ndim - 1)
    *rest, n = columns.shape
    span = n - (size - 1) * dilation
    if span < 1:
        raise MalformedError(f"a window of {n - span + 1} elements: expected at most {n}")
    row = n + dilation
    copies = -(-size * row // n)
    flat = columns.reshape(*rest, 1, n).expand(*rest, copies, n).reshape(*rest, copies * n)
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


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the windows of each spatial axis lie."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    beyond: tuple[int, ...]
    """What a last window may need behind the pads, where the number of windows is rounded up."""


@dataclass(frozen=True, slots=True)
class Spatial:
    """The attributes that convolutions and pools share."""

    auto_pad: str = "NOTSET"
    ceil_mode: int = 0
    dilations: Sequence[int] | None = None
    kernel_shape: Sequence[int] | None = None
    pads: Sequence[int] | None = None
    strides: Sequence[int] | None = None

    def steps(self, rank: int) -> list[int]:
        return [*(self.strides or [1] * rank)]

    def gaps(self, rank: int) -> list[int]:
        return [*(self.dilations or [1] * rank)]

    def sides(self, rank: int) -> tuple[list[int], list[int]]:
        """The explicit pads before and after each axis."""
        both = [*(self.pads or [0] * (2 * rank))]
        return both[:rank], both[rank:]

    def cut(self, totals: Sequence[int]) -> tuple[list[int], list[int]]:
        """Totals of pads in two parts: before and after."""
        less = [total // 2 for total in totals]
        more = [total - half for total, half in zip(totals, less, strict=True)]
        return (less, more) if self.auto_pad == "SAME_UPPER" else (more, less)

    def frame(self, lengths: Sequence[int], kernel: Sequence[int] | None = None) -> Frame:
        """The windows over axes of these lengths."""
        sizes = kernel or self.kernel_shape
        if sizes is None:
            raise MalformedError("expected the attribute kernel_shape")
        rank = len(sizes)
        steps, gaps = self.steps(rank), self.gaps(rank)
        spans = [(k - 1) * d + 1 for k, d in zip(sizes, gaps, strict=True)]
        before, after = self.sides(rank)
        if self.auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
            raise MalformedError(f"auto_pad {self.auto_pad!r}")
        if self.auto_pad == "VALID":
            before, after = [0] * rank, [0] * rank
        elif self.auto_pad != "NOTSET":
            totals = [
                max((-(-n // step) - 1) * step + span - n, 0)
                for n, step, span in zip(lengths, steps, spans, strict=True)
            ]
            before, after = self.cut(totals)
        beyond = [0] * rank
        if self.ceil_mode:
            beyond = [
                _beyond(n, b, a, span, step)
                for n, b, a, span, step in zip(lengths, before, after, spans, steps, strict=True)
            ]
        return Frame(*map(tuple, (sizes, steps, gaps, before, after, beyond)))


def _beyond(n: int, before: int, after: int, span: int, step: int) -> int:
    """What a last window needs that begins inside, but does not end there."""
    rest = n + before + after - span
    count = -(-rest // step) + 1
    if (count - 1) * step >= n + before:
        count -= 1
    return max((count - 1) * step - rest, 0)


def with_pads(x: Tensor, frame: Frame, fill: PadFill) -> Tensor:
    """x with the pads of its axes; negative ones cut."""
    ends = [a + b for a, b in zip(frame.after, frame.beyond, strict=True)]
    sides = [(0, 0), (0, 0), *zip(frame.before, ends, strict=True)]
    cut = [
        (max(-before, 0), n - max(-after, 0))
        for n, (before, after) in zip(x.shape, sides, strict=True)
    ]
    x = x.shrink(*cut)
    return x.pad(*((max(before, 0), max(after, 0)) for before, after in sides), fill=fill)
