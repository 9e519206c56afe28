"""Edition 2026-05: flat BUFFERs by size and PAD with zeros, besides the forms it shares (D-077).

A BUFFER has no slot there: the reader numbers distinct ones in the order of the text. The writer
writes the number, since inputs are passed by slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from uop.spec.args import AddrSpace, Arg, BufferArg, Device, PadArg, PadFill, arg_of
from uop.spec.conditions.labels import Condition
from uop.spec.dtype import DType
from uop.spec.editions.edition import Edition, Word, broken, by_name, core_words
from uop.spec.editions.published import COPY, LETTERS, RANGE, WHERE, write_range
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed
from uop.spec.uop import UOp, dims

if TYPE_CHECKING:
    from uop.spec.editions.edition import Form, Reading, Writing

BUFFER_SIZE = Condition("BUFFER.size", "size is 0 or more")
BUFFER_NUMBER = Condition("BUFFER.number", "every BUFFER says its slot, or none does")


@dataclass(frozen=True, slots=True)
class FlatBufferArg(Arg):
    """`size` elements on each device; this project adds the slot."""

    size: int
    dtype: DType
    device: Device = None
    addrspace: AddrSpace = AddrSpace.GLOBAL
    slot: int | None = None


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


def _read_pad(reading: Reading, src: tuple[UOp, ...], arg: None) -> UOp:
    return UOp(Op.PAD, *src, arg=PadArg(PadFill.ZERO))


def _write_pad(writing: Writing, u: UOp) -> Form:
    if arg_of(u, PadArg).fill is PadFill.INVALID:
        raise writing.cannot(u, "its PAD fills with zeros, none with INVALID elements")
    return writing.form("PAD", *(writing[s] for s in u.src))


MAY_2026 = Edition(
    "2026-05",
    "The UOp specification of May 2026.",
    core_words("GETADDR")
    | by_name(
        Word("BUFFER", (), _read_buffer, FlatBufferArg, conditions=(BUFFER_SIZE, BUFFER_NUMBER)),
        Word("PAD", ("T", "o", "s'"), _read_pad),
        RANGE,
        WHERE,
        COPY,
    ),
    {Op.BUFFER: _write_buffer, Op.CALL: _write_call, Op.PAD: _write_pad, Op.RANGE: write_range},
    LETTERS,
)
