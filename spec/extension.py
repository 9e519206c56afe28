"""Rewrites a program into core ops: replaces each extension op by its decomposition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import uop.spec.ops.declared  # noqa: F401 - enters the declarations
from uop.spec.args import ReduceArg, arg_of
from uop.spec.graph import all_sources, kept_with_root, toposort
from uop.spec.kernel.listing import Listing
from uop.spec.ops import expansion
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


def in_core_ops(root: UOp, keep: frozenset[Op] = frozenset()) -> UOp:
    """The same program without extension ops, except those in `keep`.

    A STORE or ATOMICADD of lanes becomes one for each lane. Names have no decomposition and stay,
    and so does an UNROLL outside these and a CONTRACT.
    """
    known = _core_forms(root)
    if keep not in known:
        form = _without_extensions(root, keep)
        known[keep] = None if form is root else form
    return known[keep] or root


@kept_with_root
def _core_forms(root: UOp) -> dict[frozenset[Op], UOp | None]:
    """Cached results by `keep`; None for a program without ops to rewrite."""
    return {}


def _without_extensions(root: UOp, keep: frozenset[Op]) -> UOp:
    def goes(u: UOp) -> bool:
        folds_with_min = u.op is Op.REDUCE and arg_of(u, ReduceArg).op is Op.MIN
        return u.op not in keep and (u.declaration.section == "extension" or folds_with_min)

    order = root.toposort()
    if not any(map(goes, order)):
        return root
    done: dict[UOp, UOp] = {}
    lanes = expansion.open_lanes(order) if Op.UNROLL not in keep else {}
    for u in toposort([root], lambda v: () if v.op is Op.CONTRACT else v.src):
        # A CONTRACT is rewritten as a whole: the UNROLLs below it have no value of their own.
        same = u if u.op is Op.CONTRACT else u.with_src(_sources(u, done))
        smaller = _smaller(same) if goes(same) else None
        found = lanes.get(u, {}) if u.declaration.is_write else {}
        if found and all(found.values()):
            smaller = cast(UOp, expansion.each_lane(UOp, same, found))  # type: ignore[arg-type]
        done[u] = same if smaller is None else in_core_ops(smaller, keep)
    return done[root]


def _sources(u: UOp, done: Mapping[UOp, UOp]) -> Sequence[UOp]:
    """The new operands. A LINEAR lists the new nodes of an instruction before it."""
    if u.op is not Op.LINEAR:
        return [done[s] for s in u.src]
    listing = Listing()
    for s in u.src:
        for v in toposort([done[s]], all_sources, {done[operand] for operand in s.src}):
            if v is done[s] or v not in listing:
                listing.add(v)
    return listing.instructions


def _smaller(u: UOp) -> UOp | None:
    if u.op is Op.REDUCE:
        return cast(UOp, expansion.reduce_min(UOp, u))  # type: ignore[arg-type]
    return u.decompose()
