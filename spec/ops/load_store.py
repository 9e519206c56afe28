"""Declarations of LOAD and STORE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uop.spec.args import Device, LoadArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.ops import gradients
from uop.spec.ops.constraints import (
    distinct_devices,
    has_value,
    is_location,
    one_axis,
    one_device,
    one_dtype,
    one_shape,
    splits_over_devices,
)
from uop.spec.ops.kinds import effect, value
from uop.spec.ops.names import Op
from uop.spec.properties import axis, device, min_max
from uop.spec.properties.axis import shards
from uop.spec.registry import AccessKind, Clause, Constraint, Shape

if TYPE_CHECKING:
    from uop.spec.registry import Node


def _gate_not_bool(u: Node) -> str | None:
    found = u.src[2].dtype if len(u.src) > 2 else dtypes.bool
    return None if found is dtypes.bool else found.name


def _alt_differs(u: Node) -> str | None:
    found = [s.dtype for s in u.src[:2]]
    return None if len(set(found)) == 1 else " ".join(d.name for d in found)


def _target(u: Node) -> tuple[Device, Shape]:
    return arg_of(u, LoadArg).device, u.src[0].shape


def _stored_off_axis(u: Node) -> str | None:
    """STORE: value and location are sharded along the same axis."""
    target = u.src[0]
    for s in u.src[1:]:
        if shards(s) > 1 and (shards(target), target.axis) != (shards(s), s.axis):
            return f"axis {s.axis} into {'no axis' if target.axis is None else target.axis}"
    return None


value(
    "load",
    Op.LOAD,
    "Read a location or copy a value into a new anonymous buffer; alt where gate is false.",
    ("buf", "alt?", "gate?"),
    has_value("LOAD.c1"),
    Constraint("LOAD.c2", "alt has the dtype of buf", _alt_differs),
    Constraint("LOAD.c3", "gate is bool", _gate_not_bool),
    one_shape("LOAD.c4", "buf, alt and gate"),
    one_device("LOAD.c5"),
    splits_over_devices("LOAD.c6", _target),
    one_axis("LOAD.c7"),
    distinct_devices("LOAD.c8", device.load),
    Clause("LOAD.u1", "the gate is not UNSPECIFIED"),
    Clause("LOAD.u2", "LOCAL and REG memory is written before it is read"),
    arg=LoadArg,
    default_arg=LoadArg(),
    device=device.load,
    min_max=min_max.load,
    axis=axis.load,
    gradient=gradients.load,
    access=AccessKind.READ,
    by_types=True,
)

effect(
    "store",
    Op.STORE,
    "Write val into the location buf where gate is true; INVALID elements change nothing.",
    ("buf", "val", "gate?"),
    one_shape("STORE.c1", "buf, val and gate"),
    one_dtype("STORE.c2", 0, 1),
    Constraint("STORE.c3", "gate is bool", _gate_not_bool),
    is_location("STORE.c4", "buf"),
    one_device("STORE.c5"),
    Constraint("STORE.c6", "a sharded val or gate is sharded as buf is", _stored_off_axis),
    Clause("STORE.u1", "the gate is not UNSPECIFIED"),
    Clause("STORE.u2", "two accesses to one element, one of them a write, are ordered"),
    Clause("STORE.u3", "no element is written twice at once"),
    access=AccessKind.WRITE,
    by_types=True,
)
