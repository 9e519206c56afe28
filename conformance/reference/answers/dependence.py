"""Finds the elements of its operands that an element of a node depends on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from uop.interpreter.numeric.storage import Mask
from uop.interpreter.rules.movement import value_sources
from uop.interpreter.tensor.evaluation import MEANINGS
from uop.interpreter.values import Value
from uop.spec.ops.names import VIEWS, Op
from uop.spec.uop import UOp

MOVING = VIEWS | {Op.STACK, Op.SLICE, Op.INDEX}
"""Ops that copy elements: evaluating them on distinct numbers shows where each comes from."""
TOGETHER = frozenset({Op.REDUCE, Op.REPLICATED})
"""Ops whose elements need all elements along an axis of the operand."""


def needed_of(root: UOp, mask: Mask, values: Mapping[UOp, Value]) -> dict[UOp, Mask]:
    """The elements of each node that the elements `mask` of the root need."""
    needed = {root: mask}
    for u in reversed(root.toposort()):
        if u not in needed or u not in values:
            continue
        for s, part in _needed_by(u, needed[u], values).items():
            needed[s] = part | needed[s] if s in needed else part
    return needed


def _needed_by(u: UOp, mask: Mask, values: Mapping[UOp, Value]) -> dict[UOp, Mask]:
    """The elements of each operand that the elements `mask` of a node need; all where unknown."""
    sources = [s for s in value_sources(u) if s in values]
    # A SLICE may read the bytes of one dtype as another.
    if u.op in MOVING and u.dtype is u.src[0].dtype:
        return _moved(u, mask, sources, values)
    needed: dict[UOp, Mask] = {}
    for s in sources:
        shape = values[s].data.shape
        if u.op in TOGETHER and mask.ndim == len(shape):
            part = np.broadcast_to(mask, shape)
        elif shape == mask.shape or (u.declaration.is_elementwise and u.op is not Op.BITCAST):
            part = _unbroadcast(mask, shape)
        else:
            part = np.ones(shape, np.bool_)
        needed[s] = needed[s] | part if s in needed else part
    return needed


def _moved(u: UOp, mask: Mask, sources: list[UOp], values: Mapping[UOp, Value]) -> dict[UOp, Mask]:
    """The elements that a movement op copies from; for an INDEX also its index numbers."""
    first: dict[UOp, int] = {}
    numbered: list[Value] = []
    start = 1
    for position, s in enumerate(sources):
        data = values[s].data
        if u.op is Op.INDEX and position:
            numbered.append(values[s])
            continue
        begin = first.setdefault(s, start)
        numbered.append(Value(np.arange(begin, begin + data.size).reshape(data.shape)))
        start = max(start, begin + data.size)
    came_from = MEANINGS[u.op](u, *numbered).data
    chosen = came_from[mask]
    needed: dict[UOp, Mask] = {}
    for s in sources:
        data = values[s].data
        if s in first:
            part = np.isin(np.arange(first[s], first[s] + data.size), chosen)
            needed[s] = part.reshape(data.shape)
        else:
            needed[s] = np.ones(data.shape, np.bool_)
    return needed


def _unbroadcast(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """The elements of an operand of this shape that broadcast to those of a mask."""
    lead = mask.ndim - len(shape)
    stretched = tuple(
        k for k in range(mask.ndim) if k < lead or (shape[k - lead] == 1 and mask.shape[k] != 1)
    )
    return np.asarray(mask.any(axis=stretched, keepdims=True)).reshape(shape)
