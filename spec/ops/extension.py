"""Declarations of the extension ops: ops of related languages that the core does not have.

Each has a decomposition that defines its meaning (D-085), except those that are names alone.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from uop.spec import args
from uop.spec import latitude as lat
from uop.spec.args import arg_of
from uop.spec.dtype import VALUES, dtypes
from uop.spec.ops import expansion
from uop.spec.ops.constraints import distinct_devices, has_value
from uop.spec.ops.elementwise import AB, INTS_INDEX, elementwise
from uop.spec.ops.kinds import effect, value
from uop.spec.ops.names import Op
from uop.spec.ops.reduce import folds
from uop.spec.properties import addrspace, axis, device, min_max, shape
from uop.spec.properties.axis import shards
from uop.spec.properties.words import from_arg, says
from uop.spec.registry import DIVISOR_0, Constraint

if TYPE_CHECKING:
    from uop.spec.args import Device
    from uop.spec.registry import Node, Shape

SECTION = "extension"


def _lanes(u: Node) -> int:
    """The number of positions of the axes of an UNROLL or CONTRACT."""
    return math.prod(arg_of(u, args.LanesArg).factors)


def _wrong_axes(u: Node) -> str | None:
    arg = arg_of(u, args.LanesArg)
    fine = len(arg.axes) == len(arg.factors) == len(set(arg.axes)) and all(arg.factors)
    return None if fine and min(arg.factors, default=1) > 0 else f"{arg.axes} x {arg.factors}"


def _wrong_vector(u: Node) -> str | None:
    v = u.src[0]
    return None if len(v.shape) <= 1 else f"shape {v.shape}"


def _lanes_left(u: Node) -> str | None:
    count = math.prod(u.src[0].shape)
    return f"{count} lanes by {_lanes(u)}" if count == 0 or count % _lanes(u) else None


@says("the lanes of one position")
def _unrolled(u: Node) -> Shape:
    count = math.prod(u.src[0].shape) // _lanes(u)
    return () if count == 1 else (count,)


@says("the lanes of all positions")
def _contracted(u: Node) -> Shape:
    return (_lanes(u) * math.prod(u.src[0].shape),)


def _no_loop(u: Node) -> str | None:
    for r in u.src[1:]:
        if r.op is not Op.RANGE:
            return r.op.name
        if r.src[0].op is not Op.CONST:
            return f"a RANGE up to {r.src[0].op.name}"
    return None


@says("the bound of each RANGE")
def _staged(u: Node) -> Shape:
    return (*(expansion.bound(r) for r in u.src[1:]), *u.src[0].shape)


@says("that of the arg, else that of the first operand that has one")
def _staged_on(u: Node) -> Device:
    return arg_of(u, args.StageArg).device or device.first_that_has_one(u)


def _no_pointer(u: Node) -> str | None:
    ptr = u.src[0]
    base = ptr.src[0] if ptr.op is Op.INDEX and len(ptr.src) == 2 else ptr
    if ptr.addrspace is not None and (len(base.shape) == 1 or ptr.op is Op.PTRADD):
        return None
    return f"{ptr.op.name} of shape {ptr.shape}"


def _wrong_offset(u: Node) -> str | None:
    offset = u.src[1]
    if offset.shape != () or not (offset.dtype is dtypes.index or offset.dtype.is_int):
        return f"{offset.dtype.name}{list(offset.shape)}"
    return None


def _between_elements(u: Node) -> str | None:
    at, size = u.src[1].min_max, u.src[0].dtype.itemsize
    if arg_of(u, args.PtrAddArg).unit is args.Unit.BYTES and at and at.is_single and at.min % size:
        return f"{at.min} bytes for elements of {size}"
    return None


def _no_shards(u: Node) -> str | None:
    t = u.src[0]
    if shards(t) > 1 and t.axis == 0:
        return None
    return f"{t.device} axis {t.axis}"


@says("that of one shard")
def _one_shard(u: Node) -> Shape:
    first, *rest = u.src[0].shape
    return (first // shards(u.src[0]), *rest)


_named_device = from_arg("device")


def _no_device(u: Node) -> str | None:
    named = _named_device(u)
    return None if named else repr(named)


def _negative(u: Node) -> str | None:
    found = arg_of(u, args.UniqueArg).id
    return None if found >= 0 else str(found)


def _expands(name: str, of: str) -> tuple[Constraint, ...]:
    """What the axes and the operand of UNROLL and CONTRACT are."""
    return (
        has_value(f"{name}.c1"),
        Constraint(f"{name}.c2", "axes are distinct, each with a factor of 1 or more", _wrong_axes),
        Constraint(f"{name}.c3", f"{of} is a vector or a scalar", _wrong_vector),
    )


_value = partial(value, SECTION)

elementwise(
    Op.CDIV,
    AB,
    "a / b rounded toward zero; the lowest value divided by -1 is itself.",
    INTS_INDEX,
    section=SECTION,
    undefined=DIVISOR_0,
    decomposition=expansion.cdiv,
)
elementwise(
    Op.CMOD,
    AB,
    "a - b * CDIV(a, b): the sign of the dividend.",
    INTS_INDEX,
    section=SECTION,
    undefined=DIVISOR_0,
    decomposition=expansion.cmod,
)
elementwise(
    Op.MIN,
    AB,
    "The smaller one; on bool AND. Beside a NaN the interpreter gives NaN, a backend either "
    "operand. Of two zeros the interpreter gives -0, a backend either. Mostly the op of a REDUCE.",
    VALUES,
    section=SECTION,
    interval=min_max.minimum,
    latitude=lat.MAX,
    identity=lambda dtype: dtype.max,
    decomposition=expansion.minimum,
)
for _op, _marks in ((Op.NOOP, ""), (Op.PRECAST, " It marks the operand of a BITCAST.")):
    _value(
        _op,
        f"T itself.{_marks}",
        ("T",),
        has_value(f"{_op.name}.c1"),
        decomposition=lambda build, u: u.src[0],
    )
_value(
    Op.UNROLL,
    "One position of v along some axes. The CONTRACT around it goes through all positions.",
    ("v",),
    *_expands("UNROLL", "v"),
    Constraint("UNROLL.c4", "the factors divide the lanes of v, which are some", _lanes_left),
    arg=args.LanesArg,
    shape=_unrolled,
    axis=axis.null,
)
_value(
    Op.CONTRACT,
    "The lanes of x for every position of the axes, in row-major order.",
    ("x",),
    *_expands("CONTRACT", "x"),
    arg=args.LanesArg,
    shape=_contracted,
    axis=axis.null,
    decomposition=expansion.contract,
)
_value(
    Op.STAGE,
    "The values of x for all positions of the RANGEs, put down in memory: an axis for each RANGE.",
    ("x", "r*"),
    has_value("STAGE.c1"),
    Constraint("STAGE.c2", "operands after x are RANGEs up to a CONST", _no_loop),
    distinct_devices("STAGE.c3", _staged_on),
    arg=args.StageArg,
    default_arg=args.StageArg(),
    shape=_staged,
    device=_staged_on,
    axis=axis.null,
    decomposition=expansion.stage,
)
_value(
    Op.PTRADD,
    "The element of a flat location at an offset, counted in elements or in bytes.",
    ("ptr", "offset"),
    Constraint("PTRADD.c1", "ptr is a flat location, or an element of one", _no_pointer),
    Constraint("PTRADD.c2", "the offset is a ()-shaped integer", _wrong_offset),
    Constraint("PTRADD.c3", "bytes are those of whole elements", _between_elements),
    arg=args.PtrAddArg,
    shape=shape.scalar,
    addrspace=addrspace.of_first,
    axis=axis.null,
    decomposition=expansion.pointer,
)
_value(
    Op.ALLREDUCE,
    "The shards of T folded into one, on a device or as equal copies on several.",
    ("T",),
    folds("ALLREDUCE.c1"),
    Constraint("ALLREDUCE.c2", "T is sharded along axis 0", _no_shards),
    Constraint("ALLREDUCE.c3", "a device is given", _no_device),
    distinct_devices("ALLREDUCE.c4", _named_device),
    arg=args.AllReduceArg,
    shape=_one_shard,
    device=_named_device,
    min_max=min_max.range_of_dtype,
    axis=axis.null,
    decomposition=expansion.all_reduce,
)
for _op, _memories in ((Op.UNIQUE, "memories"), (Op.LUNIQUE, "the memories of one body")):
    effect(
        SECTION,
        _op,
        f"A number that distinguishes {_memories}.",
        (),
        Constraint(f"{_op.name}.c1", "the id is 0 or more", _negative),
        arg=args.UniqueArg,
        device=device.null,
    )
effect(
    SECTION,
    Op.DEVICE,
    "The name of a device, or of several.",
    (),
    Constraint("DEVICE.c1", "a device is given", _no_device),
    distinct_devices("DEVICE.c2", _named_device),
    arg=args.PlaceArg,
    device=device.null,
)
