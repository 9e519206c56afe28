"""Forms that several editions share: RANGEs by type, COPY, conditions of any dtype (D-077).

A RANGE has no id there. The reader numbers distinct ones in the order of the text; the writer
writes the number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uop.spec.args import Arg, AxisType, Device, LoadArg, RangeArg, arg_of
from uop.spec.conditions.labels import Condition
from uop.spec.dtype import dtypes
from uop.spec.editions.edition import Word
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const

if TYPE_CHECKING:
    from uop.spec.editions.edition import Form, Reading, Writing

RANGE_NUMBER = Condition("RANGE.number", "every RANGE says its id, or none does")

LETTERS = {type.value: type.name for type in AxisType}
"""The letters that their table gives the types of a RANGE."""


@dataclass(frozen=True, slots=True)
class TypedRangeArg(Arg):
    """The type of the loop; this project adds the id."""

    type: AxisType = AxisType.LOOP
    id: int | None = None


@dataclass(frozen=True, slots=True)
class CopyArg(Arg):
    device: Device = None


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


def write_range(writing: Writing, u: UOp) -> Form:
    arg = arg_of(u, RangeArg)
    typed = TypedRangeArg(arg.axis_type, arg.id)
    return writing.form("RANGE", writing[u.src[0]], arg=typed)


RANGE = Word("RANGE", ("bound",), _read_range, TypedRangeArg, conditions=(RANGE_NUMBER,))
WHERE = Word("WHERE", ("P", "A", "B"), _read_where)
COPY = Word("COPY", ("T",), _read_copy, CopyArg)
