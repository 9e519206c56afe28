"""The rules of ops that move elements, multiply and sum, or fold windows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from uop.conformance.adapters.stablehlo.read.rules import (
    Call,
    combined,
    constant,
    full,
    positions,
    rule,
    taken,
)
from uop.conformance.adapters.tensors import along, moved, padded, stacked, with_gaps
from uop.spec.args import ConstArg, PadFill
from uop.spec.dtype import dtypes
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op

MOST_INT64 = (1 << 63) - 1
Axes = tuple[Sequence[int], Sequence[int]]


@rule("broadcast_in_dim")
def broadcast_in_dim(call: Call) -> Tensor:
    """Axis k of the operand becomes axis dims[k] of the result."""
    x, dims, shape = call.inputs[0], call.ints("broadcast_dimensions"), call.shape
    order = sorted(range(len(dims)), key=dims.__getitem__)
    sizes = dict(zip(dims, x.shape, strict=True))
    wide = x.permute(order).reshape([sizes.get(k, 1) for k in range(len(shape))])
    return wide.expand(shape)


rule("reshape")(lambda call: call.inputs[0].reshape(call.shape))
rule("transpose")(lambda call: call.inputs[0].permute(call.ints("permutation")))
rule("reverse")(lambda call: call.inputs[0].flip(call.ints("dimensions")))


@rule("slice")
def slice_(call: Call) -> Tensor:
    x, starts, stops = call.inputs[0], call.ints("start_indices"), call.ints("limit_indices")
    keys = tuple(map(slice, starts, stops, call.ints("strides")))
    return x[keys] if keys else x


@rule("pad")
def pad(call: Call) -> Tensor:
    low, high = call.ints("edge_padding_low"), call.ints("edge_padding_high")
    x, value = call.inputs
    return filled_by(x, [*zip(low, high, strict=True)], call.ints("interior_padding"), value)


def filled_by(
    x: Tensor, edges: Sequence[tuple[int, int]], interior: Sequence[int], value: Tensor
) -> Tensor:
    """Elements between those along each axis, then more, or less, before and after."""
    zero = ConstArg(0, value.dtype)
    wide = _with_zeros(x, edges, interior)
    if wide is x or (value.uop.op is Op.CONST and value.uop.arg == zero):
        return wide
    inside = _with_zeros(full(Tensor(True), x.shape), edges, interior)
    return inside.where(wide, value)


def _with_zeros(x: Tensor, edges: Sequence[tuple[int, int]], interior: Sequence[int]) -> Tensor:
    x = with_gaps(x, interior)
    added = [(max(low, 0), max(high, 0)) for low, high in edges]
    if any(map(any, added)):
        x = x.pad(*added, fill=PadFill.ZERO)
    if any(low < 0 or high < 0 for low, high in edges):
        cut = zip(edges, x.shape, strict=True)
        x = x.shrink(*((max(-low, 0), n - max(-high, 0)) for (low, high), n in cut))
    return x


@rule("concatenate")
def concatenate(call: Call) -> Tensor:
    """A STACK of equal shapes; of others each one where it begins, in front of what follows."""
    axis, first = call.number("dimension"), call.inputs[0]
    if all(x.shape == first.shape for x in call.inputs):
        return stacked(call.inputs, axis)
    total, rank = call.shape[axis], first.ndim
    at = along(positions(total), axis, rank)
    result, start = None, 0
    for x in call.inputs:
        n = x.shape[axis]
        wide = padded(x, axis, start, total - start - n)
        result = wide if result is None else (at < start).where(result, wide)
        start += n
    assert result is not None
    return result


@rule("reduce")
def reduce(call: Call) -> Tensor:
    op, axes = call.fold(), call.ints("dimensions")
    x, init = call.inputs
    folded = x.cast(call.dtype).reduce(op, axes) if axes else x
    return combined(op, folded.reshape(call.shape), init.cast(call.dtype))


def start_of(start: Tensor, last: int) -> Tensor:
    """An index from 0 to `last`, as int64; one outside is moved to the nearest."""
    if start.dtype is dtypes.uint64:
        start = Tensor.of(Op.MIN, start, Tensor(MOST_INT64, dtypes.uint64))
    return Tensor.of(Op.MIN, start.cast(dtypes.int64).maximum(0), Tensor(last, dtypes.int64))


@rule("dynamic_slice")
def dynamic_slice(call: Call) -> Tensor:
    x, *starts = call.inputs
    for axis, (start, size) in enumerate(zip(starts, call.ints("slice_sizes"), strict=True)):
        if size != x.shape[axis]:
            x = taken(x, axis, start_of(start, x.shape[axis] - size) + positions(size))
    return x


@rule("dynamic_update_slice")
def dynamic_update_slice(call: Call) -> Tensor:
    """The operand, but where a position lies in the window the element of the update there."""
    x, update, *starts = call.inputs
    if not update.size:
        return x
    inside = Tensor(True)
    for axis, start in enumerate(starts):
        n, size = x.shape[axis], update.shape[axis]
        at = positions(n) - start_of(start, n - size)
        inside = inside & along((at >= 0) & (at < size), axis, x.ndim)
        update = taken(update, axis, start_of(at, size - 1))
    return inside.where(update, x)


@rule("gather")
def gather(call: Call) -> Tensor:
    """Each element of the result has a place in the operand in row-major order."""
    x, starts = call.inputs
    has = call.library.stablehlo.GatherDimensionNumbers(call.op.attributes["dimension_numbers"])
    sizes, vector = call.ints("slice_sizes"), has.index_vector_dim
    if vector == starts.ndim:
        starts = starts.reshape(*starts.shape, 1)
    order = [k for k in range(starts.ndim) if k != vector]
    starts = starts.permute(*order, vector)
    *batch, _ = starts.shape
    strides = [prod(x.shape[k + 1 :]) for k in range(x.ndim)]
    place = full(Tensor(0, dtypes.int64), batch)
    for column, axis in enumerate(has.start_index_map):
        start = starts.shrink(*((0, n) for n in batch), (column, column + 1)).reshape(batch)
        place = place + start_of(start, x.shape[axis] - sizes[axis]) * strides[axis]
    pairs = zip(has.operand_batching_dims, has.start_indices_batching_dims, strict=True)
    for axis, of in pairs:
        at = positions(x.shape[axis]) * strides[axis]
        place = place + along(at, order.index(of), len(batch))
    gone = {*has.collapsed_slice_dims, *has.operand_batching_dims}
    kept = [k for k in range(x.ndim) if k not in gone]
    inner = np.zeros([sizes[k] for k in kept], np.int64)
    for k, axis in enumerate(kept):
        shape = [-1 if j == k else 1 for j in range(len(kept))]
        inner = inner + (np.arange(sizes[axis]) * strides[axis]).reshape(shape)
    places = place.reshape(*batch, *[1] * len(kept)) + constant(inner, dtypes.int64)
    found = x.reshape(x.size)[places.reshape(places.size)].reshape(places.shape)
    offsets = [*has.offset_dims]
    rest = [k for k in range(found.ndim) if k not in offsets]
    target = [*rest, *offsets]
    return found.permute([target.index(k) for k in range(found.ndim)])


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
        x = moved(seen, axis + 1, seen.ndim - 1)
    return x


@rule("reduce_window")
def reduce_window(call: Call) -> Tensor:
    op = call.fold()
    x, init = call.inputs
    rank = x.ndim
    ones = [1] * rank
    interior = [n - 1 for n in call.ints("base_dilations", ones)]
    wide = filled_by(x, call.pairs("padding", rank), interior, init)
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
    flipped = [k + 2 for k, flag in enumerate(call.ints("window_reversal")) if flag]
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
    x = filled_by(x, edges, interior, Tensor(0, call.dtype))
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
