"""Declarations of the elementwise ops, which broadcast their operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from uop.spec import latitude as lat
from uop.spec.args import DTypeArg, arg_of
from uop.spec.dtype import FLOATS, INTS, NUMBERS, VALUES, DType, DTypesOf, Kind, dtypes
from uop.spec.ops import gradients
from uop.spec.ops.constraints import broadcastable, dtype_among, one_axis, one_device, one_dtype
from uop.spec.ops.kinds import Rules, declare
from uop.spec.ops.names import Op
from uop.spec.properties import axis, dtype, min_max, shape
from uop.spec.properties.interval import Interval
from uop.spec.properties.words import from_arg, of_src
from uop.spec.registry import COUNT, DIVISOR_0, Constraint, OpDef

if TYPE_CHECKING:
    from uop.spec.registry import Node

INTS_INDEX = DTypesOf(*INTS.kinds, Kind.INDEX)
INTS_BOOL = DTypesOf(*INTS.kinds, Kind.BOOL)
BOOL = (dtypes.bool,)


def elementwise(
    op: Op,
    src: tuple[str, ...],
    doc: str,
    allowed: Sequence[DType],
    *,
    section: str = "elementwise",
    result: Callable[[Node], DType] | None = None,
    interval: Callable[[Node], Interval | None] = min_max.range_of_dtype,
    one_dtype_at: tuple[int, ...] | None = None,
    extra: tuple[Constraint, ...] = (),
    axis_label: str = "c5",
    **rules: Unpack[Rules],
) -> OpDef:
    """Declare an op on the `allowed` dtypes; operands have one dtype but for `one_dtype_at`. The
    `extra` constraints read the dtypes and the arg.
    """
    name, arity = op.name, len(src)
    shared = tuple(range(arity)) if one_dtype_at is None else one_dtype_at
    own: Rules = {
        "dtypes": allowed,
        "dtype": result or of_src(shared[0], "dtype"),
        "shape": shape.broadcast,
        "min_max": interval,
        "axis": axis.inherit,
        "by_types": True,
        **rules,
    }
    return declare(
        section,
        op,
        doc,
        src,
        dtype_among(f"{name}.c1", shared[0], allowed),
        *((one_dtype(f"{name}.c2", *shared),) if len(shared) > 1 else ()),
        *((broadcastable(f"{name}.c3"), one_device(f"{name}.c4")) if arity > 1 else ()),
        *extra,
        *((one_axis(f"{name}.{axis_label}"),) if arity > 1 else ()),
        **own,
    )


def _float_to_index(u: Node) -> str | None:
    source, target = u.src[0].dtype, arg_of(u, DTypeArg).dtype
    if target is dtypes.void:
        return "void"
    found = source.is_float and target is dtypes.index
    return f"{source.name} to index" if found else None


AB = ("A", "B")
TO_BOOL = dtype.always(dtypes.bool)

elementwise(Op.RECIP, ("T",), "1/x.", FLOATS, latitude=lat.RECIP, gradient=gradients.recip)
elementwise(
    Op.TRUNC,
    ("T",),
    "Round toward zero; the sign of zero is kept, integers stay.",
    NUMBERS,
    interval=min_max.trunc,
    gradient=gradients.stopped,
)
elementwise(
    Op.CAST,
    ("T",),
    "Convert to the dtype of the arg: float to integer truncates, integers wrap, to a float rounds "
    "once to nearest even, to bool is x != 0.",
    VALUES,
    arg=DTypeArg,
    result=from_arg("dtype"),
    interval=min_max.cast,
    latitude=lat.CAST,
    gradient=gradients.cast_,
    undefined="Float to integer where the truncated value does not fit, and NaN.",
    extra=(Constraint("CAST.c2", "not to void, and not from a float to index", _float_to_index),),
)
elementwise(
    Op.ADD,
    AB,
    "a + b; integers wrap, on bool OR.",
    VALUES,
    interval=min_max.add,
    latitude=lat.ADD,
    gradient=gradients.add,
    identity=lambda dtype: 0,
)
elementwise(
    Op.MUL,
    AB,
    "a * b; integers wrap, on bool AND.",
    VALUES,
    interval=min_max.mul,
    latitude=lat.MUL,
    gradient=gradients.mul,
    identity=lambda dtype: 1,
)
elementwise(
    Op.MAX,
    AB,
    "The larger one; on bool OR. Beside a NaN the interpreter gives NaN, a backend either "
    "operand. Of two zeros the interpreter gives +0, a backend either.",
    VALUES,
    interval=min_max.maximum,
    latitude=lat.MAX,
    gradient=gradients.maximum,
    identity=lambda dtype: dtype.min,
)
elementwise(
    Op.MOD,
    AB,
    "a - b * floor(a / b): the sign of the divisor.",
    INTS_INDEX,
    interval=min_max.mod,
    undefined=DIVISOR_0,
)
elementwise(
    Op.IDIV,
    AB,
    "floor(a / b); the lowest value divided by -1 is itself.",
    INTS_INDEX,
    interval=min_max.idiv,
    undefined=DIVISOR_0,
)
elementwise(
    Op.CMPLT, AB, "a < b; false with a NaN.", VALUES, result=TO_BOOL, interval=min_max.cmplt
)
elementwise(
    Op.CMPNE, AB, "a != b; true with a NaN.", VALUES, result=TO_BOOL, interval=min_max.cmpne
)
elementwise(Op.XOR, AB, "Bitwise exclusive or; on bool logical.", INTS_BOOL, interval=min_max.xor)
elementwise(Op.OR, AB, "Bitwise or; on bool logical.", INTS_BOOL, interval=min_max.or_)
elementwise(Op.AND, AB, "Bitwise and; on bool logical.", INTS_BOOL, interval=min_max.and_)
elementwise(
    Op.SHR,
    AB,
    "a shifted right by b bits; arithmetic where a is signed.",
    INTS,
    one_dtype_at=(0,),
    undefined=COUNT,
    extra=(dtype_among("SHR.c2", 1, INTS),),
    interval=min_max.shr,
)
elementwise(
    Op.SHL,
    AB,
    "a * 2^b modulo 2^n, also where a is signed.",
    INTS,
    one_dtype_at=(0,),
    undefined=COUNT,
    extra=(dtype_among("SHL.c2", 1, INTS),),
    interval=min_max.shl,
)
elementwise(
    Op.WHERE,
    ("P", "A", "B"),
    "A where P is true, else B: a bit copy of the chosen one.",
    VALUES,
    one_dtype_at=(1, 2),
    interval=min_max.where,
    gradient=gradients.where,
    extra=(dtype_among("WHERE.c5", 0, BOOL),),
    axis_label="c6",
)
