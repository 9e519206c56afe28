"""Declarations of the source ops: PARAM, BUFFER, CONST and BINARY."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from uop.spec import args
from uop.spec.args import arg_of
from uop.spec.dtype import dtypes
from uop.spec.ops.constraints import distinct_devices, is_shape, splits_over_devices
from uop.spec.ops.kinds import declare
from uop.spec.ops.names import Op
from uop.spec.properties import axis, device, dtype, min_max, shape
from uop.spec.properties.shape import index_values
from uop.spec.properties.words import from_arg
from uop.spec.registry import Clause, Constraint, Shape

if TYPE_CHECKING:
    from uop.spec.registry import Node


def _void_or_negative_slot(u: Node) -> str | None:
    arg = arg_of(u, args.ParamArg, args.BufferArg)
    if arg.dtype is dtypes.void:
        return "dtype void"
    return None if arg.slot >= 0 else f"slot {arg.slot}"


def _wrong_range(u: Node) -> str | None:
    arg = arg_of(u, args.ParamArg)
    if arg.min is None and arg.max is None:
        return None
    if arg.min is None or arg.max is None or not -(1 << 63) <= arg.min <= arg.max < 1 << 63:
        return f"from {arg.min} to {arg.max}"
    is_value = arg.device is None and arg.addrspace is None
    if arg.dtype is dtypes.index and not u.src[0].src and is_value:
        return None
    return f"{arg.dtype.name}, {len(u.src[0].src)} axes"


def _target(u: Node) -> tuple[args.Device, Shape]:
    return arg_of(u, args.ParamArg, args.BufferArg).device, index_values(u.src[0])


def _bits_outside(u: Node) -> str | None:
    arg = arg_of(u, args.ConstArg)
    if arg.dtype is dtypes.void:
        return "dtype void"
    return None if 0 <= arg.bits < 1 << arg.dtype.bits else f"{arg.bits:#x} for {arg.dtype.name}"


_source = partial(declare, "source")

_source(
    Op.PARAM,
    "Placeholder of shape s: an input by slot, substituted where a FUNCTION is called.",
    ("s",),
    is_shape("PARAM.c1", 0),
    Constraint("PARAM.c2", "slot is 0 or more, dtype is not void", _void_or_negative_slot),
    splits_over_devices("PARAM.c3", _target),
    Constraint("PARAM.c4", "a range is from min to max, of a ()-shaped index", _wrong_range),
    distinct_devices("PARAM.c5", from_arg("device")),
    arg=args.ParamArg,
    dtype=from_arg("dtype"),
    shape=shape.operand(0),
    device=from_arg("device"),
    addrspace=from_arg("addrspace"),
    min_max=min_max.param,
    axis=axis.from_devices,
)

_source(
    Op.BUFFER,
    "Memory of shape s in a slot: what STORE writes to.",
    ("s",),
    is_shape("BUFFER.c1", 0),
    Constraint("BUFFER.c2", "slot is 0 or more, dtype is not void", _void_or_negative_slot),
    splits_over_devices("BUFFER.c3", _target),
    distinct_devices("BUFFER.c4", from_arg("device")),
    Clause("BUFFER.n1", "a BUFFER inside a kernel is LOCAL or REG"),
    Clause("BUFFER.n2", "device by device, a slot is stored to on one device or tuple"),
    arg=args.BufferArg,
    dtype=from_arg("dtype"),
    shape=shape.operand(0),
    device=from_arg("device"),
    addrspace=from_arg("addrspace"),
    axis=axis.from_devices,
    undefined="Elements that were neither given as input nor written.",
)

_source(
    Op.CONST,
    "One constant of shape (), held by its bits.",
    (),
    Constraint("CONST.c1", "the bits are a pattern of the dtype, which is not void", _bits_outside),
    arg=args.ConstArg,
    dtype=from_arg("dtype"),
    shape=shape.scalar,
    device=device.null,
    min_max=min_max.const,
)

_source(
    Op.BINARY,
    "Raw bytes: uint8, one element a byte. Data in a graph, machine code in a PROGRAM.",
    (),
    arg=args.BinaryArg,
    dtype=dtype.always(dtypes.uint8),
    shape=shape.of_data,
    device=device.null,
    min_max=min_max.binary,
)
