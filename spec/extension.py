"""Programs without extension ops: what each of them means, written with core ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

import uop.spec.ops.declared  # noqa: F401 - enters the declarations
from uop.spec.args import ReduceArg, arg_of
from uop.spec.kernel.listing import Listing
from uop.spec.ops import expansion
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp
from uop.spec.walk import kept_with_root, toposort

EXTENSIONS = frozenset(op for op, d in DECLARATIONS.items() if d.section == "extension")
MAY_GO = EXTENSIONS | {Op.REDUCE}
"""Ops that have another form, some of them only with another arg."""


def in_core_ops(root: UOp, keep: frozenset[Op] = frozenset()) -> UOp:
    """The same program without extension ops, but for those to keep.

    Names and an UNROLL that no CONTRACT is around have no other form: they stay.
    """

    known = _core_forms(root)
    if keep not in known:
        form = _without_extensions(root, keep)
        known[keep] = None if form is root else form
    return known[keep] or root


@kept_with_root
def _core_forms(root: UOp) -> dict[frozenset[Op], UOp | None]:
    """What a root was found to be without extension ops, but for some; None where it has none."""
    return {}


def _without_extensions(root: UOp, keep: frozenset[Op]) -> UOp:
    def goes(u: UOp) -> bool:
        return u.op not in keep and (u.op in EXTENSIONS or _folds_with_min(u))

    order = root.toposort()
    if (MAY_GO - keep).isdisjoint([u.op for u in order]) or not any(map(goes, order)):
        return root
    done: dict[UOp, UOp] = {}
    for u in toposort([root], lambda v: () if v.op is Op.CONTRACT else v.src):
        # A CONTRACT is rewritten from outside, for the UNROLLs below it have no value alone.
        same = u if u.op is Op.CONTRACT else u.with_src(_sources(u, done))
        smaller = _smaller(same) if goes(same) else None
        done[u] = same if smaller is None else in_core_ops(smaller, keep)
    return done[root]


def _sources(u: UOp, done: Mapping[UOp, UOp]) -> Sequence[UOp]:
    """The new operands; a LINEAR lists before an instruction what that is made of now."""
    if u.op is not Op.LINEAR:
        return [done[s] for s in u.src]
    listing = Listing()
    for s in u.src:
        given = {done[operand] for operand in s.src}
        for v in toposort([done[s]], partial(_unless_given, given)):
            if v not in given and (v is done[s] or v not in listing):
                listing.add(v)
    return listing.instructions


def _unless_given(given: set[UOp], u: UOp) -> Sequence[UOp]:
    return () if u in given else u.src


def _folds_with_min(u: UOp) -> bool:
    return u.op is Op.REDUCE and arg_of(u, ReduceArg).op is Op.MIN


def _smaller(u: UOp) -> UOp | None:
    if u.op is Op.REDUCE:
        return cast(UOp, expansion.reduce_min(UOp, u))  # type: ignore[arg-type]
    return u.decompose()
