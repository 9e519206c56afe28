"""The form of a trace, its ops and their tensors, and its text: one line for each op."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from reprlib import repr as _repr
from typing import NoReturn

from uop.spec.args import Device
from uop.spec.conditions.labels import TEXT_C1
from uop.spec.dtype import DTYPES, DType
from uop.spec.errors import MalformedError, users_line
from uop.spec.frontend.calls import BARE, CONSTANTS, Attribute, device_attribute
from uop.spec.text.literal import Line, Token, Word
from uop.spec.uop import UOp

INDENT = "    "
BODY = "body"
"""The attribute of a call of a function that names its body."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, eq=False)
class TraceTensor:
    """A tensor of a trace, which knows the op that it came from.

    A trace from text has no nodes, and knows shape, dtype and device of its outputs alone. A
    symbolic size is -1.
    """

    name: str
    shape: tuple[int, ...] | None = None
    dtype: DType | None = None
    device: Device = None
    uop: UOp | None = None
    producer: TraceOp = field(init=False)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class TraceOp:
    """A call of the user: its tensors, and its other arguments.

    The node of an output, above those of the inputs, computes the same.
    """

    name: str
    inputs: tuple[TraceTensor, ...]
    attributes: dict[str, Attribute]
    outputs: tuple[TraceTensor, ...]

    def __post_init__(self) -> None:
        for tensor in self.outputs:
            object.__setattr__(tensor, "producer", self)

    def __repr__(self) -> str:
        left = ", ".join(t.name for t in self.outputs)
        named = (f"{name}={_written(value)}" for name, value in self.attributes.items())
        return f"{left} = {self.name}({', '.join([*(t.name for t in self.inputs), *named])})"


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Ops, each after those that it reads, and the outputs. Traces are equal if their texts are.

    `bodies` are those of the functions that are called, by the name in the attribute `body`.
    """

    ops: tuple[TraceOp, ...]
    outputs: tuple[TraceTensor, ...]
    bodies: dict[str, Trace] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = []
        for name, body in self.bodies.items():
            lines += [f"{name}:", *(INDENT + line for line in str(body).splitlines())]
        lines += [repr(op) for op in self.ops]
        lines += ["outputs:", *(f"{INDENT}{_output(t)}" for t in self.outputs)]
        return "\n".join(lines)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def parse_trace(text: str) -> Trace:
    """The trace of a text; MalformedError with line and column, InvalidError for no str."""
    if not isinstance(text, str):
        raise TEXT_C1.error("parse_trace", _repr(text), users_line())
    return _Reader(text).trace()


def _output(t: TraceTensor) -> str:
    sizes = ", ".join(map(str, t.shape or ()))
    dtype = "" if t.dtype is None else t.dtype.name
    device = device_attribute(t.device)
    where = _items(device) if isinstance(device, tuple) else _written(device)
    return f"{t.name}: [shape=([{sizes}]), dtype=({dtype}), loc=({where})]"


def _written(value: Attribute) -> str:
    match value:
        case Word():
            return value
        case str():
            return json.dumps(value)
        case tuple():
            return f"({_items(value)})"
        case list():
            return f"[{', '.join(map(_written, value))}]"
    return repr(value)


def _items(values: Sequence[Attribute]) -> str:
    """Items as Python writes them in a tuple: one alone has a comma."""
    return ", ".join(map(_written, values)) + "," * (len(values) == 1)


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The line of an op, with the tokens of its names."""

    outputs: list[Token]
    at: Token
    name: str
    inputs: list[Token]
    attributes: dict[str, Attribute]
    line: Line


class _Reader:
    """A cursor over the lines of a text."""

    def __init__(self, text: str) -> None:
        lines = text.expandtabs().split("\n")
        self._lines = [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
        self._end = len(lines)
        self._position = 0

    def trace(self) -> Trace:
        bodies: dict[str, Trace] = {}
        while (name := self._header()) is not None:
            if name.text in bodies:
                self._fail(f"a second body {name.text}", name.column)
            self._position += 1
            bodies[name.text] = self._block(INDENT, bodies)
        found = self._block("", bodies)
        if self._position < len(self._lines):
            self._fail("expected the end of the text")
        return Trace(found.ops, found.outputs, bodies)

    def _header(self) -> Token | None:
        """The name of a body, if one begins here."""
        text = self._lines[self._position][1] if self._position < len(self._lines) else ""
        name, colon, rest = text.rstrip().partition(":")
        if not colon or rest or name == "outputs" or not _NAME.fullmatch(name):
            return None
        return Token("word", name, 1)

    def _next(self, indent: str, expected: str) -> Line:
        if self._position == len(self._lines):
            raise MalformedError(f"expected {expected}, found the end of the text", self._end, 1)
        number, text = self._lines[self._position]
        if self._depth() != len(indent):
            self._fail(f"expected {expected}, with {len(indent)} spaces before it")
        self._position += 1
        return Line(text, number)

    def _depth(self) -> int:
        if self._position == len(self._lines):
            return 0
        text = self._lines[self._position][1]
        return len(text) - len(text.lstrip())

    def _fail(self, message: str, column: int = 0) -> NoReturn:
        number = self._lines[self._position][0]
        raise MalformedError(message, number, column or self._depth() + 1)

    def _block(self, indent: str, bodies: dict[str, Trace]) -> Trace:
        ops = []
        while (op := _op(self._next(indent, "an op or `outputs:`"))) is not None:
            ops.append(op)
        outputs = []
        while self._depth() == len(indent) + len(INDENT):
            line = self._next(indent + INDENT, "an output")
            outputs.append((line.need_kind("word", "a tensor"), _typed(line), line))
        types = {name.text: tensor for name, tensor, _ in outputs}
        known: dict[str, TraceTensor] = {}
        made = tuple([_made(op, types, known, bodies) for op in ops])
        return Trace(made, tuple([_known(known, name, line) for name, _, line in outputs]))


def _op(line: Line) -> _Parsed | None:
    """The op of a line; None for `outputs:`."""
    outputs = [line.need_kind("word", "a tensor")]
    if outputs[0].text == "outputs" and line.take(":"):
        line.need_end()
        return None
    while line.take(","):
        outputs.append(line.need_kind("word", "a tensor"))
    line.need("=")
    name = line.need_kind("word", "the name of an op")
    line.need("(")
    inputs: list[Token] = []
    attributes: dict[str, Attribute] = {}
    while not line.take(")"):
        if inputs or attributes:
            line.need(",")
        word = line.need_kind("word", "a tensor or an attribute")
        if line.take("="):
            if word.text in attributes:
                raise line.fail(f"a second attribute {word.text}", word)
            attributes[word.text] = _value(line)
        elif attributes:
            raise line.fail("expected an attribute: tensors come first", word)
        else:
            inputs.append(word)
    line.need_end()
    return _Parsed(outputs, name, name.text, inputs, attributes, line)


def _typed(line: Line) -> TraceTensor:
    """What is said of an output."""
    line.need(":")
    line.need("[")
    shape, at = _field(line, "shape")
    if not isinstance(shape, list) or not all(type(n) is int for n in shape):
        raise line.fail("expected a list of sizes", at)
    line.need(",")
    dtype, at = _field(line, "dtype")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise line.fail("expected a dtype", at)
    line.need(",")
    loc, at = _field(line, "loc")
    names = [str(d) for d in (loc if isinstance(loc, tuple) else (loc,)) if isinstance(d, str)]
    if loc is not None and len(names) != (len(loc) if isinstance(loc, tuple) else 1):
        raise line.fail("expected devices", at)
    line.need("]")
    line.need_end()
    sizes = tuple([n for n in shape if isinstance(n, int)])
    device = tuple(names) if isinstance(loc, tuple) else names[0] if names else None
    return TraceTensor("", sizes, DTYPES[dtype], device)


def _field(line: Line, name: str) -> tuple[Attribute, Token]:
    """The value of `name=(value)`, a tuple of several, and where it begins."""
    word = line.need_kind("word", f"{name}=")
    if word.text != name:
        raise line.fail(f"expected {name}=, found {word}", word)
    line.need("=")
    line.need("(")
    at = line.peek()
    values, is_tuple = _until(line, ")")
    return (tuple(values) if is_tuple or not values else values[0]), at


def _made(
    op: _Parsed,
    types: dict[str, TraceTensor],
    known: dict[str, TraceTensor],
    bodies: dict[str, Trace],
) -> TraceOp:
    body = op.attributes.get(BODY)
    if body is not None and body not in bodies:
        raise op.line.fail(f"expected the name of a body above, found {_written(body)}", op.at)
    inputs = tuple([_known(known, name, op.line) for name in op.inputs])
    outputs: list[TraceTensor] = []
    for token in op.outputs:
        if token.text in known or token.text in (t.name for t in outputs):
            raise op.line.fail(f"a second tensor {token.text}", token)
        like = types.get(token.text, TraceTensor(""))
        outputs.append(TraceTensor(token.text, like.shape, like.dtype, like.device))
    known.update((t.name, t) for t in outputs)
    return TraceOp(op.name, inputs, op.attributes, tuple(outputs))


def _known(known: dict[str, TraceTensor], name: Token, line: Line) -> TraceTensor:
    if name.text not in known:
        raise line.fail(f"expected a tensor of a line above, found {name.text}", name)
    return known[name.text]


def _until(line: Line, closing: str) -> tuple[list[Attribute], bool]:
    """Values up to a bracket, and whether a comma was among them."""
    values: list[Attribute] = []
    comma = False
    while not line.take(closing):
        values.append(_value(line))
        if not line.at(closing):
            line.need(",")
            comma = True
    return values, comma


def _value(line: Line) -> Attribute:
    if line.take("["):
        return _until(line, "]")[0]
    if line.take("("):
        return tuple(_until(line, ")")[0])
    token = line.peek()
    if token.kind == "int":
        return line.integer()
    if token.kind == "string":
        leaf = line.literal()
        return str(leaf)
    text = line.need_kind("word", "a value").text
    if text in CONSTANTS:
        return CONSTANTS[text]
    if not BARE.fullmatch(text):
        return _number(text, line, token)
    return Word(f"{text}:{line.integer()}") if line.take(":") else Word(text)


def _number(text: str, line: Line, token: Token) -> float:
    try:
        return float(text)
    except ValueError:
        raise line.fail(f"expected a value, found {token}", token) from None
