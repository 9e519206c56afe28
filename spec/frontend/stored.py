"""Rewrites graphs without effects: a location after STOREs becomes a value."""

from __future__ import annotations

from collections.abc import Iterable

from uop.spec.args import PadArg, PadFill, ReduceArg, arg_of
from uop.spec.conditions.labels import GRADIENT_C2
from uop.spec.dtype import dtypes
from uop.spec.frontend.views import reshaped
from uop.spec.graph import LEAVES, base_of, over, put_back, viewed, views_of
from uop.spec.ops.names import VIEWS, Op
from uop.spec.uop import UOp, const
from uop.spec.walk import outside_bodies, toposort

WRITTEN_THROUGH = VIEWS - {Op.EXPAND} | {Op.INDEX}
"""The views that a STORE may write through; their gradient puts values back in place."""

ORDERING = (Op.STORE, Op.GROUP, Op.NOOP)


def without_stores(roots: Iterable[UOp]) -> dict[UOp, UOp]:
    """Map every value and location of these graphs to a value without effects (D-097).

    A STORE through views becomes WHERE(inside, value, old) of their buffer. InvalidError
    GRADIENT.c2 for memory that another op writes, or that is written through another view.
    """
    order = toposort(roots, outside_bodies)
    if not any(u.op is Op.AFTER and len(u.src) > 1 for u in order):
        return {u: u for u in order}
    absences, done = Absences(), dict[UOp, UOp]()
    for u in order:
        if u.op is Op.AFTER and len(u.src) > 1:
            done[u] = _after(u, done, absences)
        elif u.op is Op.AFTER:
            done[u] = done[u.src[0]]
        elif u.dtype is not dtypes.void and u.op not in LEAVES:
            done[u] = over(u, [done[s] for s in outside_bodies(u)])
        else:
            done[u] = u
    return done


class Absences:
    """Decides which values may have absent elements."""

    def __init__(self) -> None:
        self._may_be: dict[UOp, bool] = {}

    def may_be_in(self, value: UOp) -> bool:
        """Whether a value may have INVALID elements of a PAD that no REDUCE has skipped."""
        known = self._may_be
        for u in toposort([value], lambda v: () if v in known else outside_bodies(v)):
            if u not in known:
                if u.op is Op.PAD:
                    invalid = arg_of(u, PadArg).fill is PadFill.INVALID
                    known[u] = invalid or known[u.src[0]]
                else:
                    known[u] = u.op is not Op.REDUCE and any(known[s] for s in outside_bodies(u))
        return known[value]

    def filled(self, value: UOp) -> UOp:
        """Replace absent elements by 0, by a REDUCE, which skips INVALID elements."""
        if not self.may_be_in(value):
            return value
        column = reshaped(value, (*value.shape, 1))
        total = UOp(Op.REDUCE, column, arg=ReduceArg(Op.ADD, (len(value.shape),)))
        return reshaped(total, value.shape)


def _after(u: UOp, done: dict[UOp, UOp], absences: Absences) -> UOp:
    """The value of a location after the STOREs that it depends on."""
    for view in views_of(u):
        if view.addrspace is None or view.op not in VIEWS | {Op.INDEX}:
            raise _refused(u, f"AFTER of {view.op.name}")
    held = base = base_of(u)
    for effect in toposort([u], outside_bodies):
        if effect.dtype is dtypes.void and effect.op not in ORDERING:
            raise _refused(u, f"{effect.op.name} before it")
        if effect.op is Op.STORE and base_of(effect.src[0]) is base:
            held = _updated(effect, held, done, absences)
    return viewed(u, held, done)


def _updated(store: UOp, old: UOp, done: dict[UOp, UOp], absences: Absences) -> UOp:
    """A buffer after a STORE; absent and gated elements keep the old contents."""
    value = done[store.src[1]]
    if value.dtype is dtypes.bool:
        raise _refused(store, "a STORE of bools")
    stays, goes, kept = const(0, dtypes.int32), const(1, dtypes.int32), const(0, value.dtype)
    inside = UOp(Op.WHERE, UOp(Op.CMPEQ, value, value), goes, goes)
    inside = absences.filled(inside)
    value = absences.filled(value)
    if len(store.src) > 2:
        gate = absences.filled(done[store.src[2]])
        inside = UOp(Op.WHERE, gate, inside, stays)
        value = UOp(Op.WHERE, gate, value, kept)
    for view in views_of(store.src[0]):
        if view.op not in WRITTEN_THROUGH:
            raise _refused(store, f"a STORE through {view.op.name}")
        around = view.with_src([view.src[0], *(done[s] for s in view.src[1:])])
        inside, value = (put_back(around, part) for part in (inside, value))
    return UOp(Op.WHERE, UOp(Op.CMPNE, inside, stays), value, old)


def _refused(u: UOp, found: str) -> Exception:
    return GRADIENT_C2.error_at(u, u.op.name, found)
