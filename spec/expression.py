"""One expression of a closed grammar, read into a graph: `u8(200) + u8(100)`.

    comparison   a == b  a != b  a < b  a <= b  a > b  a >= b
    | ^ &        OR XOR AND
    << >>        SHL SHR
    + -          ADD SUB
    * / // %     MUL DIV IDIV MOD
    - ! ~        NEG NOT, all bits flipped
    **           POW
    dtype(x)     a constant of that dtype, or a CAST;  u8 i8 f32 bf16 and so on are short names
    op(x, y)     an elementwise or marker op by its name; bitcast(x, dtype)
    [x, y]       STACK

Binding grows downwards. A number without a dtype takes that of the other operand; alone an integer
is int32, any other number float32, unless the op takes neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from uop.spec.args import ConstArg, DTypeArg
from uop.spec.codec import decode_scalar
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.literal import Literal, Word
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp

DEEPEST = 64
"""Parentheses, brackets and signs inside each other."""

LONGEST = 3000
"""Characters of a number. The exact decimals of every float64 fit."""

EXPONENT = {"e": 4, "p": 5}
"""Digits of an exponent, by its letter."""

NAMED_DTYPES: dict[str, DType] = {
    **{d.name: d for d in DTYPES.values() if d.kind is not Kind.VOID},
    **{f"{d.name[0]}{d.bits}": d for d in DTYPES.values() if d.is_int},
    **{f"f{bits}": DTYPES[f"float{bits}"] for bits in (16, 32, 64)},
    "bf16": dtypes.bfloat16,
}

NAMED_OPS: dict[str, Op] = {
    op.name: op
    for op, declared in DECLARATIONS.items()
    if (declared.dtypes or declared.section == "marker") and declared.arg is None
}

WORDS = ("true", "false", "inf", "nan")
"""Values that have a name."""

QUOTED = 60
"""Characters that an error quotes of a name or a number."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>nan:0x[0-9a-fA-F]+
        | 0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][-+]?[0-9]+)?
        | [0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<mark>\*\*|//|<<|>>|[=!<>]=|[-+*/%&|^~!<>()\[\],])
    | (?P<end>$)
    | (?P<bad>.)
    )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)

_BINARY: tuple[dict[str, Op], ...] = (
    {
        "==": Op.CMPEQ,
        "!=": Op.CMPNE,
        "<": Op.CMPLT,
        "<=": Op.CMPLE,
        ">": Op.CMPGT,
        ">=": Op.CMPGE,
    },
    {"|": Op.OR},
    {"^": Op.XOR},
    {"&": Op.AND},
    {"<<": Op.SHL, ">>": Op.SHR},
    {"+": Op.ADD, "-": Op.SUB},
    {"*": Op.MUL, "/": Op.DIV, "//": Op.IDIV, "%": Op.MOD},
)
"""From the loosest to the tightest."""


def read_expression(text: str) -> UOp:
    """The graph of an expression.

    MalformedError for text outside the grammar, with its column; InvalidError for a node that
    breaks a constraint.
    """
    reader = _Reader(text)
    try:
        value = reader.binary(0)
        reader.need("end", "")
        return reader.settled(value, None)
    except InvalidError as error:
        # The expression is the place; no line of the user's made this node.
        raise InvalidError(error.label, error.title, error.node, error.found, text) from None


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


@dataclass(frozen=True, slots=True)
class _Number:
    """A number, or a bool, that has no dtype yet; `text` is exact."""

    text: str
    column: int

    @property
    def dtype(self) -> DType:
        """What it is on its own."""
        if self.text in ("true", "false"):
            return dtypes.bool
        return dtypes.int32 if re.fullmatch(r"-?[0-9]+", self.text) else dtypes.float32


@dataclass(frozen=True, slots=True)
class _List:
    """Values in brackets, whose numbers have no dtype yet."""

    items: tuple[_Open, ...]
    column: int


_Open = UOp | _Number | _List


class _Reader:
    """A cursor over the tokens."""

    def __init__(self, text: str) -> None:
        self._tokens: list[_Token] = []
        self._at = 0
        self._depth = 0
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or "bad"
            token = _Token(kind, match[kind], match.start(kind) + 1)
            self._tokens.append(token)
            if kind == "bad":
                raise self._fail(f"unexpected {token.text!r}", token.column)
            if kind == "number" and (reason := _too_large(token.text)):
                raise self._fail(reason, token.column)
            if kind == "end":
                break

    def binary(self, level: int) -> _Open:
        """Operators of a level and all that bind tighter, grouped from the left."""
        if level == len(_BINARY):
            return self._unary()
        left = self.binary(level + 1)
        while (token := self._peek()).kind == "mark" and token.text in _BINARY[level]:
            self._next()
            right = self.binary(level + 1)
            left = self._apply(_BINARY[level][token.text], [left, right])
            if level == 0:
                break
        return left

    def settled(self, value: _Open, dtype: DType | None) -> UOp:
        """With a dtype for the numbers that have none: the given one, else their own."""
        match value:
            case _Number():
                return self._constant(value, dtype or value.dtype)
            case _List():
                wanted = dtype or self._wanted(list(value.items))
                return UOp(Op.STACK, *(self.settled(item, wanted) for item in value.items))
        return value

    def need(self, kind: str, text: str) -> _Token:
        token = self._next()
        if token.kind != kind or (text and token.text != text):
            expected = repr(text) if text else "the end"
            found = "the end" if token.kind == "end" else repr(token.text)
            raise self._fail(f"expected {expected}, found {found}", token.column)
        return token

    def _unary(self) -> _Open:
        token = self._peek()
        if token.kind != "mark" or token.text not in "-+!~":
            return self._power()
        self._next()
        value = self._deeper(self._unary)
        match token.text, value:
            case "+", _:
                return value
            case "-", _Number(text=text) if text not in ("true", "false") and "nan" not in text:
                return _Number(text[1:] if text[0] == "-" else f"-{text}", token.column)
            case "-", _:
                return self._apply(Op.NEG, [value])
            case "!", _:
                return self._apply(Op.NOT, [value])
        u = self.settled(value, None)
        if u.dtype.kind is Kind.BOOL:
            return UOp(Op.NOT, u)
        return UOp(Op.XOR, u, UOp(Op.CONST, arg=ConstArg((1 << u.dtype.bits) - 1, u.dtype)))

    def _power(self) -> _Open:
        base = self._atom()
        if self._peek().text != "**":
            return base
        self._next()
        return self._apply(Op.POW, [base, self._deeper(self._unary)])

    def _atom(self) -> _Open:
        token = self._next()
        if token.kind == "number":
            return _Number(_plain(token.text), token.column)
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            value = self._deeper(lambda: self.binary(0))
            self.need("mark", ")")
            return value
        if token.text == "[":
            items = self._items("]")
            if not items:
                raise self._fail("expected a value between the brackets", token.column)
            return _List(tuple(items), token.column)
        found = "the end" if token.kind == "end" else repr(token.text)
        raise self._fail(f"expected a value, found {found}", token.column)

    def _named(self, token: _Token) -> _Open:
        name = token.text
        if name in WORDS:
            return _Number(name, token.column)
        if name in NAMED_DTYPES:
            self.need("mark", "(")
            return self._converted(NAMED_DTYPES[name], self._items(")"), token)
        if name.upper() == "BITCAST":
            self.need("mark", "(")
            return self._bitcast()
        if name.upper() not in NAMED_OPS:
            raise self._fail(_unknown(name), token.column)
        self.need("mark", "(")
        return self._apply(NAMED_OPS[name.upper()], self._items(")"))

    def _items(self, closing: str) -> list[_Open]:
        """Values up to the closing mark, which is taken too."""
        items: list[_Open] = []
        while self._peek().text != closing:
            items.append(self._deeper(lambda: self.binary(0)))
            if self._peek().text != ",":
                break
            self._next()
        self.need("mark", closing)
        return items

    def _converted(self, dtype: DType, items: list[_Open], token: _Token) -> UOp:
        if len(items) != 1:
            raise self._fail(f"{token.text} takes one value, found {len(items)}", token.column)
        u = self.settled(items[0], dtype)
        return u if u.dtype is dtype else UOp(Op.CAST, u, arg=DTypeArg(dtype))

    def _bitcast(self) -> UOp:
        value = self.settled(self._deeper(lambda: self.binary(0)), None)
        self.need("mark", ",")
        name = self._next()
        if name.text not in NAMED_DTYPES:
            raise self._fail(f"expected a dtype, found {_cut(name.text)!r}", name.column)
        self.need("mark", ")")
        return UOp(Op.BITCAST, value, arg=DTypeArg(NAMED_DTYPES[name.text]))

    def _apply(self, op: Op, operands: list[_Open]) -> UOp:
        """The node, its numbers in the dtype of the other operands; a condition stays bool."""
        free = operands[:1] if op is Op.WHERE else []
        rest = operands[len(free) :]
        wanted = self._wanted(rest)
        if not any(isinstance(v, UOp) for v in rest):
            wanted = _taken(DECLARATIONS[op].dtypes, wanted)
        src = [self.settled(v, None) for v in free] + [self.settled(v, wanted) for v in rest]
        return UOp(op, *src)

    def _wanted(self, values: list[_Open]) -> DType | None:
        """The dtype for numbers without one: that of the first value with one, else their own."""
        flat: list[_Open] = list(values)
        for v in flat:
            if isinstance(v, _List):
                flat.extend(v.items)
        numbers = [v.dtype for v in flat if isinstance(v, _Number)]
        known = [v.dtype for v in flat if isinstance(v, UOp)]
        if known:
            return known[0]
        return next((d for d in numbers if d.is_float), numbers[0] if numbers else None)

    def _constant(self, number: _Number, dtype: DType) -> UOp:
        text = number.text
        try:
            literal: Literal = Word(text)
            if text in ("true", "false"):
                literal = text == "true"
            elif not dtype.is_float and re.fullmatch(r"-?[0-9]+", text):
                literal = int(text)
            return UOp(Op.CONST, arg=ConstArg(decode_scalar(literal, dtype), dtype))
        except MalformedError as error:
            raise self._fail(error.message.replace(text, _cut(text)), number.column) from None
        except ValueError as error:
            raise self._fail(str(error).replace(text, _cut(text)), number.column) from None

    def _deeper(self, read: Callable[[], _Open]) -> _Open:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._fail(f"nested more than {DEEPEST} deep", self._peek().column)
        value = read()
        self._depth -= 1
        return value

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _fail(self, message: str, column: int) -> MalformedError:
        return MalformedError(message, 1, column)


def _taken(allowed: tuple[DType, ...], wanted: DType | None) -> DType | None:
    """For numbers alone: what they are, or where the op does not take that, what it takes."""
    if not allowed or wanted in allowed or wanted is dtypes.bool:
        return wanted
    return dtypes.float32 if dtypes.float32 in allowed else allowed[0]


def _too_large(number: str) -> str:
    """Why a number is not read: a computer would not come back from some; empty where it is."""
    if len(number) > LONGEST:
        return f"a number has at most {LONGEST} characters, found {len(number)}"
    letter = "p" if number[:2] in ("0x", "0X") else "e"
    exponent = "" if number.startswith("nan") else number.lower().partition(letter)[2]
    digits = len(exponent.lstrip("+-"))
    if digits <= EXPONENT[letter]:
        return ""
    return f"an exponent has at most {EXPONENT[letter]} digits, found {digits}"


def _unknown(name: str) -> str:
    """What is wrong with a name, and which one is near."""
    known = [*NAMED_DTYPES, *(op.lower() for op in NAMED_OPS), *WORDS]
    near = get_close_matches(name.lower(), known, 1, 0.7)
    said = f"{_cut(name)!r} is neither a dtype nor an elementwise op"
    return f"{said}; near: {near[0]}" if near else said


def _cut(text: str) -> str:
    """A text as far as an error quotes it."""
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}..."


def _plain(number: str) -> str:
    """Hexadecimal integers as decimals; all else as it stands."""
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", number):
        return str(int(number, 16))
    return number
