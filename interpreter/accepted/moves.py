"""Move accepted sets: movement ops, STACK, copies, INDEX, and LOAD with a gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.accepted.rules.choices import where
from uop.interpreter.accepted.sets import Sets, together, without
from uop.interpreter.rules.movement import checked_index, outside_pad
from uop.interpreter.rules.table import RULES
from uop.interpreter.tensor.masks import over_result
from uop.interpreter.values import either
from uop.spec.args import PadArg, PadFill, ReplicatedArg, arg_of
from uop.spec.conditions.clauses import undefined
from uop.spec.latitude import STRICT
from uop.spec.ops.names import VIEWS, Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def moved(u: UOp, t: Sets) -> Sets:
    """Apply PERMUTE, FLIP, RESHAPE, EXPAND, SHRINK or PAD to sets."""
    result = t.map(lambda a: RULES[u.op](u, a))
    if u.op is Op.PAD and arg_of(u, PadArg).fill is PadFill.INVALID:
        return replace(result, invalid=either(result.invalid, outside_pad(u)))
    return result


def stack(u: UOp, *operands: Sets) -> Sets:
    return together(operands, lambda parts: np.stack(parts))


def replicated(u: UOp, t: Sets) -> Sets:
    """Return the union of the sets of all copies."""
    axes = arg_of(u, ReplicatedArg).axes
    unsure = Sets(np.zeros(u.shape, np.bool_), np.ones(u.shape, np.bool_))
    result: Sets | None = None
    for position in np.ndindex(*(t.lo.shape[a] for a in axes)):
        where_it_is = [slice(None)] * t.lo.ndim
        for axis, at in zip(axes, position, strict=True):
            where_it_is[axis] = slice(at, at + 1)
        index = tuple(where_it_is)
        copy = t.map(lambda a, index=index: a[index])  # type: ignore[misc]
        result = copy if result is None else where(u, STRICT, unsure, result, copy)
    assert result is not None
    return result


def index(u: UOp, t: Sets, *indices: Sets) -> Sets:
    """Apply an INDEX; an uncertain index accepts anything, if all of its values are in bounds."""
    positions, absent, unsure = [], None, None
    for axis, i in enumerate(indices):
        if without(i.any, i.invalid) is not None and np.any(without(i.any, i.invalid)):
            raise undefined("INDEX.u2", f"an UNSPECIFIED element on axis {axis}", u)
        checked_index(u, axis, i.hi, i.invalid)
        positions.append(checked_index(u, axis, i.lo, i.invalid))
        if i.invalid is not None:
            absent = either(absent, over_result(u, axis, i.invalid))
        unsure = either(unsure, over_result(u, axis, np.asarray(~i.is_point())))
    picked = t.map(lambda a: np.asarray(RULES[Op.INDEX](u, a, *positions)))
    return replace(picked, any=either(picked.any, unsure), invalid=either(picked.invalid, absent))


def load(u: UOp, buf: Sets, *alt_gate: Sets) -> Sets:
    """Apply a LOAD.

    It is a copy; where the gate is false, or an element of a location is absent, it is alt, or 0
    without one.
    """
    zero = np.zeros_like(buf.lo)
    alt = alt_gate[0] if alt_gate else Sets(zero, zero)
    true = np.ones(u.shape, np.bool_)
    taken = alt_gate[1] if len(alt_gate) > 1 else Sets(true, true)
    if taken.any is not None and taken.any.any():
        raise undefined("LOAD.u1", "an UNSPECIFIED element of the gate", u)
    absent = taken.invalid
    if u.src[0].addrspace is not None:
        absent = either(absent, buf.invalid)
    lo, hi = taken.lo, taken.hi
    if absent is not None:
        lo, hi = lo & ~absent, hi & ~absent
    gate, buf, alt = (
        s.map(lambda a: np.broadcast_to(a, u.shape)) for s in (Sets(lo, hi), buf, alt)
    )
    return where(u, STRICT, gate, buf, alt)


MOVES: dict[Op, Callable[..., Sets]] = {
    **dict.fromkeys(VIEWS, moved),
    Op.STACK: stack,
    Op.REPLICATED: replicated,
    Op.INDEX: index,
    Op.LOAD: load,
}
