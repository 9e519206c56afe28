"""The loops of a kernel that is a graph: a RANGE is one loop, whichever ENDs close it (D-104)."""

from __future__ import annotations

from collections.abc import Iterable

from uop.spec.graph import rebuild
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


def with_joined_loops(body: UOp) -> UOp:
    """Join the ENDs that close one RANGE at the same place to one END of a GROUP.

    ENDs that wait for each other stay separate: they are loops one after the other.
    """
    while joined := _joined(body):
        body = _distinct(body.substitute(joined))
    return body


def ends_by_range(order: Iterable[UOp]) -> dict[UOp, list[UOp]]:
    """The ENDs that close each RANGE, in order."""
    found: dict[UOp, list[UOp]] = {}
    for u in order:
        if u.op is Op.END:
            found.setdefault(u.src[1], []).append(u)
    return found


def _joined(body: UOp) -> dict[UOp, UOp]:
    """The ENDs of one RANGE that can be joined, each with what takes its place."""
    order = body.toposort()
    several = {r: ends for r, ends in ends_by_range(order).items() if len(ends) > 1}
    inside = open_ranges(order) if several else {}
    for r, ends in several.items():
        by_loops: dict[frozenset[UOp], list[UOp]] = {}
        for end in ends:
            before = end.toposort()
            others = by_loops.setdefault(inside[end], [])
            if not any(other in before for other in others):
                others.append(end)
        for group in by_loops.values():
            if len(group) > 1:
                bodies = (end.src[0] for end in group)
                effects = (s for u in bodies for s in (u.src if u.op is Op.GROUP else (u,)))
                end = UOp(Op.END, UOp(Op.GROUP, *dict.fromkeys(effects)), r)
                return dict.fromkeys(group, end)
    return {}


def _distinct(body: UOp) -> UOp:
    """A body whose SINK and GROUPs name each effect once."""

    def distinct(u: UOp, src: list[UOp]) -> UOp:
        src = [*dict.fromkeys(src)] if u.op in (Op.SINK, Op.GROUP) else src
        return src[0] if u.op is Op.GROUP and len(src) == 1 else u.with_src(src)

    return rebuild(body, distinct)
