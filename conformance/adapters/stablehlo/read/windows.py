"""The rules of ops that multiply and sum, or fold windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uop.conformance.adapters.stablehlo.read.movement import padded
from uop.conformance.adapters.stablehlo.read.rules import Call, combined, constant, rule, taken
from uop.spec.dtype import dtypes
from uop.spec.frontend.tensor import Tensor


@rule("dot_general")
def dot_general(call: Call) -> Tensor:
    dims = call.library.stablehlo.DotDimensionNumbers(call.op.attributes["dot_dimension_numbers"])
    return product(
        call,
        (dims.lhs_batching_dimensions, dims.rhs_batching_dimensions),
        (dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions),
    )


@rule("dot")
def dot(call: Call) -> Tensor:
    """The last axis of the left operand, and the first of the right one, are summed over."""
    return product(call, ([], []), ([call.inputs[0].ndim - 1], [0]))


Axes = tuple[Sequence[int], Sequence[int]]


def product(call: Call, batch: Axes, summed: Axes) -> Tensor:
    """The axes of the result are those of `batch`, then those left of a, then those left of b."""
    a, b = (x.cast(call.dtype) for x in call.inputs)
    first, second = _free(a, batch[0], summed[0]), _free(b, batch[1], summed[1])
    a = a.permute(*batch[0], *first, *summed[0])
    b = b.permute(*batch[1], *second, *summed[1])
    shared, count = len(batch[0]), len(summed[0])
    inner = a.shape[a.ndim - count :]
    a = a.reshape(*a.shape[: a.ndim - count], *[1] * len(second), *inner)
    b = b.reshape(*b.shape[:shared], *[1] * len(first), *b.shape[shared:])
    terms = a * b
    return terms.sum([*range(terms.ndim - count, terms.ndim)]) if count else terms


def _free(x: Tensor, *taken: Sequence[int]) -> list[int]:
    return [k for k in range(x.ndim) if not any(k in axes for axes in taken)]


def windows(
    x: Tensor,
    axes: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Tensor:
    """The windows along some axes: each of these gets as long as there are windows, and behind all
    axes comes one for the elements of a window.
    """
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations, strict=True):
        count = max((x.shape[axis] - dilation * (size - 1) - 1) // stride + 1, 0)
        at = np.arange(count)[:, None] * stride + np.arange(size) * dilation
        seen = taken(x, axis, constant(at.reshape(-1), dtypes.int64))
        seen = seen.reshape(*x.shape[:axis], count, size, *x.shape[axis + 1 :])
        x = seen.permute(*(k for k in range(seen.ndim) if k != axis + 1), axis + 1)
    return x


@rule("reduce_window")
def reduce_window(call: Call) -> Tensor:
    op = call.fold()
    x, init = call.inputs
    rank = x.ndim
    ones = [1] * rank
    interior = [n - 1 for n in call.ints("base_dilations", ones)]
    wide = padded(x, call.pairs("padding", rank), interior, init)
    sizes, strides = call.ints("window_dimensions"), call.ints("window_strides", ones)
    seen = windows(wide, range(rank), sizes, strides, call.ints("window_dilations", ones))
    folded = seen.reduce(op, [*range(rank, 2 * rank)]) if rank else seen
    return combined(op, folded.reshape(call.shape), init)


@rule("convolution")
def convolution(call: Call) -> Tensor:
    """(N, groups, 1, C, out..., k...) times (groups, O, C, 1..., k...), summed over C and k."""
    has = call.library.stablehlo.ConvDimensionNumbers(call.op.attributes["dimension_numbers"])
    x, kernel = (t.cast(call.dtype) for t in call.inputs)
    x = x.permute(
        has.input_batch_dimension, has.input_feature_dimension, *has.input_spatial_dimensions
    )
    kernel = kernel.permute(
        has.kernel_output_feature_dimension,
        has.kernel_input_feature_dimension,
        *has.kernel_spatial_dimensions,
    )
    rank = x.ndim - 2
    ones = [1] * rank
    flipped = [k + 2 for k, flag in enumerate(call.flags("window_reversal", rank)) if flag]
    kernel = kernel.flip(flipped) if flipped else kernel
    groups = call.number("feature_group_count", 1)
    parts = call.number("batch_group_count", 1)
    if parts > 1:
        # Part k of the batch meets part k of the outputs alone, as a group of features does.
        n, c, *space = x.shape
        x = x.reshape(parts, n // parts, c, *space).permute(1, 0, 2, *range(3, rank + 3))
        x, groups = x.reshape(n // parts, parts * c, *space), parts
    edges = [(0, 0), (0, 0), *call.pairs("padding", rank)]
    interior = [0, 0, *(n - 1 for n in call.ints("lhs_dilation", ones))]
    x = padded(x, edges, interior, Tensor(0, call.dtype))
    o, c, *sizes = kernel.shape
    strides, dilations = call.ints("window_strides", ones), call.ints("rhs_dilation", ones)
    seen = windows(x, range(2, rank + 2), sizes, strides, dilations)
    n, out = seen.shape[0], seen.shape[2 : rank + 2]
    seen = seen.reshape(n, groups, 1, c, *out, *sizes)
    weights = kernel.reshape(groups, o // groups, c, *ones, *sizes)
    total = (seen * weights).sum([3, *range(4 + rank, 4 + 2 * rank)]).reshape(n, o, *out)
    target = [
        has.output_batch_dimension,
        has.output_feature_dimension,
        *has.output_spatial_dimensions,
    ]
    return total.permute([target.index(k) for k in range(total.ndim)])
