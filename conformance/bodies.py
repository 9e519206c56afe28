"""Programs seen without the bodies that they call, whose PARAMs are other ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def outside(u: UOp) -> tuple[UOp, ...]:
    """The operands of a node but for the body that it calls."""
    return cast("tuple[UOp, ...]", outside_bodies(u))


def _is_unpacking(u: UOp) -> bool:
    return u.op is Op.GETTUPLE and u.src[0].op is Op.TUPLE
