"""Propagate INVALID, UNSPECIFIED and open NaN elements through the ops of tensor graphs.

Each function computes one class of ops on `Value`s: the data by the rule of the op, and the masks.
An element that is both is INVALID.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from uop.interpreter.numeric.conversions import bitcast_unspecified
from uop.interpreter.numeric.storage import Array, Mask, np_dtype, parts, to_bits
from uop.interpreter.rules.movement import checked_index, outside_pad, slice_bytes
from uop.interpreter.rules.reduce import identity, neutral
from uop.interpreter.rules.table import RULES, UNSPECIFIED
from uop.interpreter.values import Value, either, together
from uop.spec.args import PadArg, PadFill, ReduceArg, ReplicatedArg, arg_of
from uop.spec.conditions.clauses import undefined
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def _where(p: Array, a: Mask | None, b: Mask | None) -> Mask | None:
    if a is None and b is None:
        return None
    return np.where(p, False if a is None else a, False if b is None else b)


def _spread(mask: Mask | None, shape: tuple[int, ...], hidden: Mask | None = None) -> Mask | None:
    """Broadcast a mask without its `hidden` elements to a node's shape; None if set nowhere."""
    if mask is None:
        return None
    shown = mask if hidden is None else mask & ~hidden
    if not np.count_nonzero(shown):
        return None
    return shown if shown.shape == shape else np.broadcast_to(shown, shape)


def elementwise(u: UOp, *operands: Value) -> Value:
    """Compute an elementwise op: an element is INVALID or UNSPECIFIED where any operand element is.

    WHERE depends on its condition and on the selected branch only.
    """
    if u.op is Op.WHERE:
        return where(u, *operands)
    arrays = [v.data for v in operands]
    data = _computed(u, arrays)
    if u.op is Op.CAST and u.dtype == u.src[0].dtype:
        free_nan = operands[0].free_nan
    else:
        free_nan = made_nan(u, data)
    opens = UNSPECIFIED.get(u.op)
    if opens is None and all(map(_is_plain, operands)):
        return Value(data, free_nan=free_nan)
    invalid = _spread(either(*[v.invalid for v in operands]), data.shape)
    unspecified = either(*[v.unspecified for v in operands])
    if opens is not None:
        unspecified = either(unspecified, opens(u, *arrays))
    return Value(data, invalid, _spread(unspecified, data.shape, invalid), free_nan)


def _computed(u: UOp, arrays: Sequence[Array]) -> Array:
    """The elements by the rule of an op, part by part."""
    rule = RULES[u.op]
    cuts = parts(u.shape) if u.op is not Op.BITCAST else iter(())
    first = next(cuts, None)
    if first is None:
        return np.asarray(rule(u, *arrays))
    wide = [np.broadcast_to(a, u.shape) for a in arrays]
    result = np.empty(u.shape, np_dtype(u.dtype))
    for cut in (first, *cuts):
        result[cut] = rule(u, *(a[cut] for a in wide))
    return result


def _is_plain(v: Value) -> bool:
    return v.invalid is None and v.unspecified is None


def made_nan(u: UOp, data: Array) -> Mask | None:
    """Return where arithmetic produced a NaN; None for dtypes that are not floats."""
    if not u.dtype.is_float:
        return None
    nan = np.isnan(data)
    return nan if np.count_nonzero(nan) else None


def where(u: UOp, p: Value, a: Value, b: Value) -> Value:
    chosen = p.data
    data = np.asarray(RULES[Op.WHERE](u, p.data, a.data, b.data))
    invalid = _spread(either(p.invalid, _where(chosen, a.invalid, b.invalid)), data.shape)
    unspecified = either(p.unspecified, _where(chosen, a.unspecified, b.unspecified))
    free_nan = _spread(_where(chosen, a.free_nan, b.free_nan), data.shape)
    return Value(data, invalid, _spread(unspecified, data.shape, invalid), free_nan)


def moved(u: UOp, t: Value) -> Value:
    """Compute PERMUTE, FLIP, RESHAPE, EXPAND, SHRINK or PAD: the masks move as the data does.

    The elements that PAD adds are INVALID if its fill says so.
    """
    rule = RULES[u.op]
    result = t.map(lambda a: rule(u, a))
    if u.op is Op.PAD and arg_of(u, PadArg).fill is PadFill.INVALID:
        invalid = _spread(either(result.invalid, outside_pad(u)), u.shape)
        return replace(result, invalid=invalid)
    return result


def replicated(u: UOp, t: Value) -> Value:
    """Return one of the copies, which must be equal (D-071); NaNs from arithmetic equal any NaN.

    An element is INVALID, or else UNSPECIFIED, if any of its copies is. Raises UndefinedError where
    copies differ.
    """
    axes = arg_of(u, ReplicatedArg).axes
    invalid, unspecified, free_nan = (
        None if mask is None else _any(mask, axes) for mask in t.masks
    )
    first = RULES[Op.REPLICATED](u, t.data)
    equal = to_bits(t.data) == to_bits(first)
    if free_nan is not None:
        equal |= free_nan & (t.data != t.data)
    if unspecified is not None:
        equal |= unspecified
    if t.invalid is not None:
        equal = np.where(_any(t.invalid, axes), t.invalid, equal)
    if not equal.all():
        raise undefined("REPLICATED.u1", _first_other(equal, axes))
    return Value(first, invalid, _spread(unspecified, u.shape, invalid), free_nan)


def _first_other(equal: Mask, axes: tuple[int, ...]) -> str:
    """Name the first element that differs from its copy number 0."""
    position = tuple(map(int, np.argwhere(~equal)[0]))
    first = tuple(0 if axis in axes else at for axis, at in enumerate(position))
    return f"element {position} differs from element {first}, along the axes {axes}"


def open_at(unspecified: Mask, axis: int | None = None) -> str:
    """Name the first UNSPECIFIED element of an index on an axis, or of a gate if `axis` is None."""
    position = tuple(map(int, np.argwhere(unspecified)[0]))
    what = "the gate" if axis is None else f"the index on axis {axis}"
    return f"element {position} of {what} is UNSPECIFIED" if position else f"{what} is UNSPECIFIED"


def slice_(u: UOp, t: Value) -> Value:
    """Compute a SLICE; in another dtype an element takes the masks of all of its bytes."""
    if u.dtype == u.src[0].dtype:
        return t.map(lambda a: RULES[Op.SLICE](u, a))

    def by_bytes(mask: Mask | None) -> Mask | None:
        if mask is None:
            return None
        raw = np.repeat(mask.reshape(-1), u.src[0].dtype.itemsize)[slice_bytes(u)]
        return over_bytes(raw, 1, u.dtype.itemsize)

    invalid = by_bytes(t.invalid)
    raw = np.ascontiguousarray(t.data).reshape(-1).view(np.uint8)[slice_bytes(u)]
    opened = either(by_bytes(either(t.unspecified, t.free_nan)), bitcast_unspecified(raw, u.dtype))
    data = np.asarray(RULES[Op.SLICE](u, t.data))
    return Value(data, invalid, _spread(opened, data.shape, invalid))


def stack(u: UOp, *operands: Value) -> Value:
    return together(operands, lambda parts: RULES[Op.STACK](u, *parts))


def index(u: UOp, t: Value, *indices: Value) -> Value:
    """Compute an INDEX: an INVALID index gives an INVALID element.

    Raises UndefinedError for an UNSPECIFIED index and for one out of bounds.
    """
    positions = []
    absent: Mask | None = None
    for axis, i in enumerate(indices):
        if i.unspecified is not None and i.unspecified.any():
            raise undefined("INDEX.u2", open_at(i.unspecified, axis))
        positions.append(checked_index(u, axis, i.data, i.invalid))
        if i.invalid is not None:
            absent = either(absent, over_result(u, axis, i.invalid))
    if absent is not None and 0 in u.src[0].shape:
        return Value(np.zeros(u.shape, t.data.dtype), np.ones(u.shape, np.bool_))

    def pick(array: Mask | None) -> Mask | None:
        return None if array is None else RULES[Op.INDEX](u, array, *positions)

    invalid = _spread(either(pick(t.invalid), absent), u.shape)
    data = np.asarray(RULES[Op.INDEX](u, t.data, *positions))
    return Value(data, invalid, _spread(pick(t.unspecified), u.shape, invalid), pick(t.free_nan))


def over_result(u: UOp, axis: int, mask: Mask) -> Mask:
    """Broadcast a mask over one index to the result of the INDEX."""
    trailing = len(u.shape) - sum(len(i.shape) for i in u.src[1 : 2 + axis])
    return np.broadcast_to(mask.reshape((*mask.shape, *(1,) * trailing)), u.shape)


def bitcast(u: UOp, t: Value) -> Value:
    """Compute a BITCAST: an element is INVALID or UNSPECIFIED if any of its source bytes is."""
    if u.dtype == u.src[0].dtype:
        return t
    data = np.asarray(RULES[Op.BITCAST](u, t.data))
    old, new = u.src[0].dtype.itemsize, u.dtype.itemsize
    invalid = over_bytes(t.invalid, old, new)
    opened = over_bytes(either(t.unspecified, t.free_nan), old, new)
    unspecified = either(opened, UNSPECIFIED[Op.BITCAST](u, t.data))
    return Value(data, invalid, _spread(unspecified, data.shape, invalid))


def over_bytes(mask: Mask | None, old: int, new: int) -> Mask | None:
    """Return a mask for elements of another size in bytes: set where any of their bytes is."""
    if mask is None or old == new:
        return mask
    *outer, last = mask.shape
    each = np.repeat(mask, old, axis=-1)
    return np.asarray(each.reshape(*outer, last * old // new, new).any(axis=-1))


def reduce(u: UOp, t: Value) -> Value:
    """Compute a REDUCE, which skips INVALID elements; any UNSPECIFIED one spreads to the result."""
    arg = arg_of(u, ReduceArg)
    data = t.data
    if t.invalid is not None:
        data = np.where(t.invalid, neutral(arg.op, u.dtype), data)
    result = np.asarray(RULES[Op.REDUCE](u, data))
    if t.invalid is not None:
        nothing = t.invalid.all(axis=arg.axes, keepdims=True)
        result = np.where(nothing, identity(arg.op, u.dtype), result)
    unspecified = None
    if t.unspecified is not None:
        unspecified = _spread(_any(t.unspecified, arg.axes), u.shape)
    return Value(result, None, unspecified, made_nan(u, result))


def _any(mask: Mask, axes: tuple[int, ...]) -> Mask:
    return np.asarray(mask.any(axis=axes, keepdims=True))


def gate_is_true(gate: Value, op: Op) -> Mask:
    """Return where a gate is true; INVALID counts as false, UNSPECIFIED raises UndefinedError."""
    if gate.unspecified is not None and gate.unspecified.any():
        raise undefined(f"{op.name}.u1", open_at(gate.unspecified))
    data = cast(Mask, gate.data)
    return data if gate.invalid is None else data & ~gate.invalid


def load(u: UOp, buf: Value, *alt_gate: Value) -> Value:
    """Compute a LOAD: a copy, or `alt` where the gate is false.

    An INVALID element of a location is read as `alt`, or as 0 if there is none.
    """
    zero = Value(np.zeros((), buf.data.dtype))
    alt = alt_gate[0] if alt_gate else zero
    taken: Mask | None = gate_is_true(alt_gate[1], Op.LOAD) if len(alt_gate) > 1 else None
    if buf.invalid is not None and u.src[0].addrspace is not None:
        taken = ~buf.invalid if taken is None else taken & ~buf.invalid
    if taken is None:
        return buf
    return where(u, Value(taken), buf, alt)
