"""Declares ops by their kind: values, effects, counters. `rules` are further fields of OpDef."""

from __future__ import annotations

from typing import Any

from uop.spec.conditions.labels import Condition
from uop.spec.dtype import dtypes
from uop.spec.ops.constraints import is_index
from uop.spec.ops.names import Op
from uop.spec.properties import axis, device, dtype, min_max, shape
from uop.spec.properties.words import of_src
from uop.spec.registry import Clause, Constraint, OpDef, define


def declare(
    section: str, op: Op, doc: str, src: tuple[str, ...], *conditions: Condition, **rules: Any
) -> OpDef:
    """Declare an op of a section of the spec; its conditions are constraints and clauses."""
    constraints = tuple(c for c in conditions if isinstance(c, Constraint))
    clauses = tuple(c for c in conditions if isinstance(c, Clause))
    return define(OpDef(op, section, doc, src, constraints=constraints, clauses=clauses, **rules))


def value(
    section: str, op: Op, doc: str, src: tuple[str, ...], *conditions: Condition, **rules: Any
) -> OpDef:
    """Declare an op on a value; by default its properties are those of the first operand."""
    own: dict[str, Any] = {
        "dtype": of_src(0, "dtype"),
        "shape": shape.of_first,
        "min_max": of_src(0, "min_max"),
        "axis": axis.of_first,
    }
    return declare(section, op, doc, src, *conditions, **(own | rules))


def effect(
    section: str, op: Op, doc: str, src: tuple[str, ...], *conditions: Condition, **rules: Any
) -> OpDef:
    """Declare an op without a value: void, of shape (), with at most a device."""
    own = {"dtype": dtype.always(dtypes.void), "shape": shape.scalar, "min_max": min_max.none}
    return declare(section, op, doc, src, *conditions, **own, **rules)


def counter(section: str, op: Op, doc: str, *clauses: Clause, **rules: Any) -> OpDef:
    """Declare an op that counts from 0 to its bound - 1: a loop variable or a work item."""
    own = {"dtype": dtype.always(dtypes.index), "shape": shape.scalar, "min_max": min_max.counter}
    title = "the bound is a ()-shaped index, not negative"
    bound = is_index(f"{op.name}.c1", title, 0, "bound")
    return declare(
        section, op, doc, ("bound",), bound, *clauses, device=device.null, **own, **rules
    )
