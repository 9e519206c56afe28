"""Edition 2026-06, the base of the core: the forms of its tables that the core has changed.

They are GETTUPLE (T, i), GETADDR (buf, dev), a PAD without arg, COPY, a RANGE by type (D-077).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uop.spec.args import Arg, ConstArg, GetAddrArg, GetTupleArg, PadArg, PadFill, PlaceArg, arg_of
from uop.spec.conditions.labels import Condition
from uop.spec.dtype import dtypes
from uop.spec.editions.edition import Edition, Word, broken, by_name, core_word, core_words
from uop.spec.editions.published import COPY, LETTERS, RANGE, WHERE, write_range
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

if TYPE_CHECKING:
    from uop.spec.editions.edition import Form, Reading, Writing

GETTUPLE_INDEX = Condition("GETTUPLE.index", "i is a CONST of dtype index and equal to idx")
GETADDR_DEVICE = Condition("GETADDR.device", "dev is the name of one device")


@dataclass(frozen=True, slots=True)
class ElementArg(Arg):
    """The element to extract; the operand i says the same."""

    idx: int | None = None


def _read_gettuple(reading: Reading, src: tuple[UOp, ...], arg: ElementArg) -> UOp:
    t, *rest = src
    said = [] if arg.idx is None else [arg.idx]
    for i in rest:
        if i.op is not Op.CONST or i.dtype is not dtypes.index:
            raise broken(GETTUPLE_INDEX, f"{i.op.name} of {i.dtype.name}")
        said.append(int(arg_of(i, ConstArg).value))
    if len(set(said)) != 1:
        raise broken(GETTUPLE_INDEX, " and ".join(map(str, said)) or "none")
    return UOp(Op.GETTUPLE, t, arg=GetTupleArg(said[0]))


def _write_gettuple(writing: Writing, u: UOp) -> Form:
    idx = arg_of(u, GetTupleArg).idx
    i = writing.core(index_const(idx))
    return writing.form("GETTUPLE", writing[u.src[0]], i, arg=ElementArg(idx))


def _read_getaddr(reading: Reading, src: tuple[UOp, ...], arg: None) -> UOp:
    buf, dev = src
    device = arg_of(dev, PlaceArg).device if dev.op is Op.DEVICE else None
    if not isinstance(device, str):
        raise broken(GETADDR_DEVICE, dev.op.name if device is None else str(device))
    return UOp(Op.GETADDR, buf, arg=GetAddrArg(device))


def _write_getaddr(writing: Writing, u: UOp) -> Form:
    dev = writing.form("DEVICE", arg=PlaceArg(arg_of(u, GetAddrArg).device))
    return writing.form("GETADDR", writing[u.src[0]], dev)


def _read_pad(reading: Reading, src: tuple[UOp, ...], arg: None) -> UOp:
    return UOp(Op.PAD, *src, arg=PadArg())


def _write_pad(writing: Writing, u: UOp) -> Form:
    if arg_of(u, PadArg).fill is not PadFill.INVALID:
        raise writing.cannot(u, "its PAD fills with INVALID elements, none with zeros")
    return writing.form("PAD", *(writing[s] for s in u.src))


JUNE_2026 = Edition(
    "2026-06",
    "The UOp specification of June 2026.",
    core_words("SLICE")
    | by_name(
        core_word(Op.DEVICE),
        Word("GETTUPLE", ("T", "i?"), _read_gettuple, ElementArg, conditions=(GETTUPLE_INDEX,)),
        Word("GETADDR", ("buf", "dev"), _read_getaddr, conditions=(GETADDR_DEVICE,)),
        Word("PAD", ("T", "o", "s'"), _read_pad),
        RANGE,
        WHERE,
        COPY,
    ),
    {
        Op.GETTUPLE: _write_gettuple,
        Op.GETADDR: _write_getaddr,
        Op.PAD: _write_pad,
        Op.RANGE: write_range,
    },
    LETTERS,
)
