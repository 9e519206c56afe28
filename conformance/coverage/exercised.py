"""Computes the coverage of one case: broken label, value classes, property rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uop.conformance.coverage.value_classes import classes_in
from uop.conformance.suite.case import Batch, Case, InvalidCase
from uop.spec.graph import CALLS, LEAVES, outside_bodies, slot_of, toposort
from uop.spec.ops.names import Op
from uop.spec.properties.interval import full
from uop.spec.uop import UOp

RULES = ("dtype", "shape", "device", "addrspace", "min_max", "axis")
"""The derived properties. A set of rules is a bit mask: bit k stands for the k-th."""
OF_VALUES = 0b11
"""The rules that every node exercises: dtype and shape."""
DEVICE, ADDRSPACE, MIN_MAX, AXIS = (1 << RULES.index(name) for name in RULES[2:])


@dataclass(frozen=True, slots=True)
class Exercised:
    """The coverage of a case: broken label, value classes by `OP dtype`, rules by op."""

    label: str
    values: Mapping[str, int]
    rules: Mapping[str, int]


def exercised(case: Case | InvalidCase) -> Exercised:
    """Compute the coverage of a case."""
    if isinstance(case, InvalidCase):
        return Exercised(case.label, {}, {})
    outside: list[UOp] = toposort([case.root], outside_bodies)
    has_bodies = any(u.op in CALLS for u in outside)
    nodes = case.root.toposort() if has_bodies else outside
    rules = _rules(nodes, case.level == "property")
    return Exercised("", _values(outside, case.batches), rules)


def _values(nodes: Sequence[UOp], batches: Sequence[Batch]) -> dict[str, int]:
    """The value classes of the inputs, by `OP dtype` of each op that reads an input's elements."""
    classes = _classes_of_inputs(nodes, batches)
    result: dict[str, int] = {}
    for u in nodes:
        for origin in _origins(u.src):
            value_classes = classes.get(origin, 0)
            if value_classes:
                key = f"{u.op.name} {origin.dtype.name}"
                result[key] = result.get(key, 0) | value_classes
    return result


def _origins(operands: Iterable[UOp]) -> set[UOp]:
    """The nodes that produce the elements of the operands, through movement ops."""
    origins: set[UOp] = set()
    pending, visited = list(operands), set[UOp]()
    while pending:
        u = pending.pop()
        if u in visited:
            continue
        visited.add(u)
        passes = u.declaration.is_view and u.op not in (Op.PAD, Op.SHRINK)
        # A node without elements passes none through.
        if (passes or u.op in (Op.INDEX, Op.AFTER)) and 0 not in u.shape:
            pending.append(u.src[0])
        elif u.op is Op.STACK and 0 not in u.shape:
            pending.extend(u.src)
        else:
            origins.add(u)
    return origins


def _classes_of_inputs(nodes: Sequence[UOp], batches: Sequence[Batch]) -> dict[UOp, int]:
    """The value classes by PARAM or BUFFER. Each distinct batch is classified once."""
    distinct = {id(batch): batch for batch in batches}.values()
    result: dict[UOp, int] = {}
    for u in nodes:
        if u.op in LEAVES:
            slot = slot_of(u)
            flat = [b.inputs[slot].reshape(-1) for b in distinct if slot in b.inputs]
            if flat:
                elements = np.concatenate(flat) if len(flat) > 1 else flat[0]
                result[u] = classes_in(elements, u.dtype)
    return result


def _rules(nodes: Sequence[UOp], narrow: bool) -> dict[str, int]:
    """The derived properties that the nodes of each op exercise.

    Intervals count on level property only (`narrow`), axes for values on several devices.
    """
    result: dict[str, int] = {}
    for u in nodes:
        rules = OF_VALUES
        if u.device is not None:
            rules |= DEVICE
            if isinstance(u.device, tuple) and u.axis is not None:
                rules |= AXIS
        if u.addrspace is not None:
            rules |= ADDRSPACE
        if narrow and u.min_max is not None and u.min_max != full(u.dtype):
            rules |= MIN_MAX
        name = u.op.name
        result[name] = result.get(name, 0) | rules
    return result
