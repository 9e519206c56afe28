"""Programs seen without the bodies that they call, whose PARAMs are other ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from uop.spec.args import GetTupleArg, ParamArg
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import free_params, outside_bodies, toposort


def walk(*roots: UOp) -> list[UOp]:
    """The nodes of a program, but those of called bodies."""
    return toposort(roots, outside)


def replaced(root: UOp, new: Mapping[UOp, UOp]) -> UOp:
    """The program with nodes replaced, called bodies as they are; what is put in stays as it is."""
    return all_replaced((root,), new)[0]


def all_replaced(roots: Iterable[UOp], new: Mapping[UOp, UOp]) -> list[UOp]:
    """`replaced` for several values that share nodes."""
    roots = list(roots)
    done: dict[UOp, UOp] = dict(new)
    for u in toposort(roots, lambda v: () if v in new else outside(v)):
        if u not in done:
            sources = outside(u)
            body = u.src[: len(u.src) - len(sources)]
            done[u] = u.with_src((*body, *(done[s] for s in sources)))
    return [done[root] for root in roots]


def inlined(root: UOp) -> UOp:
    """The program with its functions written out where they are called."""
    while call := next((u for u in walk(root) if u.op is Op.FUNCTION), None):
        body = call.src[0]
        params = cast("list[UOp]", free_params(body))
        given = {p: call.src[1 + cast(ParamArg, p.arg).slot] for p in params}
        root = replaced(root, {call: replaced(body, given)})
    while member := next((u for u in walk(root) if _is_unpacking(u)), None):
        root = replaced(root, {member: member.src[0].src[cast(GetTupleArg, member.arg).idx]})
    return root


def taken_of(root: UOp, body: UOp) -> list[int]:
    """Which members of a body its callers take: all where a call is more than unpacked."""
    nodes = walk(root)
    taken = {
        cast(GetTupleArg, u.arg).idx
        for u in nodes
        if u.op is Op.GETTUPLE and _is_call(u.src[0], body)
    }
    others = [root, *(s for u in nodes if u.op is not Op.GETTUPLE for s in outside(u))]
    whole = any(_is_call(u, body) for u in others)
    return list(range(len(body.src))) if whole else sorted(taken)


def with_body(root: UOp, body: UOp, members: Sequence[UOp], taken: Sequence[int]) -> UOp:
    """The program with another body, of fewer members, called with the arguments that it reads.

    `taken` says the number of each member in the body as it was.
    """
    params = sorted(cast("list[UOp]", free_params(UOp(Op.TUPLE, *members))), key=_slot)
    slots = {
        p: UOp(Op.PARAM, *p.src, arg=replace(cast(ParamArg, p.arg), slot=k))
        for k, p in enumerate(params)
    }
    new = UOp(Op.TUPLE, *all_replaced(members, slots))
    done: dict[UOp, UOp] = {}
    for u in walk(root):
        sources = [done[s] for s in outside(u)]
        if _is_call(u, body):
            done[u] = u.with_src((new, *(sources[_slot(p)] for p in params)))
        elif u.op is Op.GETTUPLE and _is_call(u.src[0], body):
            place = taken.index(cast(GetTupleArg, u.arg).idx)
            done[u] = UOp(Op.GETTUPLE, *sources, arg=GetTupleArg(place))
        else:
            done[u] = u.with_src((*u.src[: len(u.src) - len(sources)], *sources))
    return done[root]


def outside(u: UOp) -> tuple[UOp, ...]:
    """The operands of a node but for the body that it calls."""
    return cast("tuple[UOp, ...]", outside_bodies(u))


def _is_call(u: UOp, body: UOp) -> bool:
    return u.op is Op.FUNCTION and u.src[0] is body


def _slot(p: UOp) -> int:
    return cast(ParamArg, p.arg).slot


def _is_unpacking(u: UOp) -> bool:
    return u.op is Op.GETTUPLE and u.src[0].op is Op.TUPLE
