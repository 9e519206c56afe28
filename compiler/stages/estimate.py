"""What it costs to compute the values of a function, or to store them (in rangeify).

Costs count ops on one element. A stored value is computed and written once, and loaded by each
reader; any other is computed at each index that it is read at. So a value is stored if what is
computed too often costs more than a store of each element and all of its loads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from uop.compiler.stages.sites import READ_IN_PLACE, count, operands
from uop.spec.args import ReduceArg, arg_of
from uop.spec.ops.names import SOURCES, VIEWS, Op
from uop.spec.uop import UOp

TRANSCENDENTAL = (Op.EXP2, Op.LOG2, Op.SIN, Op.POW, Op.THREEFRY)
"""Ops that cost as much as several."""
SEVERAL = 16
MEMORY = 8
"""A store or a load of one element. What costs no more than this is never stored."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of the values of a function."""

    views: Collection[UOp]
    """The views of inputs, which are read from the memory of these."""
    weights: Mapping[UOp, float]
    """The cost of an element, computed from inputs and from values that are stored in any case."""
    folding: Collection[UOp]
    """The values that a fold is computed for, which is not stored in any case."""

    def is_light(self, u: UOp) -> bool:
        return self.weights[u] <= MEMORY

    def is_recomputed(self, u: UOp, evaluations: float) -> bool:
        """Whether so many evaluations cost less than to store the elements and to load them."""
        elements = count(u.shape)
        if evaluations <= elements or self.is_light(u):
            return True
        return self.weights[u] * (evaluations - elements) <= MEMORY * (elements + evaluations)


def costs_of(order: Sequence[UOp]) -> Costs:
    """The costs of values, sources first."""
    views: set[UOp] = set()
    for u in order:
        if u.op in SOURCES or (u.op in VIEWS and u.src[0] in views):
            views.add(u)
    copies = _copies(order)
    weights: dict[UOp, float] = {}
    folding: set[UOp] = set()
    costs = Costs(views, weights, folding)
    stored: set[UOp] = set()
    for u in order:
        if u in views:
            weights[u] = 0
            continue
        computed = [s for s in operands(u) if s not in stored]
        below = sum(weights[s] for s in computed)
        weights[u] = _own(u) + below
        if u.op is Op.REDUCE:
            (source,) = u.src[:1]
            folded = (source.shape[axis] for axis in arg_of(u, ReduceArg).axes)
            weights[u] *= count(tuple(folded))
        heavy = not costs.is_light(u)
        if heavy and (u.op is Op.REDUCE or not folding.isdisjoint(computed)):
            folding.add(u)
        # Read at so many indices, it is stored wherever its readers are computed.
        if u.op is Op.CONTIGUOUS or not costs.is_recomputed(u, copies[u] * count(u.shape)):
            stored.add(u)
    return costs


def _own(u: UOp) -> float:
    return SEVERAL if u.op in TRANSCENDENTAL else 1


def _copies(order: Sequence[UOp]) -> Mapping[UOp, float]:
    """How often each element is read, seen from its readers and through views, if each of them is
    computed once.
    """
    copies: dict[UOp, float] = dict.fromkeys(order, 0)
    in_place: set[UOp] = set()
    for u in reversed(order):
        copies[u] += u in in_place
        for s in operands(u):
            if u.op in READ_IN_PLACE and s.shape == u.shape:
                in_place.add(s)
            else:
                repeats = count(u.shape) / max(count(s.shape), 1) if u.op is not Op.REDUCE else 1
                through = copies[u] if u.op in VIEWS else 1
                copies[s] += through * max(repeats, 1)
    return copies
