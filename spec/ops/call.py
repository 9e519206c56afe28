"""Declarations of the call ops: FUNCTION, CALL, TUPLE and the like."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from uop.spec.args import GetTupleArg, ParamArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.graph import free_params, slot_of
from uop.spec.ops.constraints import op_among
from uop.spec.ops.kinds import declare, effect
from uop.spec.ops.names import Op
from uop.spec.properties import device, dtype, min_max
from uop.spec.properties.axis import shards
from uop.spec.properties.shape import is_fixed
from uop.spec.registry import Clause, Constraint

if TYPE_CHECKING:
    from uop.spec.registry import Node, Shape


def _no_value(u: Node) -> str | None:
    found = [s.op.name for s in u.src if s.dtype is dtypes.void]
    return found[0] if found else None


def _nothing_returned(u: Node) -> str | None:
    source = u.src[0]
    if source.op is Op.TUPLE or (source.op is Op.FUNCTION and source.src[0].op is Op.TUPLE):
        return None
    return source.op.name


def _no_element(u: Node) -> str | None:
    if _nothing_returned(u):
        return None
    source, idx = u.src[0], arg_of(u, GetTupleArg).idx
    count = len(source.src if source.op is Op.TUPLE else source.src[0].src)
    return None if 0 <= idx < count else f"{idx} of {count}"


def _misfit(u: Node, agree: Callable[[Shape, Shape], bool]) -> str | None:
    """Describe the first PARAM of the body whose argument does not fit: in dtype, range or shape.

    Only fixed shapes must agree; symbolic ones are compared under bindings.
    """
    for param in free_params(u.src[0]):
        slot = slot_of(param)
        if slot >= len(u.src) - 1:
            return f"slot {slot} of {len(u.src) - 1} arguments"
        argument = u.src[1 + slot]
        shapes = argument.shape, param.shape
        of_one_shape = not all(map(is_fixed, shapes)) or agree(*shapes)
        if not (of_one_shape and argument.dtype is param.dtype and _in_range(argument, param)):
            return f"slot {slot}: {_spelled(argument)} for a PARAM of {_spelled(param)}"
    return None


def _spelled(u: Node) -> str:
    shape = ", ".join(str(size) if isinstance(size, int) else "expr" for size in u.shape)
    interval = u.min_max if u.dtype is dtypes.index else None
    within = "" if interval is None else f" from {interval.min} to {interval.max}"
    return f"{u.dtype.name}[{shape}]{within}"


def _in_range(argument: Node, param: Node) -> bool:
    if arg_of(param, ParamArg).min is None:
        return True
    wide, found = param.min_max, argument.min_max
    if wide is None or found is None:
        return True
    return wide.min <= found.min and found.max <= wide.max


def _argument_differs(u: Node) -> str | None:
    return _misfit(u, lambda a, b: a == b)


def _shards_differ(u: Node) -> str | None:
    """Describe how a PARAM and its argument differ in sharding (D-073)."""
    for param in free_params(u.src[0]):
        slot = slot_of(param)
        argument = u.src[1 + slot] if slot < len(u.src) - 1 else param
        if max(shards(argument), shards(param)) == 1:
            continue
        if (argument.device, argument.axis) != (param.device, param.axis):
            return (
                f"slot {slot}: {argument.device} axis {argument.axis} "
                f"for a PARAM on {param.device} axis {param.axis}"
            )
    return None


def _buffer_differs(u: Node) -> str | None:
    """A kernel sees its buffers flat (D-017): only the number of elements counts."""
    return _misfit(u, lambda a, b: prod(a) == prod(b))


effect(
    "call",
    Op.FUNCTION,
    "The body TUPLE with each PARAM k replaced by the argument a_k.",
    ("body", "a*"),
    op_among("FUNCTION.c1", "the body is a TUPLE", 0, Op.TUPLE),
    Constraint(
        "FUNCTION.c2",
        "each PARAM k of the body has an argument a_k of its shape and dtype",
        _argument_differs,
    ),
    Constraint("FUNCTION.c3", "a sharded argument has a PARAM that is sharded so", _shards_differ),
    device=device.of_arguments,
)

effect(
    "call",
    Op.CALL,
    "Run a kernel: each PARAM k of the body is the buffer a_k.",
    ("body", "a*"),
    op_among(
        "CALL.c1",
        "the body is a SINK, LINEAR, PROGRAM or CUSTOMFUNCTION",
        0,
        *(Op.SINK, Op.LINEAR, Op.PROGRAM, Op.CUSTOMFUNCTION),
    ),
    Constraint(
        "CALL.c2",
        "each PARAM k of the body has a buffer a_k of its size and dtype",
        _buffer_differs,
    ),
    Clause("CALL.u1", "what belongs to kernels stands in the body of a CALL"),
    Clause("CALL.n2", "an argument is a BUFFER, in any shape, or a value that is only read"),
    Clause("CALL.n3", "a kernel has no more parallel ranges than numpy has axes"),
    Clause("CALL.n4", "in a kernel the op has a meaning"),
    Clause("CALL.n5", "what is run device by device has no kernels"),
    device=device.of_arguments,
)

effect(
    "call",
    Op.TUPLE,
    "Pack values: what a FUNCTION returns.",
    ("v*",),
    Constraint("TUPLE.c1", "operands have a value", _no_value),
)

declare(
    "call",
    Op.GETTUPLE,
    "The element idx of a TUPLE, or of what a FUNCTION returns.",
    ("T",),
    Constraint("GETTUPLE.c1", "T is a TUPLE or a FUNCTION", _nothing_returned),
    Constraint("GETTUPLE.c2", "idx is an element of T", _no_element),
    arg=GetTupleArg,
    dtype=dtype.of_element("dtype"),
    shape=dtype.of_element("shape"),
    device=device.element,
    min_max=min_max.gettuple,
    axis=dtype.of_element("axis"),
)
