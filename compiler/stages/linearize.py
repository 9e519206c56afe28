"""The stage linearize: each kernel becomes a list of instructions, sources before uses."""

from __future__ import annotations

from uop.compiler.stages.entry.scalars import scalarize
from uop.compiler.stages.stage import Stage
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
    # An inner loop ends before those around it.
    ends = {u.src[1]: number for number, u in enumerate(order) if u.op is Op.END}
    blocks: dict[UOp | None, list[UOp]] = {u: [] for u in (None, *ends)}
    for u in order[:-1]:
        if u.op is Op.RANGE:
            continue
        block = blocks[min(inside[u], key=ends.__getitem__, default=None)]
        if u.op is Op.END:
            # Everything in its loop comes before it.
            block += [u.src[1], *blocks.pop(u.src[1])]
        block.append(u)
    return blocks[None]


STAGE = Stage("linearize", lambda u, *_: linearize(u), lambda _: LINEARIZED)
