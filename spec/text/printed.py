"""Lines of the textual form as the printer writes them, taken apart at once.

A line that is written in any other way, or wrongly, is none of these: it is read word by word.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from uop.spec.args import Arg
from uop.spec.text.codec import KEPT, decode_fields
from uop.spec.text.literal import Line, Literal
from uop.spec.uop import UOp, dims, index_const

_LINE = re.compile(
    r"%([0-9]{1,9}) = ([A-Z_0-9]+)(?: ([%0-9\[][%0-9\[\], -]*))?(?: (\{[^{}\"%;]*\}))? (: .*)",
    re.ASCII,
)
_NUMBER = re.compile(r"%[0-9]{1,9}", re.ASCII)
_INTEGERS = re.compile(r"-?[0-9]{1,18}|\[(?:-?[0-9]{1,18}(?:,-?[0-9]{1,18})*)?\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Printed:
    """The parts of a line; an operand is the number of a node, or a node that is written in place.

    `fields` is the text of the arg, braces included, `derived` that of the derived part.
    """

    number: int
    name: str
    src: tuple[int | UOp, ...]
    fields: str
    derived: str


def taken_apart(text: str) -> Printed | None:
    """The parts of a line without tag and comment; None where it may be anything else."""
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    number, name, operands, fields, derived = match.groups("")
    src: list[int | UOp] = []
    for part in operands.split(", ") if operands else ():
        operand = int(part[1:]) if _NUMBER.fullmatch(part) else in_place_of(part)
        if operand is None:
            return None
        src.append(operand)
    return Printed(int(number), name, tuple(src), fields, derived)


@lru_cache(maxsize=KEPT)
def in_place_of(text: str) -> UOp | None:
    """The index constant `3` or the STACK of them `[2,3]`; None of any other text."""
    if _INTEGERS.fullmatch(text) is None:
        return None
    if text[0] != "[":
        return index_const(int(text))
    return dims(int(n) for n in text[1:-1].split(",") if n)


def arg_of(name: str, kind: type[Arg] | None, fields: str) -> Arg | None:
    """The arg that is written so. The errors of `Line` and of `decode_fields`."""
    return _arg_of(name, cast("Hashable", kind), fields)


@lru_cache(maxsize=KEPT)
def _arg_of(name: str, kind: type[Arg] | None, fields: str) -> Arg | None:
    if not fields:
        return decode_fields(name, kind, None)
    line = Line(fields)
    given = read_fields(line)
    line.need_end()
    return decode_fields(name, kind, given)


def read_fields(line: Line) -> dict[str, Literal] | None:
    """The fields of an arg between braces; None where no brace comes next."""
    if not line.take("{"):
        return None
    given: dict[str, Literal] = {}
    while not line.at("}"):
        token = line.need_kind("word", "the name of a field")
        if token.text in given:
            raise line.fail(f"the field {token.text!r} stands twice", token)
        line.need("=")
        given[token.text] = line.literal()
        if not line.take(","):
            break
    line.need("}")
    return given
