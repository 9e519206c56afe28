"""Edition 2026-05: flat BUFFERs by size, PAD with zeros, COPY, conditions of any dtype (D-077).

A BUFFER has no slot there and a RANGE no id: the reader numbers distinct nodes in the order of the
text. The writer writes the number, since inputs are passed by slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from uop.spec.args import (
    AddrSpace,
    Arg,
    AxisType,
    BufferArg,
    Device,
    LoadArg,
    PadArg,
    PadFill,
    RangeArg,
    arg_of,
)
from uop.spec.conditions.labels import Condition
from uop.spec.dtype import DType, dtypes
from uop.spec.editions.edition import Edition, Word, broken, by_name, core_words, write_call
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims

if TYPE_CHECKING:
    from uop.spec.editions.edition import Form, Reading, Writing

BUFFER_SIZE = Condition("BUFFER.size", "size is 0 or more")
BUFFER_NUMBER = Condition("BUFFER.number", "every BUFFER says its slot, or none does")
RANGE_NUMBER = Condition("RANGE.number", "every RANGE says its id, or none does")


@dataclass(frozen=True, slots=True)
class FlatBufferArg(Arg):
    """`size` elements on each device; this project adds the slot."""

    size: int
    dtype: DType
    device: Device = None
    addrspace: AddrSpace = AddrSpace.GLOBAL
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class TypedRangeArg(Arg):
    """The type of the loop; this project adds the id."""

    type: AxisType = AxisType.LOOP
    id: int | None = None


@dataclass(frozen=True, slots=True)
class CopyArg(Arg):
    device: Device = None


def _read_buffer(reading: Reading, src: tuple[UOp, ...], arg: FlatBufferArg) -> UOp:
    if arg.size < 0:
        raise broken(BUFFER_SIZE, str(arg.size))
    n = len(arg.device) if isinstance(arg.device, tuple) else 1
    slot = reading.number(BUFFER_NUMBER, arg, arg.slot)
    place = BufferArg(slot, arg.dtype, arg.device, arg.addrspace)
    return UOp(Op.BUFFER, dims((n * arg.size,)), arg=place)


def _write_buffer(writing: Writing, u: UOp) -> Form:
    """Flat memory, reshaped to the shape of the core node."""
    arg = arg_of(u, BufferArg)
    n = len(arg.device) if isinstance(arg.device, tuple) else 1
    size = prod(u.shape) // n
    flat = writing.form(
        "BUFFER", arg=FlatBufferArg(size, arg.dtype, arg.device, arg.addrspace, arg.slot)
    )
    if len(u.shape) == 1:
        return flat
    return writing.form("RESHAPE", flat, writing[u.src[0]])


def _read_pad(reading: Reading, src: tuple[UOp, ...], arg: None) -> UOp:
    return UOp(Op.PAD, *src, arg=PadArg(PadFill.ZERO))


def _write_pad(writing: Writing, u: UOp) -> Form:
    if arg_of(u, PadArg).fill is PadFill.INVALID:
        raise writing.cannot(u, "its PAD fills with zeros, none with INVALID elements")
    return writing.form("PAD", *(writing[s] for s in u.src))


def _read_where(reading: Reading, src: tuple[UOp, ...], arg: None) -> UOp:
    """A condition of any dtype is true if it is not 0: NaN is true, -0.0 is false."""
    p, *values = src
    if p.dtype not in (dtypes.bool, dtypes.void):
        p = UOp(Op.CMPNE, p, const(0, p.dtype))
    return UOp(Op.WHERE, p, *values)


def _read_copy(reading: Reading, src: tuple[UOp, ...], arg: CopyArg) -> UOp:
    return UOp(Op.LOAD, *src, arg=LoadArg(arg.device))


def _read_range(reading: Reading, src: tuple[UOp, ...], arg: TypedRangeArg) -> UOp:
    number = reading.number(RANGE_NUMBER, (src, arg), arg.id)
    return UOp(Op.RANGE, *src, arg=RangeArg(number, arg.type))


def _write_range(writing: Writing, u: UOp) -> Form:
    arg = arg_of(u, RangeArg)
    typed = TypedRangeArg(arg.axis_type, arg.id)
    return writing.form("RANGE", writing[u.src[0]], arg=typed)


MAY_2026 = Edition(
    "2026-05",
    "The UOp specification of May 2026.",
    core_words("GETADDR")
    | by_name(
        Word(
            "BUFFER",
            (),
            _read_buffer,
            FlatBufferArg,
            conditions=(BUFFER_SIZE, BUFFER_NUMBER),
        ),
        Word("PAD", ("T", "o", "s'"), _read_pad),
        Word("WHERE", ("P", "A", "B"), _read_where),
        Word("COPY", ("T",), _read_copy, CopyArg),
        Word("RANGE", ("bound",), _read_range, TypedRangeArg, conditions=(RANGE_NUMBER,)),
    ),
    {
        Op.BUFFER: _write_buffer,
        Op.CALL: write_call,
        Op.PAD: _write_pad,
        Op.RANGE: _write_range,
    },
)
