"""What one case exercises: the label it breaks, the classes of values, the rules of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uop.conformance.coverage.value_classes import classes_in
from uop.conformance.suite.case import Batch, Case, InvalidCase
from uop.spec.graph import slot_of
from uop.spec.ops.names import Op
from uop.spec.properties.interval import full
from uop.spec.uop import UOp
from uop.spec.walk import toposort

RULES = ("dtype", "shape", "device", "addrspace", "min_max", "axis")
"""The derived properties; a set of them has bit 1 << k for the k-th."""
OF_VALUES = 0b11
"""The rules that any result shows: its dtype and its shape."""
DEVICE, ADDRSPACE, MIN_MAX, AXIS = (1 << RULES.index(name) for name in RULES[2:])
INPUTS = frozenset({Op.PARAM, Op.BUFFER})
WITH_BODIES = frozenset({Op.FUNCTION, Op.CALL})
"""Their first operand is a body with PARAMs of its own."""
HANDED_ON = frozenset({Op.INDEX, Op.RESHAPE, Op.EXPAND, Op.PERMUTE, Op.FLIP, Op.AFTER})
"""What hands the elements of its first operand on as they are; STACK does so of every one."""


@dataclass(frozen=True, slots=True)
class Exercised:
    """The label that a case breaks, sets of value classes by `OP dtype`, sets of rules by op."""

    label: str
    values: Mapping[str, int]
    rules: Mapping[str, int]


def exercised(case: Case | InvalidCase) -> Exercised:
    """What a case exercises."""
    if isinstance(case, InvalidCase):
        return Exercised(case.label, {}, {})
    outside: list[UOp] = toposort([case.root], _operands)
    has_bodies = any(u.op in WITH_BODIES for u in outside)
    nodes = case.root.toposort() if has_bodies else outside
    rules = _rules(nodes, case.level == "property")
    return Exercised("", _values(outside, case.batches), rules)


def _values(nodes: Sequence[UOp], batches: Sequence[Batch]) -> dict[str, int]:
    """The classes of each input, by the ops that take it, or its elements, as an operand."""
    classes = _classes_of_inputs(nodes, batches)
    found: dict[str, int] = {}
    for u in nodes:
        for origin in _origins(u.src):
            met = classes.get(origin, 0)
            if met:
                key = f"{u.op.name} {origin.dtype.name}"
                found[key] = found.get(key, 0) | met
    return found


def _origins(operands: Iterable[UOp]) -> set[UOp]:
    """The nodes that the elements of some operands come from."""
    origins: set[UOp] = set()
    left, met = list(operands), set[UOp]()
    while left:
        u = left.pop()
        if u in met:
            continue
        met.add(u)
        # What has no elements hands nothing on.
        if u.op in HANDED_ON and 0 not in u.shape:
            left.append(u.src[0])
        elif u.op is Op.STACK and 0 not in u.shape:
            left.extend(u.src)
        else:
            origins.add(u)
    return origins


def _classes_of_inputs(nodes: Sequence[UOp], batches: Sequence[Batch]) -> dict[UOp, int]:
    """By PARAM or BUFFER; equal batches are looked at once."""
    distinct = {id(batch): batch for batch in batches}.values()
    found: dict[UOp, int] = {}
    for u in nodes:
        if u.op in INPUTS:
            slot = slot_of(u)
            flat = [b.inputs[slot].reshape(-1) for b in distinct if slot in b.inputs]
            if flat:
                together = np.concatenate(flat) if len(flat) > 1 else flat[0]
                found[u] = classes_in(together, u.dtype)
    return found


def _operands(u: UOp) -> tuple[UOp, ...]:
    return u.src[1:] if u.op in WITH_BODIES else u.src


def _rules(nodes: Sequence[UOp], narrow: bool) -> dict[str, int]:
    """The derived properties that say something at a node of each op.

    Intervals count where programs depend on them, which is on level property; axes where a value
    is on several devices.
    """
    found: dict[str, int] = {}
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
        found[name] = found.get(name, 0) | rules
    return found
