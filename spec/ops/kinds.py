"""Declares ops by their kind: values, effects, counters. `rules` are further fields of OpDef."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict, Unpack

from uop.spec.args import AddrSpace, Arg, Device
from uop.spec.conditions.labels import Condition
from uop.spec.dtype import DType, Number, dtypes
from uop.spec.latitude import Latitude
from uop.spec.ops.constraints import is_index
from uop.spec.ops.names import Op
from uop.spec.properties import axis, device, dtype, min_max, shape
from uop.spec.properties.interval import Interval
from uop.spec.properties.words import of_src
from uop.spec.registry import (
    AccessKind,
    Build,
    Clause,
    Constraint,
    Gradient,
    Node,
    OpDef,
    Shape,
    define,
)


class Rules(TypedDict, total=False):
    """The fields of an OpDef that a declaration names."""

    dtype: Callable[[Node], DType]
    shape: Callable[[Node], Shape]
    device: Callable[[Node], Device]
    addrspace: Callable[[Node], AddrSpace | None]
    min_max: Callable[[Node], Interval | None]
    axis: Callable[[Node], int | None]
    arg: type[Arg]
    default_arg: Arg
    dtypes: Sequence[DType]
    latitude: Latitude
    undefined: str
    decomposition: Callable[[Build, Node], Node | None]
    gradient: Gradient
    cases: str
    by_types: bool
    is_view: bool
    is_transcendental: bool
    access: AccessKind
    identity: Callable[[DType], Number]


def declare(
    section: str,
    op: Op,
    doc: str,
    src: tuple[str, ...],
    *conditions: Condition,
    **rules: Unpack[Rules],
) -> OpDef:
    """Declare an op of a section of the spec; its conditions are constraints and clauses."""
    constraints = tuple(c for c in conditions if isinstance(c, Constraint))
    clauses = tuple(c for c in conditions if isinstance(c, Clause))
    return define(OpDef(op, section, doc, src, constraints=constraints, clauses=clauses, **rules))


def value(
    section: str,
    op: Op,
    doc: str,
    src: tuple[str, ...],
    *conditions: Condition,
    **rules: Unpack[Rules],
) -> OpDef:
    """Declare an op on a value; by default its properties are those of the first operand."""
    own: Rules = {
        "dtype": of_src(0, "dtype"),
        "shape": shape.of_first,
        "min_max": of_src(0, "min_max"),
        "axis": axis.of_first,
        **rules,
    }
    return declare(section, op, doc, src, *conditions, **own)


def effect(
    section: str,
    op: Op,
    doc: str,
    src: tuple[str, ...],
    *conditions: Condition,
    **rules: Unpack[Rules],
) -> OpDef:
    """Declare an op without a value: void, of shape (), with at most a device."""
    own: Rules = {
        "dtype": dtype.always(dtypes.void),
        "shape": shape.scalar,
        "min_max": min_max.none,
        **rules,
    }
    return declare(section, op, doc, src, *conditions, **own)


def counter(section: str, op: Op, doc: str, *clauses: Clause, **rules: Unpack[Rules]) -> OpDef:
    """Declare an op that counts from 0 to its bound - 1: a loop variable or a work item."""
    own: Rules = {
        "dtype": dtype.always(dtypes.index),
        "shape": shape.scalar,
        "device": device.null,
        "min_max": min_max.counter,
        **rules,
    }
    title = "the bound is a ()-shaped index, not negative"
    bound = is_index(f"{op.name}.c1", title, 0, "bound")
    return declare(section, op, doc, ("bound",), bound, *clauses, **own)
