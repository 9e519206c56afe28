"""Windows over the spatial axes of convolutions and pools: sizes, steps and pads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uop.spec.args import PadFill
from uop.spec.errors import MalformedError
from uop.spec.frontend.tensor import Tensor


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
