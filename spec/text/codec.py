"""Codecs of arg fields: one per field type, between value and literal, for text and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from fractions import Fraction
from functools import lru_cache, partial
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from uop.spec.args import Arg, BinaryArg, ConstArg
from uop.spec.dtype import DTYPES, DType, Kind, Number
from uop.spec.errors import MalformedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, labels
from uop.spec.text.literal import Literal, Quoted, Word, print_literal

T = TypeVar("T")

DECIMAL_BITS = 4096
"""The size of an integer that is written in decimals; Python refuses much larger ones."""
CACHED_TEXTS = 2048
"""The size of the cache of texts of args."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Writes and reads one type of field. `decode` raises a MalformedError without line."""

    encode: Callable[[Any], Literal]
    decode: Callable[[Literal], Any]


def encode_arg(arg: Arg | None) -> dict[str, Literal] | None:
    """The fields of an arg in order, without those that are None; None if no field is left.

    An arg of the class Arg, which no op accepts, is written without fields.
    """
    if arg is None:
        return None
    if type(arg) is Arg:
        return {}
    if isinstance(arg, ConstArg):
        return {"value": encode_scalar(arg.bits, arg.dtype), "dtype": Word(arg.dtype.name)}
    fields = ((name, codec, getattr(arg, name)) for name, codec in _codecs(type(arg)).items())
    return {n: codec.encode(value) for n, codec, value in fields if value is not None} or None


def arg_text(arg: Arg | None) -> str:
    """The text of an arg after the operands: ` {slot=0, dtype=int32}`, or empty without fields.

    ValueError for bits that are no value of their dtype.
    """
    # The bytes of a BINARY may be too long for the cache.
    return _written(arg) if isinstance(arg, BinaryArg) else _cached(arg)


def _written(arg: Arg | None) -> str:
    written = encode_arg(arg)
    if written is None:
        return ""
    return " {" + ", ".join(f"{n}={print_literal(v)}" for n, v in written.items()) + "}"


_cached = lru_cache(maxsize=CACHED_TEXTS)(_written)


def decode_arg(declaration: OpDef, literals: Mapping[str, Literal] | None) -> Arg | None:
    """The arg of an op from its fields.

    Without fields the arg is None, which the op accepts or not. Empty fields on an op without arg
    are an Arg, which no op accepts.
    """
    return decode_fields(declaration.op.name, declaration.arg, literals)


def decode_fields(
    name: str, kind: type[Arg] | None, literals: Mapping[str, Literal] | None
) -> Arg | None:
    """`decode_arg` for the name of an op and the type of its arg."""
    if literals is None:
        return None
    if kind is None:
        if literals:
            raise MalformedError(f"{name} has no arg, found the field {next(iter(literals))!r}")
        return Arg()
    expected = {"value": None, "dtype": None} if kind is ConstArg else _codecs(kind)
    for field in literals:
        if field not in expected:
            raise MalformedError(
                f"{name} has no arg field {field!r}, expected {', '.join(expected)}"
            )
    for field in expected:
        if field not in literals and field in required_fields(kind):
            raise MalformedError(f"{name} lacks the arg field {field!r}")
    if kind is ConstArg:
        return _decode_const(literals)
    codecs = _codecs(kind)
    return kind(**{field: _decode_field(field, codecs[field], v) for field, v in literals.items()})


def encode_scalar(bits: int, dtype: DType) -> Literal:
    """The literal of a value: true, false, an integer, a hex float, inf, or a NaN with its bits.

    A value of dtype void, which only must-reject programs have, is its bits.
    """
    if dtype.is_float:
        return Word(_float_text(bits, dtype))
    if dtype.kind is Kind.VOID:
        return bits
    value = dtype.decode(bits)
    return bool(value) if dtype.kind is Kind.BOOL else int(value)


def decode_scalar(literal: Literal, dtype: DType) -> int:
    """The bits of a literal.

    MalformedError for another kind of value, ValueError for an integer out of range.
    """
    if dtype.is_float:
        return _float_bits(literal, dtype)
    if dtype.kind is Kind.BOOL:
        return int(_decode_bool(literal))
    value = _decode_int(literal)
    return value if dtype.kind is Kind.VOID else dtype.encode(value)


def decode_dtype(literal: Literal) -> DType:
    return _decode_name(DTYPES, "a dtype", literal)


def _decode_const(literals: Mapping[str, Literal]) -> ConstArg:
    dtype = _decode_field("dtype", Codec(_same, decode_dtype), literals["dtype"])
    try:
        return ConstArg(decode_scalar(literals["value"], dtype), dtype)
    except ValueError:
        found = f"{literals['value']} for {dtype.name}"
        raise labels()["CONST.c1"].error("CONST", found) from None
    except MalformedError as error:
        raise MalformedError(f"field 'value' of {dtype.name}: {error.message}") from None


def _decode_field(name: str, codec: Codec, literal: Literal) -> Any:
    try:
        return codec.decode(literal)
    except MalformedError as error:
        raise MalformedError(f"field {name!r}: {error.message}") from None


_CODECS: dict[type[Arg], dict[str, Codec]] = {}


def _codecs(kind: type[Arg]) -> dict[str, Codec]:
    """The codecs of the fields of an arg class, made on first use."""
    if kind not in _CODECS:
        hints = get_type_hints(kind)
        _CODECS[kind] = {f.name: _codec(hints[f.name]) for f in fields(kind)}
    return _CODECS[kind]


def required_fields(kind: type[Arg]) -> frozenset[str]:
    """The names of the fields without default; `value` and `dtype` for a CONST."""
    if kind is ConstArg:
        return frozenset(("value", "dtype"))
    return frozenset(
        f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING
    )


def _codec(hint: Any) -> Codec:
    """The codec of a type annotation; TypeError for a type without codec."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        what = f"one of {' '.join(hint.__members__)}"
        return Codec(
            lambda member: Word(member.name), partial(_decode_name, hint.__members__, what)
        )
    if get_origin(hint) is tuple:
        item = _codec(get_args(hint)[0])
        return Codec(
            lambda values: tuple(item.encode(v) for v in values), partial(_decode_tuple, item)
        )
    if get_origin(hint) in (Union, UnionType):
        members = [m for m in get_args(hint) if m is not NoneType]
        codecs = {get_origin(m) is tuple: _codec(m) for m in members}
        return Codec(
            lambda value: codecs[isinstance(value, tuple)].encode(value),
            partial(_decode_union, codecs, NoneType in get_args(hint)),
        )
    raise TypeError(f"no codec for an arg field of type {hint}")


def _same(value: Any) -> Any:
    return value


def _expected(what: str, literal: Literal) -> MalformedError:
    return MalformedError(f"expected {what}, found {shown(literal)}")


def shown(literal: Literal) -> str:
    """A literal or a count as error messages quote it, shortened if it is long."""
    if isinstance(literal, Word):
        return str(literal)
    if isinstance(literal, bool):
        return str(literal).lower()
    if isinstance(literal, tuple):
        return f"a list of {len(literal)}"
    if isinstance(literal, int) and literal.bit_length() > DECIMAL_BITS:
        return hex(literal)
    return repr(str(literal)) if isinstance(literal, str) else str(literal)


def _decode_int(literal: Literal) -> int:
    if isinstance(literal, int) and not isinstance(literal, bool):
        return literal
    if type(literal) is str and re.fullmatch(r"-?[0-9]{1,4000}", literal, re.ASCII):
        return int(literal)
    raise _expected("an integer", literal)


def _decode_plain(literal: Literal) -> bool | int | Word:
    """A constant whose dtype is known later."""
    if isinstance(literal, int | Word):
        return literal
    raise _expected("a constant", literal)


def _decode_bool(literal: Literal) -> bool:
    if isinstance(literal, bool):
        return literal
    raise _expected("true or false", literal)


def _decode_string(literal: Literal) -> str:
    if isinstance(literal, str) and not isinstance(literal, Word):
        return str(literal)
    raise _expected("a string in quotes", literal)


def _decode_bytes(literal: Literal) -> bytes:
    if isinstance(literal, str) and not isinstance(literal, Quoted):
        prefix, _, digits = literal.partition(":")
        if prefix == "hex" and re.fullmatch(r"(?:[0-9a-fA-F]{2})*", digits):
            return bytes.fromhex(digits)
    raise _expected("bytes as hex:, two digits each", literal)


def _decode_name(known: Mapping[str, T], what: str, literal: Literal) -> T:
    if isinstance(literal, str) and not isinstance(literal, Quoted) and literal in known:
        return known[literal]
    raise _expected(what, literal)


def _decode_tuple(item: Codec, literal: Literal) -> tuple[Any, ...]:
    if isinstance(literal, tuple):
        return tuple(item.decode(part) for part in literal)
    raise _expected("a list", literal)


def _decode_union(codecs: Mapping[bool, Codec], optional: bool, literal: Literal) -> Any:
    if literal is None and optional:
        return None
    is_list = isinstance(literal, tuple)
    return codecs[is_list if is_list in codecs else not is_list].decode(literal)


_SIMPLE: dict[Any, Codec] = {
    bool: Codec(bool, _decode_bool),
    int: Codec(int, _decode_int),
    str: Codec(_same, _decode_string),
    bytes: Codec(lambda data: Word(f"hex:{data.hex()}"), _decode_bytes),
    DType: Codec(lambda dtype: Word(dtype.name), decode_dtype),
    Op: Codec(lambda op: Word(op.name), partial(_decode_name, Op.__members__, "an op")),
    bool | int | Word: Codec(_same, _decode_plain),
}

_HEX_FLOAT = re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)(?:\.([0-9a-fA-F]*))?[pP]([-+]?[0-9]{1,5})")
_DECIMAL = re.compile(r"([-+]?)([0-9]{1,4000}(?:\.[0-9]{0,4000})?(?:[eE][-+]?[0-9]{1,4})?)")
_NAN = re.compile(r"nan:0[xX]([0-9a-fA-F]+)")


def _float_text(bits: int, dtype: DType) -> str:
    """The shortest hex float; a NaN by its bits."""
    if dtype.format.is_nan(bits):
        return f"nan:{bits:#0{dtype.itemsize * 2 + 2}x}"
    text = float(dtype.decode(bits)).hex()
    if "inf" in text:
        return text
    mantissa, exponent = text.split("p")
    return mantissa.rstrip("0").removesuffix(".") + f"p{exponent}"


def _float_bits(literal: Literal, dtype: DType) -> int:
    """The bits of the exact value that is written, rounded once; a NaN with bits is those bits."""
    if isinstance(literal, bool) or literal is None or isinstance(literal, Quoted | tuple):
        raise _expected("a float", literal)
    if isinstance(literal, int | float):
        return dtype.encode(literal)
    if literal in ("inf", "+inf", "-inf"):
        if dtype.format.inf_bits is None:
            raise _expected(f"a float, and there is no infinity in {dtype.name}", literal)
        return dtype.encode(float(literal))
    if literal == "nan":
        return dtype.format.nan_bits
    if match := _NAN.fullmatch(literal):
        bits = int(match[1], 16)
        if bits < 1 << dtype.bits and dtype.format.is_nan(bits):
            return bits
        raise _expected(f"the bits of a NaN of {dtype.name}", literal)
    return dtype.encode(_exact(literal))


def _exact(literal: str) -> Number:
    """The exact value of a hex or decimal float; -0.0 stays a float."""
    if match := _HEX_FLOAT.fullmatch(literal):
        sign, whole, fraction, exponent = match[1], match[2], match[3] or "", int(match[4])
        scale = Fraction(2) ** (exponent - 4 * len(fraction))
        value = Fraction(int(whole + fraction, 16)) * scale
    elif match := _DECIMAL.fullmatch(literal):
        sign, value = match[1], Fraction(match[2])
    else:
        raise _expected("a float", literal)
    if value == 0:
        return -0.0 if sign == "-" else 0.0
    return -value if sign == "-" else value


def op_named(name: str) -> OpDef:
    """The declaration of an op by name; MalformedError for an unknown name."""
    op = Op.__members__.get(name)
    if op is None or op not in DECLARATIONS:
        raise MalformedError(f"unknown op {name!r}")
    return DECLARATIONS[op]
