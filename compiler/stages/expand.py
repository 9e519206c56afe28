"""The stage expand: unrolls the loops of axis type UPCAST and UNROLL.

An END becomes a GROUP of the copies of its body, a REDUCE a chain of ops on its values.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import cast

from uop.compiler.rewrite import Fired, quietly
from uop.compiler.simplify import int_value
from uop.compiler.stages.optimize.axes import axes, id_of, ranged, rebuilt, type_of
from uop.compiler.validity import identity
from uop.spec.args import AxisType, ReduceArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.graph import kernels
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

EXPANDED = (AxisType.UPCAST, AxisType.UNROLL)
WRITE_OUT = "write_out"
"""The name of its only rule."""
MOST_COPIES = 4096
"""The most copies of a kernel, which must fit into registers and into a source."""


def expand(root: UOp, fired: Fired = quietly) -> UOp:
    """Unroll these loops in every kernel; UnsupportedError for too many copies."""
    bodies: dict[UOp, UOp] = {}
    for body in kernels(root):
        order = body.toposort()
        if any(u.op is Op.WMMA for u in order):
            raise UnsupportedError("expand: no target of this compiler has a matrix instruction")
        if any(_wide(order)):
            bodies[body] = written_out(body, fired)
    return root.substitute(bodies) if bodies else root


def written_out(body: UOp, fired: Fired = quietly) -> UOp:
    """Unroll the loops of a body."""
    copies = 1
    for r in _wide(body.toposort()):
        bound = int_value(r.src[0])
        if bound is None:
            raise UnsupportedError(f"expand: a RANGE of type {type_of(r).name} without CONST bound")
        copies *= max(bound, 1)
        if copies > MOST_COPIES:
            raise UnsupportedError(f"expand: a kernel of more than {MOST_COPIES} copies")
    body = rebuilt(body, {})
    while closer := _innermost(body.toposort()):
        after = _each(body, closer) if closer.op is Op.END else _chain(body, closer)
        fired(WRITE_OUT, closer, after)
        body = body.substitute({closer: after})
    return body


def _wide(order: Iterable[UOp]) -> Iterable[UOp]:
    return (u for u in order if u.op is Op.RANGE and type_of(u) in EXPANDED)


def _innermost(order: Iterable[UOp]) -> UOp | None:
    """The first node that closes a loop to unroll."""
    for u in order:
        if u.op in (Op.END, Op.REDUCE) and any(_wide(u.src[1:])):
            return u
    return None


def _each(body: UOp, end: UOp) -> UOp:
    return UOp(Op.GROUP, *_copies(body, end.src[0], end.src[1]))


def _chain(body: UOp, fold: UOp) -> UOp:
    """A chain over one range, inside a REDUCE over the remaining ranges if there are any."""
    op = arg_of(fold, ReduceArg).op
    r = next(iter(_wide(fold.src[1:])))
    values = _copies(body, fold.src[0], r)
    chain = reduce(lambda a, b: UOp(op, a, b), values) if values else identity(op, fold.dtype)
    rest = [q for q in fold.src[1:] if q is not r]
    return UOp(Op.REDUCE, chain, *rest, arg=fold.arg) if rest else chain


def _copies(body: UOp, root: UOp, r: UOp) -> list[UOp]:
    """Copy the body of the loop r for each iteration; inner loops get new ids in each copy."""
    order = root.toposort()
    inside = open_ranges(order)
    fresh = 1 + max(map(id_of, axes(body)))
    own = {r}
    for u in reversed(order):
        if u.op in (Op.END, Op.REDUCE) and inside[u] & own:
            own.update(u.src[1:])
    inner = sorted(own - {r}, key=id_of)
    copies = []
    for position in range(cast(int, int_value(r.src[0]))):
        new: dict[UOp, UOp] = {r: index_const(position)}
        for u in order:
            if u in inner and position:
                id = fresh + (position - 1) * len(inner) + inner.index(u)
                new[u] = ranged(new[u.src[0]], id, type_of(u))
            elif u not in new:
                new[u] = u.with_src([new[s] for s in u.src])
        copies.append(new[root])
    return copies
