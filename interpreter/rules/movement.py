"""Define the meaning of the movement ops on numpy arrays; masks move by the same rules as data."""

from __future__ import annotations

from collections.abc import Iterable
from types import EllipsisType
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.numeric.conversions import bitcast
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.rules.table import evaluates
from uop.spec.args import FlipArg, PermuteArg, ReplicatedArg, SliceArg, arg_of
from uop.spec.conditions.clauses import undefined
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op
from uop.spec.properties.shape import index_value, index_values

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def value_sources(u: UOp) -> tuple[UOp, ...]:
    """Return the operands that an op combines.

    An AFTER combines only its first one: the others have run before.
    """
    return u.src[:1] if u.op is Op.AFTER else u.data_src


@evaluates(Op.PERMUTE)
def permute(u: UOp, t: Array) -> Array:
    return t.transpose(arg_of(u, PermuteArg).order)


@evaluates(Op.FLIP)
def flip(u: UOp, t: Array) -> Array:
    return _windowed(t, (slice(None, None, -1 if f else 1) for f in arg_of(u, FlipArg).flags))


@evaluates(Op.RESHAPE)
def reshape(u: UOp, t: Array) -> Array:
    return t.reshape(u.shape)


@evaluates(Op.EXPAND)
def expand(u: UOp, t: Array) -> Array:
    return np.broadcast_to(t, u.shape)


@evaluates(Op.PAD)
def pad(u: UOp, t: Array) -> Array:
    """Return T surrounded by zeros; `outside_pad` says where the zeros are."""
    padded = np.zeros(u.shape, t.dtype)
    padded[_window(u)] = t
    return padded


def outside_pad(u: UOp) -> Mask:
    """Return where a PAD holds no element of T."""
    outside = np.ones(u.shape, np.bool_)
    outside[_window(u)] = False
    return outside


@evaluates(Op.SHRINK)
def shrink(u: UOp, t: Array) -> Array:
    starts = zip(index_values(u.src[1]), u.shape, strict=True)
    return _windowed(t, (slice(o, o + size) for o, size in starts))


def _windowed(t: Array, window: Iterable[slice]) -> Array:
    """Return a view of an array.

    The ellipsis keeps a ()-shaped array an array: an empty index would give a scalar.
    """
    parts: tuple[EllipsisType | slice, ...] = (..., *window)
    return t[parts]


@evaluates(Op.STACK)
def stack(u: UOp, *operands: Array) -> Array:
    if not operands:
        return np.zeros(0, np.int64)
    return np.stack(operands)


@evaluates(Op.REPLICATED)
def replicated(u: UOp, t: Array) -> Array:
    """Return the first copy; `tensor.masks.replicated` checks that the copies are equal."""
    axes = arg_of(u, ReplicatedArg).axes
    return t[tuple(slice(0, 1) if a in axes else slice(None) for a in range(t.ndim))]


@evaluates(Op.SLICE)
def slice_(u: UOp, t: Array) -> Array:
    """Return elements made of the bytes of T in row-major order, starting at element
    `offset` of T.
    """
    start, arg = index_value(u.src[1]), arg_of(u, SliceArg)
    if arg.dtype == u.src[0].dtype:
        return t.reshape(-1)[start : start + arg.size]
    raw = np.ascontiguousarray(t).reshape(-1).view(np.uint8)
    return bitcast(raw[slice_bytes(u)], arg.dtype)


def slice_bytes(u: UOp) -> slice:
    """Return the range of the bytes of T that a SLICE shows."""
    start, arg = index_value(u.src[1]) * u.src[0].dtype.itemsize, arg_of(u, SliceArg)
    return slice(start, start + arg.size * arg.dtype.itemsize)


@evaluates(Op.INDEX)
def index(u: UOp, t: Array, *indices: Array) -> Array:
    """Select elements by one index per leading axis; `checked_index` has checked the bounds."""
    for axis in reversed(range(len(indices))):
        t = t.take(indices[axis], axis=axis)
    return t


def checked_index(u: UOp, axis: int, data: Array, invalid: Mask | None) -> Array:
    """Return the positions along one axis, with 0 in place of INVALID ones.

    Raises UndefinedError for a position out of bounds.
    """
    if error := index_error(u, axis, data, outside_axis(u, axis, data, invalid)):
        raise error
    return (data if invalid is None else np.where(invalid, 0, data)).astype(np.intp)


def outside_axis(u: UOp, axis: int, data: Array, invalid: Mask | None) -> Mask:
    """Return where an index is out of the bounds of its axis, and not INVALID."""
    bad: Mask = (data < 0) | (data >= u.src[0].shape[axis])
    return bad if invalid is None else bad & ~invalid


def index_error(u: UOp, axis: int, data: Array, bad: Mask) -> UndefinedError | None:
    """Return the error that names the first bad element of an index; None if all are good."""
    if not bad.any():
        return None
    position = tuple(map(int, np.argwhere(bad)[0]))
    element = f", element {position} of the index" if position else ""
    size = u.src[0].shape[axis]
    found = f"{int(np.asarray(data)[position])} on axis {axis} of size {size}{element}"
    return undefined("INDEX.u1", found)


def _window(u: UOp) -> tuple[slice, ...]:
    offsets = index_values(u.src[1])
    return tuple(slice(o, o + s) for o, s in zip(offsets, u.src[0].shape, strict=True))
