"""The rules of folds: sums, extremes, their positions, running sums, and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from uop.conformance.adapters.onnx.ops.views import axes_of, axis_of, positions
from uop.conformance.adapters.onnx.rules import constant, count_of, counted, rule
from uop.conformance.adapters.tensors import along, in_float32, moved
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import dtypes
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op

Fold = Callable[[Tensor, list[int]], Tensor]
"""Folds axes to size 1."""


def _sum(x: Tensor, axes: list[int]) -> Tensor:
    return x.reduce(Op.ADD, axes)


def _mean(x: Tensor, axes: list[int]) -> Tensor:
    total = _sum(x, axes)
    return total / (x.size // max(total.size, 1))


def _log_sum_exp(x: Tensor, axes: list[int]) -> Tensor:
    top = x.reduce(Op.MAX, axes)
    finite = (abs(top) < float("inf")).where(top, 0)
    return _sum((x - finite).exp(), axes).log() + finite


FOLDS: dict[str, Fold] = {
    "ReduceSum": _sum,
    "ReduceProd": lambda x, axes: x.reduce(Op.MUL, axes),
    "ReduceMax": lambda x, axes: x.reduce(Op.MAX, axes),
    "ReduceMin": lambda x, axes: x.reduce(Op.MIN, axes),
    "ReduceMean": _mean,
    "ReduceL1": lambda x, axes: _sum(abs(x), axes),
    "ReduceL2": lambda x, axes: _sum(x * x, axes).sqrt(),
    "ReduceSumSquare": lambda x, axes: _sum(x * x, axes),
    "ReduceLogSum": lambda x, axes: _sum(x, axes).log(),
    "ReduceLogSumExp": _log_sum_exp,
}


def by_attribute(
    fold: Fold, x: Tensor, *, axes: Sequence[int] | None = None, keepdims: int = 1
) -> Tensor:
    return folded(x, axes_of(axes, x.ndim), keepdims, fold)


def by_input(
    fold: Fold,
    x: Tensor,
    axes: Array | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Tensor:
    if axes is None or not axes.size:
        chosen = [] if noop_with_empty_axes else [*range(x.ndim)]
    else:
        chosen = axes_of(axes, x.ndim)
    return folded(x, chosen, keepdims, fold)


for name, fold in FOLDS.items():
    rule(name)(partial(by_attribute, fold))
    # From this version on the axes are an input.
    since = 13 if name == "ReduceSum" else 18
    rule(name, since=since, known=(1,))(partial(by_input, fold))


def folded(x: Tensor, axes: list[int], keepdims: int, fold: Fold) -> Tensor:
    result = in_float32(lambda wide: fold(wide, axes), x)
    return result if keepdims else dropped(result, axes)


def dropped(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Drop axes of size 1."""
    return x.reshape([n for k, n in enumerate(x.shape) if k not in axes])


def place_of(
    op: Op, x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> Tensor:
    """The first or last position along an axis of its extreme, as int64."""
    at = axis_of(axis, x.ndim)
    found = x == x.reduce(op, at)
    chosen, none = (Op.MAX, -1) if select_last_index else (Op.MIN, x.shape[at])
    result = found.where(positions(x, at), full((), none, dtypes.int64)).reduce(chosen, at)
    return result if keepdims else dropped(result, [at])


rule("ArgMax")(partial(place_of, Op.MAX))
rule("ArgMin")(partial(place_of, Op.MIN))


def running(
    op: Op, identity: int, x: Tensor, axis: Array, *, exclusive: int = 0, reverse: int = 0
) -> Tensor:
    """The folds of the first 1, 2, ... elements along an axis, over a square of its elements."""
    at = axis_of(int(axis.reshape(())), x.ndim)
    size = x.shape[at]
    count_of(size * size)
    here, there = counted(size)[:, None], counted(size)
    taken = there > here if reverse else there < here
    if not exclusive:
        taken = taken | (there == here)
    columns = moved(x, at, x.ndim - 1)
    square = constant(taken).where(columns.reshape(*columns.shape[:-1], 1, size), identity)
    folds = dropped(square.reduce(op, square.ndim - 1), [square.ndim - 1])
    return moved(folds, x.ndim - 1, at)


rule("CumSum", known=(1,))(partial(running, Op.ADD, 0))
rule("CumProd", known=(1,))(partial(running, Op.MUL, 1))


@rule("TopK", since=10, known=(1,))
def top(
    x: Tensor, count: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> list[Tensor]:
    """Each element counts those before it in the order; the one with rank k is the k-th."""
    at, number = axis_of(axis, x.ndim), int(count.reshape(()))
    size = x.shape[at]
    rows = moved(x, at, x.ndim - 1)
    one, other = rows.reshape(*rows.shape, 1), rows.reshape(*rows.shape[:-1], 1, size)
    first = constant(np.tri(size, k=-1, dtype=np.bool_))
    before = other > one if largest else other < one
    before = before | ((other == one) & first)
    rank = before.cast(dtypes.int64).sum(-1)
    hit = rank.reshape(*rank.shape[:-1], 1, size) == along(
        constant(counted(number)), rank.ndim - 1, rank.ndim
    ).reshape(*[1] * (rank.ndim - 1), number, 1)
    places = hit.where(constant(counted(size)), full((), 0, dtypes.int64)).sum(-1)
    values = hit.where(other, full((), 0, x.dtype)).sum(-1)
    return [moved(values, x.ndim - 1, at), moved(places, x.ndim - 1, at)]


@rule("Softmax", since=13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """Each step is rounded to the dtype, as those that ONNX composes it of."""
    at = axis_of(axis, x.ndim)
    e = in_float32(Tensor.exp, x - x.reduce(Op.MAX, at))
    return e / folded(e, [at], 1, _sum)


@rule("LogSoftmax", since=13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    at = axis_of(axis, x.ndim)
    return in_float32(lambda wide: wide - _log_sum_exp(wide, [at]), x)


@rule("Hardmax", since=13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    at = axis_of(axis, x.ndim)
    return (positions(x, at) == place_of(Op.MAX, x, axis=at)).cast(x.dtype)


def of_rows(apply: Callable[..., Tensor], x: Tensor, *, axis: int = 1) -> Tensor:
    """Before version 13 these were over all axes from one on."""
    cut = axis_of(axis, x.ndim)
    rows = x.reshape(math.prod(x.shape[:cut]), math.prod(x.shape[cut:]))
    return apply(rows, axis=1).reshape(x.shape)


for name, apply in (("Softmax", softmax), ("LogSoftmax", log_softmax), ("Hardmax", hardmax)):
    rule(name)(partial(of_rows, apply))


@rule("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """x divided by its norm; where that is 0, x is."""
    norm = _sum(abs(x), [axis]) if p == 1 else _sum(x * x, [axis]).sqrt()
    return (norm == 0).where(full((), 0, x.dtype), x / norm)
