"""Removes INVALID elements: splits a tensor into values and a validity mask, both ordinary graphs.

In the values every PAD is filled with zeros. The mask is a bool tensor of the same shape, false at
INVALID elements; it is None if all elements are valid. Later stages see no INVALID.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from uop.compiler.build import (
    FALSE,
    TRUE,
    ZERO_FILL,
    along,
    both,
    expand,
    full,
    identity,
    only_where,
    reshaped,
)
from uop.spec.args import PadArg, PadFill, ReduceArg, arg_of
from uop.spec.graph import toposort
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape, ops_of
from uop.spec.shards import window
from uop.spec.uop import UOp, const, dims


class Masked(NamedTuple):
    """A tensor without INVALID elements, and the mask of the original's valid elements."""

    value: UOp
    mask: UOp | None = None


class Validity:
    """Splits values into `Masked`s, with a cache over all nodes."""

    def __init__(self) -> None:
        self._done: dict[UOp, Masked] = {}

    def split(self, root: UOp) -> Masked:
        for u in toposort([root], lambda v: () if v in self._done else v.src):
            if u not in self._done:
                self._done[u] = self._rule(u)
        return self._done[root]

    def _rule(self, u: UOp) -> Masked:
        if u.op is Op.GETADDR:
            return Masked(u)
        parts = [self._done[s] for s in u.src]
        same = u.with_src([p.value for p in parts])
        if u.op is Op.PAD:
            return _pad(same, parts[0].mask)
        if all(p.mask is None for p in parts):
            return Masked(same)
        if u.op in RULES:
            return RULES[u.op](same, [p.mask for p in parts])
        return Masked(same, _all_of([p.mask for p in parts], u.shape))


Masks = list[UOp | None]


def absent(like: UOp) -> UOp:
    """INVALID elements in the shape and dtype of a value: a PAD of no elements."""
    shape = like.shape
    start = dims(0 for _ in (1, *shape))
    nothing = window(full(const(0, like.dtype), (1, *shape)), 0, 0, 0)
    return reshaped(UOp(Op.PAD, nothing, start, dims((1, *shape))), shape)


def _all_of(masks: Masks, shape: Shape) -> UOp | None:
    """Elementwise: valid where every operand is valid."""
    result: UOp | None = None
    for mask in masks:
        result = both(result, None if mask is None else expand(mask, shape))
    return result


def _pad(u: UOp, mask: UOp | None) -> Masked:
    value = UOp(Op.PAD, *u.src, arg=ZERO_FILL)
    if arg_of(u, PadArg).fill is PadFill.INVALID:
        if u.src[0].shape == u.shape:
            return Masked(value, mask)
        inside = full(TRUE, u.src[0].shape) if mask is None else mask
        return Masked(value, UOp(Op.PAD, inside, *u.src[1:], arg=ZERO_FILL))
    if mask is None:
        return Masked(value)
    # The padding is valid zeros: pad the negated mask with false.
    absent = UOp(Op.PAD, UOp(Op.NOT, mask), *u.src[1:], arg=ZERO_FILL)
    return Masked(value, UOp(Op.NOT, absent))


def _moved(u: UOp, masks: Masks) -> Masked:
    mask = cast(UOp, masks[0])
    return Masked(u, UOp(u.op, mask, *u.src[1:], arg=u.arg))


def _where(u: UOp, masks: Masks) -> Masked:
    condition, a, b = masks
    chosen: UOp | None = None
    if a is not None or b is not None:
        chosen = UOp(Op.WHERE, u.src[0], TRUE if a is None else a, TRUE if b is None else b)
        chosen = expand(chosen, u.shape)
    if condition is None:
        return Masked(u, chosen)
    present = expand(condition, u.shape)
    return Masked(u, present if chosen is None else only_where(present, chosen))


def _reduce(u: UOp, masks: Masks) -> Masked:
    """Absent elements are skipped, by replacing them with the identity."""
    arg = arg_of(u, ReduceArg)
    present = UOp(Op.WHERE, cast(UOp, masks[0]), u.src[0], identity(arg.op, u.dtype))
    return Masked(u.with_src([present, *u.src[1:]]))


def _stack(u: UOp, masks: Masks) -> Masked:
    shape = u.src[0].shape
    return Masked(u, UOp(Op.STACK, *(full(TRUE, shape) if m is None else m for m in masks)))


def _index(u: UOp, masks: Masks) -> Masked:
    """An absent index reads element 0, and the result is absent."""
    of, *absent = masks
    if 0 in u.src[0].shape[: len(absent)]:
        return Masked(full(const(0, u.dtype), u.shape), full(FALSE, u.shape))
    indices = [
        i if m is None else UOp(Op.WHERE, m, i, const(0, i.dtype))
        for i, m in zip(u.src[1:], absent, strict=True)
    ]
    result = None if of is None else UOp(Op.INDEX, of, *indices)
    at = 0
    for i, mask in zip(u.src[1:], absent, strict=True):
        if mask is not None:
            result = both(result, along(mask, at, u.shape))
        at += len(i.shape)
    return Masked(u.with_src([u.src[0], *indices]), result)


def _bitcast(u: UOp, masks: Masks) -> Masked:
    """An element is valid if all its bytes are."""
    mask, old, new = cast(UOp, masks[0]), u.src[0].dtype.itemsize, u.dtype.itemsize
    if old == new:
        return Masked(u, mask)
    outer = u.shape[:-1]
    if old > new:
        count, ratio = mask.shape[-1], old // new
        column = reshaped(mask, (*outer, count, 1))
        wide = expand(column, (*outer, count, ratio))
        return Masked(u, reshaped(wide, u.shape))
    count, ratio = u.shape[-1], new // old
    parts = reshaped(mask, (*outer, count, ratio))
    result: UOp | None = None
    for k in range(ratio):
        part = window(parts, len(u.shape), k, 1)
        result = both(result, reshaped(part, u.shape))
    return Masked(u, result)


def _load(u: UOp, masks: Masks) -> Masked:
    """alt where the gate is false or absent; absent elements stay absent."""
    if len(u.src) < 3:
        return Masked(u, masks[0])
    alt, gate = u.src[1], u.src[2]
    open_ = only_where(masks[2], gate)
    chosen: UOp | None = None
    if masks[0] is not None or masks[1] is not None:
        sides = [full(TRUE, u.shape) if m is None else m for m in masks[:2]]
        chosen = UOp(Op.WHERE, open_, *sides)
    return Masked(u.with_src([u.src[0], alt, open_]), chosen)


RULES: Mapping[Op, Callable[[UOp, Masks], Masked]] = {
    **dict.fromkeys((op for op, d in DECLARATIONS.items() if d.is_view), _moved),
    **dict.fromkeys(ops_of("marker"), lambda u, masks: Masked(u, masks[0])),
    Op.WHERE: _where,
    Op.REDUCE: _reduce,
    Op.STACK: _stack,
    Op.INDEX: _index,
    Op.BITCAST: _bitcast,
    Op.LOAD: _load,
}
