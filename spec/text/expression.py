"""Parses an expression such as `u8(200) + u8(100)` into a graph.

    comparison   a == b  a != b  a < b  a <= b  a > b  a >= b
    | ^ &        OR XOR AND
    << >>        SHL SHR
    + -          ADD SUB
    * / // %     MUL DIV IDIV MOD; a @ b is the matrix product
    - ! ~        NEG NOT, all bits flipped
    **           POW
    dtype(x)     a constant of that dtype, or a CAST;  u8 i8 f32 bf16 and so on are short names
    op(x, y)     an op by its name: max(x, y), reshape(x, [2,3]), INDEX(x, 0), for index is a dtype
    op(x, f=v)   with fields of its arg: permute(x, order=[1,0]); a bare word is the first of them:
                 bitcast(x, u32), pad(x, [1], [4], zero), reduce(max, x), which folds all axes
    [x, y]       STACK

Operators further down bind tighter. A number without a dtype takes that of the other operand; alone
an integer is int32 and any other number float32, unless the op takes neither. Shapes and offsets
are of dtype index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import partial
from typing import NamedTuple, TypeVar

from uop.spec import args
from uop.spec.args import Arg
from uop.spec.dtype import DTYPES, INTS, VALUES, DType, Kind, dtypes
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.frontend.views import matmul
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.codec import decode_fields, decode_scalar, required_fields
from uop.spec.text.literal import Literal, Quoted, Word
from uop.spec.text.program import Scope
from uop.spec.uop import UOp

LONGEST = 3000
"""The most characters of a number; the exact decimals of every float64 fit."""

EXPONENT = {"e": 4, "p": 5}
"""The most digits of an exponent, by its letter."""

QUOTED = 60
"""The most characters of a name or number that an error quotes."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>nan:0x[0-9a-fA-F]+
        | 0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][-+]?[0-9]+)?
        | [0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<string>"[^"\\]*")
    | (?P<mark>\*\*|//|<<|>>|[=!<>]=|[-+*/%@&|^~!<>()\[\],=])
    | (?P<end>$)
    | (?P<bad>.)
    )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)


class Token(NamedTuple):
    """A token: its kind (a group of the pattern), its text, and its column from 1."""

    kind: str
    text: str
    column: int

    @property
    def shown(self) -> str:
        """The token as an error quotes it."""
        return "the end" if self.kind == "end" else repr(cut(self.text))

    @property
    def plain(self) -> str:
        """The text, with a hexadecimal integer in decimals."""
        is_hex = re.fullmatch(r"0[xX][0-9a-fA-F]+", self.text)
        return str(int(self.text, 16)) if is_hex else self.text


def tokens(source: str) -> list[Token]:
    """The tokens of a text, the last of kind `end`; MalformedError for text that is no token."""
    found: list[Token] = []
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup or "bad"
        small = match[kind].lower()
        text = small if kind == "name" and small in WORDS else match[kind]
        token = Token(kind, text, match.start(kind) + 1)
        found.append(token)
        if kind == "bad":
            raise MalformedError(f"unexpected {token.text!r}", 1, token.column)
        if kind == "number" and (reason := _too_large(token.text)):
            raise MalformedError(reason, 1, token.column)
        if kind == "end":
            break
    return found


def cut(text: str) -> str:
    """A text, shortened for an error message."""
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}..."


def _too_large(number: str) -> str:
    """Why a number is refused, since some would take forever to compute; empty for a valid one."""
    if len(number) > LONGEST:
        return f"a number has at most {LONGEST} characters, found {len(number)}"
    letter = "p" if number[:2] in ("0x", "0X") else "e"
    exponent = "" if number.startswith("nan") else number.lower().partition(letter)[2]
    digits = len(exponent.lstrip("+-"))
    if digits <= EXPONENT[letter]:
        return ""
    return f"an exponent has at most {EXPONENT[letter]} digits, found {digits}"


DEEPEST = 64
"""The most parentheses, brackets and signs inside each other."""

T = TypeVar("T")

NAMED_DTYPES: dict[str, DType] = {
    **{d.name: d for d in VALUES},
    **{f"{d.name[0]}{d.bits}": d for d in INTS},
    **{f"f{bits}": DTYPES[f"float{bits}"] for bits in (16, 32, 64)},
    "bf16": dtypes.bfloat16,
}

INDICES = frozenset(
    {"s", "s'", "o", "i", "offset", "bound"}
    | {"n", "end", "indices", "new_shape", "begin_pads", "end_pads", "begins", "ends"}
)
"""The names of shape, offset and index operands in declarations and in the words of editions."""

WORDS = ("true", "false", "inf", "nan")
"""The values that are written as words, in any case of letters."""

CHOICES = frozenset(
    name
    for kind in (Op, args.AddrSpace, args.AxisType, args.PadFill, args.Unit)
    for name in kind.__members__
)
"""The enum names that an arg field may have, in capitals or not."""

MATMUL = "@"
"""The operator that becomes several nodes."""
_LEVELS: tuple[dict[str, Op | None], ...] = (
    {"==": Op.CMPEQ, "!=": Op.CMPNE, "<": Op.CMPLT, "<=": Op.CMPLE, ">": Op.CMPGT, ">=": Op.CMPGE},
    {"|": Op.OR},
    {"^": Op.XOR},
    {"&": Op.AND},
    {"<<": Op.SHL, ">>": Op.SHR},
    {"+": Op.ADD, "-": Op.SUB},
    {"*": Op.MUL, "/": Op.DIV, "//": Op.IDIV, "%": Op.MOD, MATMUL: None},
)
_BINARY = {mark: (level, op) for level, marks in enumerate(_LEVELS) for mark, op in marks.items()}
"""The binding level of each operator, and its op."""
OPERATORS = {op: mark for mark, (_, op) in _BINARY.items() if op is not None}
"""The mark of each op that is written between its operands."""
BINDING = {op: level for level, op in _BINARY.values() if op is not None}
"""The binding strength of each operator: a larger number binds tighter."""
_NO_OPERATOR = (-1, None)


def read_expression(text: str, scope: Scope | None = None) -> UOp:
    """The graph of an expression, whose ops are those of a scope, by default the core.

    MalformedError for text outside the grammar, with its column; InvalidError for a node that
    breaks a constraint; UnsupportedError for an op that an edition does not have.
    """
    reader = _Reader(text, scope or Scope())
    try:
        value = reader.binary(0)
        reader.need("end", "")
        return reader.settled(value, None)
    except InvalidError as error:
        # The error belongs to the expression, not to a line of the user's Python code.
        raise error.at(text) from None


@dataclass(frozen=True, slots=True)
class _Number:
    """A number or bool without a dtype so far; `text` is exact."""

    text: str
    column: int

    @property
    def dtype(self) -> DType:
        """Its dtype without context."""
        if self.text in ("true", "false"):
            return dtypes.bool
        return dtypes.int32 if re.fullmatch(r"-?[0-9]+", self.text) else dtypes.float32


@dataclass(frozen=True, slots=True)
class _List:
    """Values in brackets, with numbers that have no dtype so far."""

    items: tuple[_Open, ...]
    column: int


_Open = UOp | _Number | _List


class _Reader:
    """A recursive-descent parser: a cursor over the tokens."""

    def __init__(self, text: str, scope: Scope) -> None:
        self._tokens = tokens(text)
        self._scope = scope
        self._at = 0
        self._depth = 0

    def binary(self, least: int) -> _Open:
        """Parse operators of this level or a tighter one; they are left-associative."""
        left = self._unary()
        while True:
            level, op = _BINARY.get(self._peek().text, _NO_OPERATOR)
            if level < least:
                return left
            self._next()
            operands = [left, self.binary(level + 1)]
            left = self._matmul(operands) if op is None else self._apply(op.name, operands)
            if level == 0:
                # Comparisons do not chain.
                return left

    def settled(self, value: _Open, dtype: DType | None) -> UOp:
        """Give the numbers without a dtype this one, else their default."""
        match value:
            case _Number():
                return self._constant(value, dtype or value.dtype)
            case _List():
                if not value.items and dtype is not dtypes.index:
                    raise self._fail("expected a value between the brackets", value.column)
                wanted = dtype or self._wanted(list(value.items))
                return UOp(Op.STACK, *(self.settled(item, wanted) for item in value.items))
        return value

    def need(self, kind: str, text: str) -> Token:
        token = self._next()
        if token.kind != kind or (text and token.text != text):
            expected = repr(text) if text else "the end"
            raise self._fail(f"expected {expected}, found {token.shown}", token.column)
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
                return self._apply("NEG", [value])
            case "!", _:
                return self._apply("NOT", [value])
        u = self.settled(value, None)
        if u.dtype.kind is Kind.BOOL:
            return UOp(Op.NOT, u)
        return UOp(Op.XOR, u, UOp(Op.CONST, arg=args.ConstArg((1 << u.dtype.bits) - 1, u.dtype)))

    def _power(self) -> _Open:
        base = self._atom()
        if self._peek().text != "**":
            return base
        self._next()
        return self._apply("POW", [base, self._deeper(self._unary)])

    def _atom(self) -> _Open:
        token = self._next()
        if token.kind == "number":
            return _Number(token.plain, token.column)
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            value = self._deeper(partial(self.binary, 0))
            self.need("mark", ")")
            return value
        if token.text == "[":
            return _List(tuple(self._items("]")), token.column)
        raise self._fail(f"expected a value, found {token.shown}", token.column)

    def _named(self, token: Token) -> _Open:
        name = token.text
        if name in WORDS:
            return _Number(name, token.column)
        if name in NAMED_DTYPES:
            self.need("mark", "(")
            return self._converted(NAMED_DTYPES[name], self._items(")"), token)
        if name.upper() not in self._scope.names:
            raise self._fail(self._unknown(name), token.column)
        self.need("mark", "(")
        return self._call(name.upper(), token)

    def _items(self, closing: str) -> list[_Open]:
        return self._until(closing, partial(self.binary, 0))

    def _until(self, closing: str, read: Callable[[], T]) -> list[T]:
        items: list[T] = []
        while self._peek().text != closing:
            items.append(self._deeper(read))
            if self._peek().text != ",":
                break
            self._next()
        self.need("mark", closing)
        return items

    def _converted(self, dtype: DType, items: list[_Open], token: Token) -> UOp:
        if len(items) != 1:
            raise self._fail(f"{token.text} takes one value, found {len(items)}", token.column)
        u = self.settled(items[0], dtype)
        return u if u.dtype is dtype else UOp(Op.CAST, u, arg=args.DTypeArg(dtype))

    def _call(self, name: str, token: Token) -> UOp:
        """Parse an op with its operands and the fields of its arg."""
        literals: dict[str, Literal] = {}
        kind = self._scope.arg_type(name)

        def read() -> _Open | None:
            field = self._field_next(kind, literals)
            if not field:
                return self.binary(0)
            literals[field] = self._literal()
            return None

        operands = [value for value in self._until(")", read) if value is not None]
        return self._apply(name, operands, literals, token.column)

    def _field_next(self, kind: type[Arg] | None, literals: Container[str]) -> str:
        """The name of the field that comes next, also of a bare word; empty before an operand."""
        token = self._peek()
        if kind is None or token.kind != "name":
            return ""
        after = self._tokens[self._at + 1]
        if after.text == "=" and token.text in literals:
            raise self._fail(f"the field {cut(token.text)!r} stands twice", token.column)
        if after.text == "=":
            self._at += 2
            return token.text
        first = fields(kind)[0].name
        is_bare = after.text in (",", ")") and token.text not in WORDS and first not in literals
        return first if is_bare else ""

    def _literal(self) -> Literal:
        """Parse the value of a field: a number, a word, a string, or a list of them."""
        token = self._next()
        match token.kind, token.text:
            case "mark", "[":
                return tuple(self._until("]", self._literal))
            case "mark", "-" if self._peek().kind == "number":
                return -int(self._integer(self._next()))
            case "number", _:
                return self._integer(token)
            case "string", text:
                return Quoted(text[1:-1])
            case "name", "true" | "false" as text:
                return text == "true"
            case "name", text:
                found = text.upper() if text.upper() in CHOICES else text
                return Word(NAMED_DTYPES[text].name if text in NAMED_DTYPES else found)
        raise self._fail(f"expected the value of a field, found {token.shown}", token.column)

    def _integer(self, token: Token) -> int:
        text = token.plain
        if not re.fullmatch(r"[0-9]+", text):
            raise self._fail(f"expected an integer, found {token.shown}", token.column)
        return int(text)

    def _apply(
        self,
        name: str,
        operands: list[_Open],
        literals: Mapping[str, Literal] | None = None,
        column: int = 1,
    ) -> UOp:
        """Build the node; numbers take the dtype of the other operands, a condition stays bool."""
        operand_names = [n.rstrip("?*") for n in self._scope.operands(name).src] or [""]
        named = [operand_names[min(k, len(operand_names) - 1)] for k in range(len(operands))]
        rest = [v for v, n in zip(operands, named, strict=True) if n not in INDICES | {"P"}]
        wanted = self._wanted(rest)
        if not any(isinstance(v, UOp) for v in rest):
            wanted = _taken(DECLARATIONS[Op[name]].dtypes if name in Op.__members__ else (), wanted)
        alone = {"P": None} | dict.fromkeys(INDICES, dtypes.index)
        src = [self.settled(v, alone.get(n, wanted)) for v, n in zip(operands, named, strict=True)]
        arg = self._arg(name, literals or {}, src, column)
        return self._scope.build(name, tuple(src), arg, None)

    def _matmul(self, operands: list[_Open]) -> UOp:
        a, b = (self.settled(v, self._wanted(operands)) for v in operands)
        return matmul(a, b)

    def _arg(
        self, name: str, literals: Mapping[str, Literal], src: list[UOp], column: int
    ) -> Arg | None:
        kind = self._scope.arg_type(name)
        if kind is args.ReduceArg and src and "axes" not in literals:
            literals = {**literals, "axes": tuple(range(len(src[0].shape)))}
        if not literals and (kind is None or not required_fields(kind)):
            return None
        try:
            return decode_fields(name, kind, self._scope.spelled(literals))
        except MalformedError as error:
            raise self._fail(error.message, column) from None

    def _wanted(self, values: list[_Open]) -> DType | None:
        """The dtype for numbers without one: that of the first typed value, else their default."""
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
            return UOp(Op.CONST, arg=args.ConstArg(decode_scalar(literal, dtype), dtype))
        except MalformedError as error:
            raise self._fail(error.message.replace(text, cut(text)), number.column) from None
        except ValueError as error:
            raise self._fail(str(error).replace(text, cut(text)), number.column) from None

    def _unknown(self, name: str) -> str:
        known = [*NAMED_DTYPES, *(op.lower() for op in self._scope.names), *WORDS]
        near = get_close_matches(name.lower(), known, 1, 0.7)
        said = f"{cut(name)!r} is neither a dtype nor an op"
        return f"{said}; near: {near[0]}" if near else said

    def _deeper(self, read: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._fail(f"nested more than {DEEPEST} deep", self._peek().column)
        value = read()
        self._depth -= 1
        return value

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _fail(self, message: str, column: int) -> MalformedError:
        return MalformedError(message, 1, column)


def _taken(allowed: Sequence[DType], wanted: DType | None) -> DType | None:
    """The dtype for numbers alone: their default, or if the op does not take it, one it takes."""
    if not allowed or wanted in allowed or wanted is dtypes.bool:
        return wanted
    return dtypes.float32 if dtypes.float32 in allowed else allowed[0]
