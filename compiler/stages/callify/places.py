"""What a STORE leaves at a place of memory, and which indices a gated LOAD reads (in callify)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uop.compiler.build import TRUE, along, bits_as, both, full, only_where, reshaped
from uop.compiler.stages.rangeify.lower import unsigned
from uop.compiler.validity import Masked, Validity
from uop.spec.args import DTypeArg, ReduceArg
from uop.spec.conditions.labels import CONDITIONS
from uop.spec.graph import put_back, viewed, views_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const

Values = Mapping[UOp, UOp]


def stored(contents: UOp, store: UOp, values: Values, validity: Validity) -> UOp:
    """The contents of a buffer after a STORE; INVALID elements keep the old contents."""
    target, new, *gates = store.src
    value, inside = validity.split(values[new])
    for gate in gates:
        condition = validity.split(values[gate])
        inside = both(inside, only_where(condition.mask, condition.value))
    for view in views_of(target):
        if view.op is Op.BITCAST:
            # What the bytes below are as elements of this dtype, with the value among them.
            if inside is not None:
                value = UOp(Op.WHERE, inside, value, viewed(view, contents, values))
            value, inside = UOp(Op.BITCAST, value, arg=DTypeArg(view.src[0].dtype)), None
            continue
        if view.op is Op.INDEX:
            indices = [validity.split(values[i]) for i in view.src[1:]]
            value, inside = _scattered(view, value, inside, indices)
            continue
        if view.op is Op.EXPAND or not view.declaration.is_view:
            raise CONDITIONS["callify.target"].lacking(repr(view), view.op.name)
        if view.op is Op.SHRINK and inside is None and view.shape != view.src[0].shape:
            inside = full(TRUE, value.shape)
        value = put_back(view, value)
        inside = None if inside is None else put_back(view, inside)
    return value if inside is None else UOp(Op.WHERE, inside, value, contents)


def _scattered(view: UOp, value: UOp, inside: UOp | None, indices: Sequence[Masked]) -> Masked:
    """The elements at their indices, which differ; an absent index is nowhere. Each place is a sum
    with one term: of integers, which keep the bits of a float.
    """
    at = 0
    for i, split in zip(view.src[1:], indices, strict=True):
        if split.mask is not None:
            inside = both(inside, along(split.mask, at, view.shape))
        at += len(i.shape)
    place = view.with_src([view.src[0], *(split.value for split in indices)])
    there = full(TRUE, value.shape) if inside is None else inside
    bits = bits_as(value, unsigned(value.dtype) if value.dtype.is_float else value.dtype)
    placed = put_back(place, UOp(Op.WHERE, there, bits, const(0, bits.dtype)))
    return Masked(bits_as(placed, value.dtype), put_back(place, there))


def gated(place: UOp, gate: UOp) -> UOp:
    """An INDEX of a value with index 0 where the gate is false: there it may be outside (D-052)."""
    indices, at = [], 0
    for i in place.src[1:]:
        own = range(at, at := at + len(i.shape))
        others = tuple(axis for axis in range(len(gate.shape)) if axis not in own)
        needed = UOp(Op.REDUCE, gate, arg=ReduceArg(Op.MAX, others)) if others else gate
        needed = reshaped(needed, i.shape) if needed.shape != i.shape else needed
        indices.append(UOp(Op.WHERE, needed, i, full(const(0, i.dtype), i.shape)))
    return place.with_src([place.src[0], *indices])
