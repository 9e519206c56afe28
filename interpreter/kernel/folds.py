"""Fold what the loops of a REDUCE have kept, where they run one iteration after the other."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from uop.interpreter.kernel.domain import Domain
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.rules.reduce import identity, neutral
from uop.interpreter.values import Value
from uop.spec.args import ReduceArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

if TYPE_CHECKING:
    from collections.abc import Sequence

V = TypeVar("V")
Terms = list[tuple[V, Mask | None]]
"""The operand of a REDUCE in each iteration, and the lanes that ran it; None for all."""


def folded(domain: Domain[V], u: UOp, terms: Sequence[tuple[V, Mask | None]]) -> V:
    """Fold the terms in their order, each followed by its own axes.

    They are the elements of a STACK. In a lane that did not run an iteration its term changes
    nothing; a lane that ran none has the identity.
    """
    arg = arg_of(u, ReduceArg)
    kept = [_where(domain, u.src[0], active, v, neutral(arg.op, u.dtype)) for v, active in terms]
    stack = UOp(Op.STACK, *[u.src[0]] * len(kept))
    axes = (0, *(1 + axis for axis in arg.axes))
    total = UOp(Op.REDUCE, stack, arg=ReduceArg(arg.op, axes))
    first = index_const(0)
    sums = domain.result(total, [domain.result(stack, kept)])
    result = UOp(Op.INDEX, total, first)
    value = domain.result(result, [sums, domain.result(first, [])])
    ran = _anywhere([active for _, active in terms])
    return _where(domain, result, ran, value, identity(arg.op, u.dtype))


def _where(domain: Domain[V], u: UOp, active: Mask | None, value: V, other: Array) -> V:
    """Return the value of a node in active lanes, and another one elsewhere."""
    if active is None:
        return value
    gate, rest = const(True, dtypes.bool), const(other.item(), u.dtype)
    operands = [domain.lift(gate, Value(active)), value, domain.lift(rest, Value(other))]
    return domain.result(UOp(Op.WHERE, gate, u, rest), operands)


def _anywhere(actives: Sequence[Mask | None]) -> Mask | None:
    """Return the lanes that ran any iteration; None for all."""
    if any(active is None for active in actives):
        return None
    masks = [active for active in actives if active is not None]
    ran = reduce(np.logical_or, masks)
    return None if ran.all() else ran
