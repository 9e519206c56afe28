"""The editions 2026-05 and 2026-06, the base of the core, which has changed some forms (D-077).

Both have a RANGE by type, COPY, and conditions of any dtype. May has flat BUFFERs by size and PAD
with zeros; June GETTUPLE (T, i), GETADDR (buf, dev) and a PAD without arg.

A RANGE has no id there, a BUFFER of May no slot. The reader numbers distinct ones in the order of
the text; the writer writes the number, since inputs are passed by slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from uop.spec import args
from uop.spec.args import AddrSpace, Arg, AxisType, Device, PadFill, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.editions import edition as e
from uop.spec.editions.edition import Edition, Word, read_as, written_as
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed
from uop.spec.uop import UOp, const, dims, index_const

if TYPE_CHECKING:
    from uop.spec.editions.edition import Form, Reading, Write, Writing

TITLES = {
    "RANGE.number": "every RANGE says its id, or none does",
    "BUFFER.size": "size is 0 or more",
    "BUFFER.number": "every BUFFER says its slot, or none does",
    "GETTUPLE.index": "i is a CONST of dtype index and equal to idx",
    "GETADDR.device": "dev is the name of one device",
}
"""What must hold of the words besides the constraints of the core nodes, by label."""

LETTERS = {type.value: type.name for type in AxisType}
"""The letters that their table gives the types of a RANGE."""
FILLS = {
    PadFill.ZERO: "its PAD fills with zeros, none with INVALID elements",
    PadFill.INVALID: "its PAD fills with INVALID elements, none with zeros",
}
"""What an edition cannot say whose PAD has this fill."""


@dataclass(frozen=True, slots=True)
class TypedRangeArg(Arg):
    """The type of the loop; this project adds the id."""

    type: AxisType = AxisType.LOOP
    id: int | None = None


@dataclass(frozen=True, slots=True)
class CopyArg(Arg):
    device: Device = None


@dataclass(frozen=True, slots=True)
class FlatBufferArg(Arg):
    """`size` elements on each device; this project adds the slot."""

    size: int
    dtype: DType
    device: Device = None
    addrspace: AddrSpace = AddrSpace.GLOBAL
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class ElementArg(Arg):
    """The element to extract; the operand i says the same."""

    idx: int | None = None


def _read_where(reading: Reading, src: tuple[UOp, ...], arg: None) -> UOp:
    """A condition of any dtype is true if it is not 0: NaN is true, -0.0 is false."""
    p, *values = src
    if p.dtype not in (dtypes.bool, dtypes.void):
        p = UOp(Op.CMPNE, p, const(0, p.dtype))
    return UOp(Op.WHERE, p, *values)


def _read_range(reading: Reading, src: tuple[UOp, ...], arg: TypedRangeArg) -> UOp:
    number = reading.number("RANGE.number", (src, arg), arg.id)
    return UOp(Op.RANGE, *src, arg=args.RangeArg(number, arg.type))


def _read_buffer(reading: Reading, src: tuple[UOp, ...], arg: FlatBufferArg) -> UOp:
    if arg.size < 0:
        raise reading.broken("BUFFER.size", str(arg.size))
    n = len(arg.device) if isinstance(arg.device, tuple) else 1
    slot = reading.number("BUFFER.number", arg, arg.slot)
    place = args.BufferArg(slot, arg.dtype, arg.device, arg.addrspace)
    return UOp(Op.BUFFER, dims((n * arg.size,)), arg=place)


def _write_buffer(writing: Writing, u: UOp) -> Form:
    """Flat memory, reshaped to the shape of the core node."""
    arg = arg_of(u, args.BufferArg)
    n = len(arg.device) if isinstance(arg.device, tuple) else 1
    size = prod(fixed(u)) // n
    flat = writing.form(
        "BUFFER", arg=FlatBufferArg(size, arg.dtype, arg.device, arg.addrspace, arg.slot)
    )
    if len(u.shape) == 1:
        return flat
    return writing.form("RESHAPE", flat, writing[u.src[0]])


def _write_call(writing: Writing, u: UOp) -> Form:
    """A CALL with flat BUFFERs: its arguments are the BUFFERs without their RESHAPE.

    A kernel gets its buffers flat in any case (D-017).
    """
    body, *arguments = u.src
    return writing.form("CALL", writing[body], *(_flat(writing, s) for s in arguments), arg=u.arg)


def _flat(writing: Writing, location: UOp) -> Form:
    form = writing[location]
    if location.op is Op.AFTER:
        return writing.form("AFTER", _flat(writing, location.src[0]), *form.src[1:])
    return form.src[0] if location.op is Op.BUFFER and form.name == "RESHAPE" else form


def _read_gettuple(reading: Reading, src: tuple[UOp, ...], arg: ElementArg) -> UOp:
    t, *rest = src
    said = [] if arg.idx is None else [arg.idx]
    for i in rest:
        if i.op is not Op.CONST or i.dtype is not dtypes.index:
            raise reading.broken("GETTUPLE.index", f"{i.op.name} of {i.dtype.name}")
        said.append(int(arg_of(i, args.ConstArg).value))
    if len(set(said)) != 1:
        raise reading.broken("GETTUPLE.index", " and ".join(map(str, said)) or "none")
    return UOp(Op.GETTUPLE, t, arg=args.GetTupleArg(said[0]))


def _write_gettuple(writing: Writing, u: UOp) -> Form:
    idx = arg_of(u, args.GetTupleArg).idx
    i = writing.core(index_const(idx))
    return writing.form("GETTUPLE", writing[u.src[0]], i, arg=ElementArg(idx))


def _read_getaddr(reading: Reading, src: tuple[UOp, ...], arg: None) -> UOp:
    buf, dev = src
    device = arg_of(dev, args.PlaceArg).device if dev.op is Op.DEVICE else None
    if not isinstance(device, str):
        raise reading.broken("GETADDR.device", dev.op.name if device is None else str(device))
    return UOp(Op.GETADDR, buf, arg=args.GetAddrArg(device))


def _write_getaddr(writing: Writing, u: UOp) -> Form:
    dev = writing.form("DEVICE", arg=args.PlaceArg(arg_of(u, args.GetAddrArg).device))
    return writing.form("GETADDR", writing[u.src[0]], dev)


def _pad(fill: PadFill) -> Word:
    return Word("PAD", ("T", "o", "s'"), read_as(Op.PAD, lambda: args.PadArg(fill)))


def _write_pad(fill: PadFill) -> Write:
    def write(writing: Writing, u: UOp) -> Form:
        if arg_of(u, args.PadArg).fill is not fill:
            raise writing.cannot(u, FILLS[fill])
        return writing.form("PAD", *(writing[s] for s in u.src))

    return write


WRITE_RANGE = written_as("RANGE", lambda id, type: TypedRangeArg(type, id))
BOTH = (
    Word("RANGE", ("bound",), _read_range, TypedRangeArg),
    Word("WHERE", ("P", "A", "B"), _read_where),
    Word("COPY", ("T",), read_as(Op.LOAD, args.LoadArg), CopyArg),
)

MAY_2026 = Edition(
    "2026-05",
    "The UOp specification of May 2026.",
    e.core_words("GETADDR")
    | e.by_name(
        TITLES,
        Word("BUFFER", (), _read_buffer, FlatBufferArg),
        _pad(PadFill.ZERO),
        *BOTH,
    ),
    {
        Op.BUFFER: _write_buffer,
        Op.CALL: _write_call,
        Op.PAD: _write_pad(PadFill.ZERO),
        Op.RANGE: WRITE_RANGE,
    },
    LETTERS,
)
JUNE_2026 = Edition(
    "2026-06",
    "The UOp specification of June 2026.",
    e.core_words("SLICE")
    | e.by_name(
        TITLES,
        e.core_word(Op.DEVICE),
        Word("GETTUPLE", ("T", "i?"), _read_gettuple, ElementArg),
        Word("GETADDR", ("buf", "dev"), _read_getaddr),
        _pad(PadFill.INVALID),
        *BOTH,
    ),
    {
        Op.GETTUPLE: _write_gettuple,
        Op.GETADDR: _write_getaddr,
        Op.PAD: _write_pad(PadFill.INVALID),
        Op.RANGE: WRITE_RANGE,
    },
    LETTERS,
)
