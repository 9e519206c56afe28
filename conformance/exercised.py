"""What one case exercises: the label it breaks, the classes of values, the rules of its nodes."""

from __future__ import annotations

from typing import cast

from uop.conformance.case import Case, InvalidCase
from uop.conformance.value_classes import classes_in
from uop.conformance.wire import Json
from uop.spec.case import slots
from uop.spec.ops.names import Op
from uop.spec.properties.interval import full
from uop.spec.uop import UOp
from uop.spec.walk import outside_bodies, toposort

RULES = ("dtype", "shape", "device", "addrspace", "min_max", "axis")
"""The derived properties; a set of them has bit 1 << k for the k-th."""
OF_VALUES = 0b11
"""The rules that any result shows: its dtype and its shape."""
DEVICE, ADDRSPACE, MIN_MAX, AXIS = (1 << RULES.index(name) for name in RULES[2:])
HANDED_ON = frozenset({Op.INDEX, Op.RESHAPE, Op.EXPAND, Op.PERMUTE, Op.FLIP, Op.AFTER})
"""What hands the elements of its first operand on as they are."""


def exercised(case: Case | InvalidCase) -> Json:
    """As JSON: a label, sets of value classes by `OP dtype`, sets of rules by op."""
    if isinstance(case, InvalidCase):
        return {"label": case.label, "values": {}, "rules": {}}
    return {"label": "", "values": _values(case), "rules": _rules(case)}


def _values(case: Case) -> dict[str, int]:
    """The classes of each input, by the ops that take it, or its elements, as an operand."""
    classes = _classes_of_inputs(case)
    found: dict[str, int] = {}
    for u in toposort([case.root], _operands):
        for operand in _operands(u):
            origin = _origin(operand)
            # The key is the node: a PARAM of a body may have the same slot.
            met = classes.get(origin, 0)
            if met:
                key = f"{u.op.name} {origin.dtype.name}"
                found[key] = found.get(key, 0) | met
    return found


def _classes_of_inputs(case: Case) -> dict[UOp, int]:
    """By PARAM or BUFFER; equal batches are looked at once."""
    batches = {id(batch): batch for batch in case.batches}.values()
    found: dict[UOp, int] = {}
    for slot, u in slots(case.root).items():
        arrays = [b.inputs[slot] for b in batches if slot in b.inputs]
        found[u] = 0
        for a in arrays:
            found[u] |= classes_in(a, u.dtype)
    return found


def _operands(u: UOp) -> tuple[UOp, ...]:
    return cast("tuple[UOp, ...]", outside_bodies(u))


def _origin(operand: UOp) -> UOp:
    """What an operand hands on; an operand without elements hands nothing on but itself."""
    while operand.op in HANDED_ON and 0 not in operand.shape:
        operand = operand.src[0]
    return operand


def _rules(case: Case) -> dict[str, int]:
    """The derived properties that say something at a node of each op.

    Intervals count where programs depend on them, which is on level property; axes where a value
    is on several devices.
    """
    found: dict[str, int] = {}
    narrow = case.level == "property"
    for u in case.root.toposort():
        rules = OF_VALUES
        if u.device is not None:
            rules |= DEVICE
            if isinstance(u.device, tuple) and u.axis is not None:
                rules |= AXIS
        if u.addrspace is not None:
            rules |= ADDRSPACE
        if narrow and u.min_max is not None and u.min_max != full(u.dtype):
            rules |= MIN_MAX
        found[u.op.name] = found.get(u.op.name, 0) | rules
    return found
