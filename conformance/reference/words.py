"""Words of pages: sections, and of an op its signature, the rules of its properties, latitude."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from itertools import zip_longest
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from uop.spec.args import Arg, Device
from uop.spec.documents.decisions import decisions
from uop.spec.documents.rows import Row
from uop.spec.dtype import VALUES, DType
from uop.spec.editions.edition import Word
from uop.spec.latitude import EXACT, Ulp
from uop.spec.ops.names import Op
from uop.spec.properties.words import words_of
from uop.spec.registry import DECLARATIONS, OpDef

NONE = "-"
"""Stands in a cell where one of two ops has nothing."""
PROPERTIES = ("dtype", "shape", "device", "addrspace", "min_max", "axis")
T = TypeVar("T")


def signature(declaration: OpDef) -> str:
    """`PAD(T, o, s') {fill: PadFill = INVALID}`."""
    return _signature(
        declaration.op.name, declaration.src, declaration.arg, declaration.default_arg
    )


def word_signature(word: Word) -> str:
    """The signature of a word of an edition."""
    if word.name in Op.__members__ and word.src == ("src*",):
        return _signature(word.name, DECLARATIONS[Op[word.name]].src, word.arg, None)
    return _signature(word.name, word.src, word.arg, None)


def _signature(name: str, src: tuple[str, ...], arg: type[Arg] | None, default: Arg | None) -> str:
    text = f"{name}({', '.join(src)})"
    return text if arg is None else f"{text} {{{field_words(arg, default)}}}"


def field_words(arg: type[Arg], default: Arg | None = None) -> str:
    """`fill: INVALID|ZERO = INVALID`, the fields of an arg."""
    hints = get_type_hints(arg)
    shown = []
    for field in fields(arg):
        value = field.default if default is None else getattr(default, field.name)
        suffix = f" = {value.name}" if isinstance(value, Enum | Op) else ""
        shown.append(f"{field.name}: {type_words(hints[field.name])}{suffix}")
    return ", ".join(shown)


def type_words(hint: Any) -> str:
    """The type of a field: `int`, `a list of int`, `GLOBAL LOCAL REG`."""
    if hint == Device:
        return "device?"
    if get_origin(hint) in (Union, UnionType):
        members = [m for m in get_args(hint) if m is not type(None)]
        return " or ".join(map(type_words, members)) + "?" * (len(members) < len(get_args(hint)))
    if get_origin(hint) is tuple:
        return f"a list of {type_words(get_args(hint)[0])}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "|".join(hint.__members__)
    return str(getattr(hint, "__name__", hint))


def property_words(declaration: OpDef) -> list[tuple[str, str]]:
    """Each derived property with the rule that derives it."""
    return [(name, rule_words(name, declaration)) for name in PROPERTIES]


def rule_words(prop: str, declaration: OpDef) -> str:
    """The rule of a property as a phrase."""
    words = words_of(getattr(declaration, prop), declaration.src)
    sentence = re.sub(r" \(D-\d{3}\)", "", words).rstrip(".")
    # Names of ops and operands keep their capitals.
    return sentence[0].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def grouped(pairs: Iterable[tuple[T, str]]) -> tuple[tuple[str, T], ...]:
    """Each value once, behind the names of all that have it."""
    names: dict[T, list[str]] = {}
    for value, name in pairs:
        names.setdefault(value, []).append(name)
    return tuple((" ".join(of_value), value) for value, of_value in names.items())


def latitude_words(declaration: OpDef) -> tuple[tuple[str, str], ...]:
    """The latitude of an op: a sentence, and the dtypes that it holds for."""
    allowed = declaration.dtypes or VALUES
    return grouped((_sentence(declaration, dtype), dtype.name) for dtype in allowed)


def _sentence(declaration: OpDef, dtype: DType) -> str:
    latitude = declaration.latitude
    if not dtype.is_float or latitude == EXACT:
        return EXACT.says
    if type(latitude) is Ulp:
        return f"within {_decimal(latitude, dtype)} ulp of the exact result"
    if isinstance(latitude, Ulp):
        return f"{latitude.says}; that budget is {_decimal(latitude, dtype)} ulp"
    return latitude.says


def _decimal(latitude: Ulp, dtype: DType) -> str:
    return f"{float(latitude.budget(dtype)):g}"


def decisions_of(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """The decisions that rows cite: their numbers in order, with their titles."""
    known = decisions()
    return [
        (n, known[n].title)
        for n in sorted({n for row in rows for n in row.decisions} & known.keys())
    ]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: a table with its header, or code, or a paragraph."""

    title: str
    header: tuple[str, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    code: str = ""
    text: str = ""


def differences(a: OpDef, b: OpDef) -> Iterator[tuple[str, str, str]]:
    """The facts that differ: a title, and what stands below it for each of two ops."""
    for title, of in FACTS.items():
        first, second = of(a), of(b)
        left = [one for one in first if one not in second]
        right = [one for one in second if one not in first]
        for k, (one, other) in enumerate(zip_longest(left, right, fillvalue=NONE)):
            yield "" if k else title, one, other


def _own_constraints(d: OpDef) -> list[str]:
    """The titles of the constraints that are not about the arg, the dtypes and their number."""
    labels = {f"{d.op.name}.{name}" for name in ("arity", "arg", "c1" if d.dtypes else "")}
    return [c.title for c in d.constraints if c.label not in labels]


def _freedom(d: OpDef) -> list[str]:
    """What is not exact, with its dtypes."""
    free = [f"{said} ({names})" for names, said in latitude_words(d) if said != EXACT.says]
    return free or [EXACT.says]


FACTS: dict[str, Callable[[OpDef], Sequence[str]]] = {
    "operands": lambda d: [", ".join(d.src)],
    "arg": lambda d: [] if d.arg is None else [field_words(d.arg, d.default_arg)],
    "dtypes": lambda d: [" ".join(t.name for t in d.dtypes) or "any"],
    "dtype": lambda d: [rule_words("dtype", d)],
    "shape": lambda d: [rule_words("shape", d)],
    "constraints": _own_constraints,
    "latitude": _freedom,
    "no value": lambda d: [d.undefined] if d.undefined else [],
}
"""By title what is compared of an op."""
