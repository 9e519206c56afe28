"""The stage linearize: each kernel becomes a list of instructions, sources before uses."""

from __future__ import annotations

from uop.compiler.stages.entry.scalars import scalarize
from uop.compiler.stages.stage import Stage
from uop.spec.errors import PassError
from uop.spec.graph import with_kernels
from uop.spec.kernel.forms import LINEARIZED, effects_of_loops, open_ranges
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


def linearize(root: UOp) -> UOp:
    """Make each SINK of a CALL a LINEAR; a LINEAR with vectors is rewritten to scalars."""
    return with_kernels(root, _listed)


def _listed(body: UOp) -> UOp:
    return scalarize(body) if body.op is Op.LINEAR else UOp(Op.LINEAR, *instructions(body))


def instructions(body: UOp) -> list[UOp]:
    """The nodes in execution order.

    A loop is placed where its END is, after all values from outside that it uses. So values that do
    not depend on the loop are outside, and the loop opens as late as possible. An effect that only
    the loop uses is always inside, since the loop may have no iteration (D-056).
    """
    order = body.toposort()
    inside = open_ranges(order)
    for u, r in effects_of_loops(order).items():
        inside[u] |= {r}
    depth = _depths(order, inside)
    ranges = [u for u in order if u.op is Op.RANGE]
    blocks: dict[UOp | None, list[UOp]] = {u: [] for u in (None, *ranges)}
    for u in order[:-1]:
        if u.op is Op.RANGE:
            continue
        block = max(inside[u], key=lambda r: depth[r], default=None)
        blocks[block].append(u)
    return _flattened(blocks)


def _depths(order: list[UOp], inside: dict[UOp, frozenset[UOp]]) -> dict[UOp, int]:
    """The nesting depth of each loop: one more than that of the loops that are open at its END."""
    depth: dict[UOp, int] = {}
    for u in reversed(order):
        if u.op is Op.END:
            depth[u.src[1]] = 1 + max((depth.get(r, 0) for r in inside[u]), default=-1)
    unclosed = [u for u in order if u.op is Op.RANGE and u not in depth]
    if unclosed:
        raise PassError(f"linearize: {unclosed[0]!r} is never closed")
    return depth


def _flattened(blocks: dict[UOp | None, list[UOp]]) -> list[UOp]:
    """Flatten the blocks, each before the END that closes it."""
    result: list[UOp] = []
    work: list[UOp | tuple[UOp, ...]] = [*reversed(blocks[None])]
    while work:
        u = work.pop()
        if isinstance(u, tuple):
            result.extend(u)
        elif u.op is Op.END:
            r = u.src[1]
            result.append(r)
            work.append((u,))
            work.extend(reversed(blocks[r]))
        else:
            result.append(u)
    return result


STAGE = Stage("linearize", lambda u, *_: linearize(u), lambda _: LINEARIZED)
