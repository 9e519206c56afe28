"""An op's declaration in words: its signature, the rules of its properties, its latitude."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from uop.spec.args import Arg, Device
from uop.spec.dtype import DTYPES, DType, Kind
from uop.spec.editions.edition import Word
from uop.spec.latitude import EXACT, Ulp
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef

PROPERTIES = ("dtype", "shape", "device", "addrspace", "min_max", "axis")

_WORDS = {
    "of_first": "that of {first}",
    "of_src": "that of {operand}",
    "operand": "the numbers of {operand}",
    "always": "{fixed}",
    "from_arg": "that of the arg",
    "null": "none",
    "none": "none: it has no value",
    "value": "none: it is a value, not a location",
    "scalar": "()",
    "broadcast": "the operands' shapes right-aligned, each axis the larger of equal or 1",
    "first_that_has_one": "that of the first operand that has one",
    "range_of_dtype": "all of the dtype",
    "from_devices": "0 on several devices, else none",
    "of_data": "(the number of bytes,)",
    "binary": "[0, 255]",
    "permute": "the axes of {first} in the order of the arg",
    "follow_permutation": "where the permutation puts that of {first}",
    "add": "[a + b, A + B], unless a sum can leave the dtype: then all of it",
    "sub": "[a - B, A - b], unless a difference can leave the dtype: then all of it",
    "neg": "[-A, -a], unless that can leave the dtype: then all of it",
    "cmplt": "one truth value where the intervals decide it, else both",
    "cmpne": "one truth value where the intervals decide it, else both",
    "where": "around both branches; that of one where the condition is known",
    "trunc": "the ends, truncated",
    "element": "that of the element",
    "axis.reduce": "that of {first}; none where that axis is folded",
    "shape.reduce": "that of {first}, 1 on the folded axes",
    "axis.replicated": "that of {first}; none where the copies stand along that axis",
    "shape.replicated": "that of {first}, 1 on the axes of the arg",
    "shape.of_slice": "(size,) of the arg",
    "shape.stack": "the number of operands, then the shape of one",
    "device._all_reduced_on": "that of the arg",
    "device._staged_on": "that of the arg, else that of the first operand that has one",
    "dtype._declared_dtype": "that of the arg",
    "shape._declared_shape": "that of the arg",
    "shape._fragment": "that of acc",
    "shape._one_shard": "that of one shard",
    "shape._staged": "the bound of each RANGE",
    "shape._unrolled": "the lanes of one position",
    "shape._contracted": "the lanes of all positions",
}
"""By the name of a rule, alone or behind its property, where its own first sentence would not tell
a reader."""


def signature(declaration: OpDef) -> str:
    """`PAD(T, o, s') {fill: PadFill = INVALID}`."""
    return _signature(
        declaration.op.name, declaration.src, declaration.arg, declaration.default_arg
    )


def word_signature(word: Word) -> str:
    """The same of a word of an edition."""
    if word.name in Op.__members__ and word.src == ("src*",):
        return _signature(word.name, DECLARATIONS[Op[word.name]].src, word.arg, None)
    return _signature(word.name, word.src, word.arg, None)


def _signature(name: str, src: tuple[str, ...], arg: type[Arg] | None, given: Arg | None) -> str:
    text = f"{name}({', '.join(src)})"
    return text if arg is None else f"{text} {{{field_words(arg, given)}}}"


def field_words(arg: type[Arg], given: Arg | None = None) -> str:
    """`fill: INVALID|ZERO = INVALID`, the fields of an arg."""
    hints = get_type_hints(arg)
    shown = []
    for field in fields(arg):
        value = field.default if given is None else getattr(given, field.name)
        default = f" = {value.name}" if isinstance(value, Enum) else ""
        shown.append(f"{field.name}: {type_words(hints[field.name])}{default}")
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
    if isinstance(hint, type) and issubclass(hint, Enum) and len(hint) < 12:
        return "|".join(hint.__members__)
    return str(getattr(hint, "__name__", hint))


def property_words(declaration: OpDef) -> list[tuple[str, str]]:
    """Each derived property with the rule that derives it."""
    return [(name, rule_words(name, declaration)) for name in PROPERTIES]


def rule_words(prop: str, declaration: OpDef) -> str:
    """The rule of a property in words: from the table, from its first sentence, or its name."""
    rule: Callable[..., Any] = getattr(declaration, prop)
    name = rule.__qualname__.partition(".")[0]
    name = f"{prop}.{name}" if f"{prop}.{name}" in _WORDS else name
    given = _captured(rule)
    first = declaration.src[0].rstrip("?*") if declaration.src else "nothing"
    if name in _WORDS:
        position = given.get("position", 0)
        operand = declaration.src[position] if position < len(declaration.src) else first
        fixed = getattr(given.get("fixed"), "name", "")
        return _WORDS[name].format(first=first, operand=operand.rstrip("?*"), fixed=fixed)
    sentence = (rule.__doc__ or name.replace("_", " ")).strip().splitlines()[0]
    sentence = re.sub(r" \(D-\d{3}\)", "", sentence).rstrip(".")
    # A sentence becomes a phrase, but for names of ops and operands.
    return sentence[0].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def _captured(rule: Callable[..., Any]) -> dict[str, Any]:
    """What a rule that another function made holds of its making."""
    names = rule.__code__.co_freevars
    return dict(zip(names, (cell.cell_contents for cell in rule.__closure__ or ()), strict=True))


def latitude_words(declaration: OpDef) -> list[tuple[str, str]]:
    """What may be returned besides the reference: a sentence, and the dtypes it holds for."""
    allowed = declaration.dtypes or tuple(d for d in DTYPES.values() if d.kind is not Kind.VOID)
    by_sentence: dict[str, list[str]] = {}
    for dtype in allowed:
        by_sentence.setdefault(_sentence(declaration, dtype), []).append(dtype.name)
    return [(" ".join(names), sentence) for sentence, names in by_sentence.items()]


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
