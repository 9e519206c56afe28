"""Rewriting graphs around called bodies, whose PARAMs are their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from uop.spec.args import GetTupleArg, ParamArg
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import outside_bodies, toposort


def leaves(root: UOp) -> list[UOp]:
    """The PARAMs and BUFFERs that a graph reads, without those of called bodies."""
    return [u for u in toposort([root], _outside) if u.op in (Op.PARAM, Op.BUFFER)]


def substitute_outside(root: UOp, new: Mapping[UOp, UOp]) -> UOp:
    """The graph with nodes replaced, but for those inside bodies that it calls."""
    done: dict[UOp, UOp] = dict(new)
    for u in toposort([root], lambda v: () if v in new else _outside(v)):
        if u not in done:
            called = len(u.src) - len(_outside(u))
            done[u] = u.with_src([*u.src[:called], *(done[s] for s in _outside(u))])
    return done[root]


def inlined(roots: Iterable[UOp], rewritten: Callable[[UOp], UOp]) -> dict[UOp, UOp]:
    """Every node of these graphs with each FUNCTION resolved: its body around its arguments.

    Every other node that is not void is rewritten, over its new sources.
    """
    done: dict[UOp, UOp] = {}
    for u in toposort(roots, lambda v: v.src[1:] if v.op is Op.CALL else v.src):
        if u.op is Op.FUNCTION:
            body, arguments = done[u.src[0]], [done[a] for a in u.src[1:]]
            done[u] = substitute_outside(body, _bindings(body, arguments))
        elif u.op is Op.GETTUPLE:
            done[u] = done[u.src[0]].src[cast(GetTupleArg, u.arg).idx]
        elif u.op is Op.CALL:
            done[u] = u.with_src([u.src[0], *(done[s] for s in u.src[1:])])
        else:
            new = u.with_src(done[s] for s in u.src)
            done[u] = new if new.dtype is dtypes.void else rewritten(new)
    return done


def _bindings(body: UOp, arguments: list[UOp]) -> dict[UOp, UOp]:
    params = [u for u in leaves(body) if u.op is Op.PARAM]
    return {p: arguments[cast(ParamArg, p.arg).slot] for p in params}


def _outside(u: UOp) -> tuple[UOp, ...]:
    return cast("tuple[UOp, ...]", outside_bodies(u))
