"""Edits kernel programs: replaces and drops nodes in bodies and around them, and stays valid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from uop.spec.args import ParamArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.graph import calls, slot_of
from uop.spec.kernel.listing import Listing
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import free_params, outside_bodies, rebuild, toposort

Edit = Mapping[UOp, UOp | None]
"""What replaces nodes; None drops one."""


def edited(body: UOp, new: Edit, moved: Callable[[UOp, UOp], UOp] = lambda old, u: u) -> UOp | None:
    """Edit a body: None if no effect remains.

    What is dropped takes its users along, except where it was one of several effects or
    dependencies. A loop whose RANGE is replaced ends. `moved` is applied to each other old node
    and what it is over its new sources.
    """

    def kept(u: UOp, src: list[UOp | None]) -> UOp | None:
        over = _over(u, src)
        return None if over is None else moved(u, over)

    return rebuild(body, kept, done=dict(new))


def with_bodies(root: UOp, bodies: Edit, new: Edit | None = None) -> UOp | None:
    """Replace and drop bodies of a program, and nodes outside them: None if no CALL remains.

    A CALL keeps the arguments that its new body reads.
    """
    done: dict[UOp, UOp | None] = dict(new or {})
    for call in calls(root):
        body = bodies.get(call.src[0], call.src[0])
        if body is None:
            done[call] = None
    edits = {old: _packed(body) for old, body in bodies.items() if body is not None}

    def rebuilt(u: UOp, sources: Sequence[UOp | None]) -> UOp | None:
        if u.op is not Op.CALL:
            return _over(u, sources)
        if u.src[0] not in edits:
            return _plain(u, (u.src[0], *sources))
        body, slots = edits[u.src[0]]
        return _plain(u, (body, *(sources[slot] for slot in slots)))

    return rebuild(root, rebuilt, outside_bodies, done)


def _packed(body: UOp) -> tuple[UOp, list[int]]:
    """A body with its PARAMs numbered without gaps, and the slots that they had."""
    params = sorted(free_params(body), key=slot_of)
    numbered = {
        p: UOp(Op.PARAM, *p.src, arg=replace(arg_of(p, ParamArg), slot=k))
        for k, p in enumerate(params)
    }
    return body.substitute(numbered), [slot_of(p) for p in params]


def _over(u: UOp, sources: Sequence[UOp | None]) -> UOp | None:
    """A node over its edited sources."""
    kept = [s for s in sources if s is not None]
    if u.op is Op.LINEAR:
        return _listed(kept)
    if u.op in (Op.SINK, Op.GROUP, Op.BARRIER):
        distinct = dict.fromkeys(kept)
        return u.with_src(distinct) if distinct or u.op is Op.BARRIER else None
    first = sources[0] if sources else None
    if u.op not in (Op.AFTER, Op.END, Op.REDUCE) or first is None:
        return _plain(u, sources)
    rest = [new for s, new in zip(u.src[1:], sources[1:], strict=True) for new in _waits(s, new)]
    if u.op is Op.END:
        for loop in rest:
            first = UOp(Op.END, first, loop)
        return first
    return u.with_src((first, *rest)) if rest or (u.op is Op.REDUCE and u.arg.axes) else first  # type: ignore[union-attr]


def _plain(u: UOp, sources: Sequence[UOp | None]) -> UOp | None:
    kept = [s for s in sources if s is not None]
    return u.with_src(kept) if len(kept) == len(sources) else None


def _waits(old: UOp, new: UOp | None) -> list[UOp]:
    """The dependencies, or RANGEs, that replace one."""
    if new is None:
        return []
    if old.op is Op.RANGE:
        return [u for u in new.toposort() if u.op is Op.RANGE]
    return [new] if new.op is not Op.CONST else []


def _listed(instructions: Iterable[UOp]) -> UOp | None:
    """A LINEAR of the effects among some instructions, with what they need, in this order.

    What a block that has ended computed is computed again behind it, as it may be in any LINEAR.
    """
    instructions = list(instructions)
    needed = set(toposort([u for u in instructions if u.dtype is dtypes.void], lambda u: u.src))
    listing = Listing()
    for instruction in filter(needed.__contains__, instructions):
        for u in toposort([instruction], lambda u: _missing(u, listing)):
            if u not in listing:
                listing.add(u)
    return UOp(Op.LINEAR, *listing.instructions) if needed else None


def _missing(u: UOp, listing: Listing) -> list[UOp]:
    """The sources that can be listed right before a node."""
    computed = (s for s in u.src if s.dtype is not dtypes.void and s.op is not Op.RANGE)
    return [s for s in computed if s not in listing]
