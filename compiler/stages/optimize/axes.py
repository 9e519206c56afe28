"""The axes of a kernel: its RANGEs by id, their nesting, and rebuilding the loops over them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from uop.compiler.rewriting.patterns import int_value
from uop.spec.args import AxisType, RangeArg, arg_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const
from uop.spec.walk import rebuild

NESTING: tuple[tuple[AxisType, ...], ...] = (
    (AxisType.LOOP,),
    (AxisType.GLOBAL, AxisType.THREAD),
    (AxisType.WARP,),
    (AxisType.LOCAL, AxisType.GROUP_REDUCE),
    (AxisType.UPCAST,),
    (AxisType.REDUCE,),
    (AxisType.UNROLL,),
)
"""The axis types from outer to inner loops; within a level the axis of the lower id is outside."""
DEPTH: Mapping[AxisType, int] = {t: k for k, types in enumerate(NESTING) for t in types}
ITEMS = (AxisType.LOCAL, AxisType.WARP)
"""The axis types whose iterations are the work items of a group."""
FOLDED = (AxisType.REDUCE, AxisType.GROUP_REDUCE, AxisType.UNROLL)
"""The axis types that a REDUCE folds over."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The replacement of a RANGE: an index, and the RANGEs in it."""

    index: UOp
    ranges: tuple[UOp, ...]


def axes(body: UOp) -> list[UOp]:
    """The RANGEs of a kernel, axis 0 first."""
    return sorted((u for u in body.toposort() if u.op is Op.RANGE), key=id_of)


def id_of(r: UOp) -> int:
    return arg_of(r, RangeArg).id


def type_of(r: UOp) -> AxisType:
    return arg_of(r, RangeArg).axis_type


def ranged(bound: UOp, id: int, axis_type: AxisType) -> UOp:
    return UOp(Op.RANGE, bound, arg=RangeArg(id, axis_type))


def bound_of(r: UOp) -> int:
    found = int_value(r.src[0])
    assert found is not None, "`apply` optimizes kernels of constant bounds"
    return found


def count_of(ranges: Iterable[UOp]) -> int:
    return math.prod(map(bound_of, ranges))


def row_major(ranges: Iterable[UOp], digits: Iterable[UOp]) -> UOp:
    """The number with these digits, each below the bound of its RANGE, the lowest digit last."""
    number = index_const(0)
    for r, digit in zip(ranges, digits, strict=True):
        number = UOp(Op.ADD, UOp(Op.MUL, number, r.src[0]), digit)
    return number


def nest_of(body: UOp, r: UOp) -> list[UOp]:
    """The RANGEs that end together with this one, by a nest of ENDs or a REDUCE."""
    order = body.toposort()
    users: dict[UOp, UOp] = {s: u for u in order for s in u.src[:1]}
    for u in order:
        if u.op is Op.REDUCE and r in u.src[1:]:
            return list(u.src[1:])
        if u.op is Op.END and u.src[1] is r:
            while users[u].op is Op.END:
                u = users[u]
            return list(_ended(u)[1])
    return [r]


def rebuilt(body: UOp, replaced: Mapping[UOp, Parts]) -> UOp:
    """Replace RANGEs of a body, then nest its loops by their types and ids again."""
    new: dict[UOp, UOp] = {}

    def nested(u: UOp, src: list[UOp]) -> UOp:
        if u in replaced:
            return replaced[u].index
        if u.op is Op.REDUCE:
            return u.with_src([src[0], *_nested(u.src[1:], replaced)])
        if u.op is not Op.END:
            return u.with_src(src)
        inside, closed = _ended(u)
        effect = new[inside]
        for r in reversed(_nested(closed, replaced)):
            effect = UOp(Op.END, effect, r)
        return effect

    return rebuild(body, nested, done=new)


def numbered(body: UOp, order: Sequence[UOp]) -> UOp:
    """Renumber the axes of a body in this order: 0, 1, ..."""
    fresh = {r: ranged(r.src[0], k, type_of(r)) for k, r in enumerate(order)}
    return rebuilt(body, {r: Parts(f, (f,)) for r, f in fresh.items()})


def _ended(end: UOp) -> tuple[UOp, tuple[UOp, ...]]:
    """The body of a nest of ENDs, and their RANGEs."""
    ranges = []
    while end.op is Op.END:
        ranges.append(end.src[1])
        end = end.src[0]
    return end, tuple(ranges)


def _nested(ranges: Sequence[UOp], replaced: Mapping[UOp, Parts]) -> list[UOp]:
    """The RANGEs after replacement, outer ones first."""
    now = [part for r in ranges for part in (replaced[r].ranges if r in replaced else (r,))]
    return sorted(now, key=lambda r: (DEPTH[type_of(r)], id_of(r)))
