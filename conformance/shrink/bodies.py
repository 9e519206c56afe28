"""Programs seen without the bodies that they call, whose PARAMs are other ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from uop.spec.args import GetTupleArg, ParamArg
from uop.spec.graph import all_replaced, outside, slot_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import free_params, outside_bodies


def taken_of(root: UOp, body: UOp) -> list[int]:
    """Which members of a body its callers take: all where a call is more than unpacked."""
    nodes = outside(root)
    taken = {
        cast(GetTupleArg, u.arg).idx
        for u in nodes
        if u.op is Op.GETTUPLE and _is_call(u.src[0], body)
    }
    others = [root, *(s for u in nodes if u.op is not Op.GETTUPLE for s in outside_bodies(u))]
    whole = any(_is_call(u, body) for u in others)
    return list(range(len(body.src))) if whole else sorted(taken)


def with_body(root: UOp, body: UOp, members: Sequence[UOp], taken: Sequence[int]) -> UOp:
    """The program with another body, of fewer members, called with the arguments that it reads.

    `taken` says the number of each member in the body as it was.
    """
    params = sorted(cast("list[UOp]", free_params(UOp(Op.TUPLE, *members))), key=slot_of)
    slots = {
        p: UOp(Op.PARAM, *p.src, arg=replace(cast(ParamArg, p.arg), slot=k))
        for k, p in enumerate(params)
    }
    new = UOp(Op.TUPLE, *all_replaced(members, slots))
    done: dict[UOp, UOp] = {}
    for u in outside(root):
        sources = [done[s] for s in outside_bodies(u)]
        if _is_call(u, body):
            done[u] = u.with_src((new, *(sources[slot_of(p)] for p in params)))
        elif u.op is Op.GETTUPLE and _is_call(u.src[0], body):
            place = taken.index(cast(GetTupleArg, u.arg).idx)
            done[u] = UOp(Op.GETTUPLE, *sources, arg=GetTupleArg(place))
        else:
            done[u] = u.with_src((*u.src[: len(u.src) - len(sources)], *sources))
    return done[root]


def _is_call(u: UOp, body: UOp) -> bool:
    return u.op is Op.FUNCTION and u.src[0] is body
