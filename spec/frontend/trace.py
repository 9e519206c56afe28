"""Traces Tensors: finds the ops that the user called, from the outputs back to the data.

The text of a trace has one line for each op.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from itertools import count
from math import prod
from reprlib import repr as _repr
from typing import NoReturn, cast

from uop.spec.args import Arg, ConstArg, Device, GetTupleArg, ReduceArg, arg_of
from uop.spec.conditions.labels import invalid
from uop.spec.dtype import DTYPES, DType
from uop.spec.errors import MalformedError
from uop.spec.frontend.calls import (
    BARE,
    CONSTANTS,
    Attribute,
    attribute,
    call_of,
    device_attribute,
    sizes,
    stored,
)
from uop.spec.frontend.tensor import FOLDS, Tensor
from uop.spec.frontend.values import elements, held_by
from uop.spec.graph import outside_bodies, toposort
from uop.spec.ops.names import Op
from uop.spec.text.array import nested
from uop.spec.text.literal import Line, Token, Word
from uop.spec.text.printer import in_place
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
        raise invalid("TEXT.c1", "parse_trace", _repr(text))
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
    name: Token
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
    return _Parsed(outputs, name, inputs, attributes, line)


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
        raise op.line.fail(f"expected the name of a body above, found {_written(body)}", op.name)
    inputs = tuple([_known(known, name, op.line) for name in op.inputs])
    outputs: list[TraceTensor] = []
    for token in op.outputs:
        if token.text in known or token.text in (t.name for t in outputs):
            raise op.line.fail(f"a second tensor {token.text}", token)
        like = types.get(token.text, TraceTensor(""))
        outputs.append(TraceTensor(token.text, like.shape, like.dtype, like.device))
    known.update((t.name, t) for t in outputs)
    return TraceOp(op.name.text, inputs, op.attributes, tuple(outputs))


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


DATA_LIMIT = 64
"""Data of up to this many elements stands in the text."""
KINDS = {
    **{Op.ADD: "SUM", Op.IDIV: "FLOOR_DIV", Op.MAX: "MAXIMUM", Op.MIN: "MINIMUM"},
    **{Op.CMPLT: "LESS", Op.CMPLE: "LESS_EQUAL", Op.CMPGT: "GREATER", Op.CMPGE: "GREATER_EQUAL"},
    **{Op.CMPEQ: "EQUAL", Op.CMPNE: "NOT_EQUAL"},
}
"""Kinds of elementwise ops that have another name than the op."""
NAMES = {Op.LOAD: "copy", Op.INDEX: "getitem"}
OPERANDS = {"s": "shape", "s'": "shape", "o": "offset", "i": "index"}


def trace(*outputs: Tensor) -> Trace:
    """The trace of these Tensors: one op for each function that the user called.

    A call on a Tensor after its evaluation starts from a storage with its value.
    """
    strange = [t for t in outputs if not isinstance(t, Tensor)]
    if strange or not outputs:
        raise invalid("TRACE.outputs", "trace", _repr(strange[0] if strange else ()))
    bodies: dict[UOp, str] = {}
    texts: dict[str, Trace] = {}
    found = _traced([t.uop for t in outputs], bodies, texts)
    return Trace(found.ops, found.outputs, texts)


def _traced(roots: list[UOp], bodies: dict[UOp, str], texts: dict[str, Trace]) -> Trace:
    """The trace of nodes. Bodies of functions get names, and their traces, when they are met."""
    ops: list[TraceOp] = []
    tensors: dict[UOp, TraceTensor] = {}
    numbers = count()
    for u in toposort(roots, _inputs):
        if u in tensors:
            continue
        inputs = tuple([tensors[result] for s in _inputs(u) for result in _results(s)])
        results = _results(u)
        name, attributes = _described(u)
        if u.op is Op.FUNCTION:
            attributes = {BODY: Word(_body(u.src[0], bodies, texts))}
        made = [TraceTensor(f"t{next(numbers)}", sizes(r), r.dtype, r.device, r) for r in results]
        ops.append(TraceOp(name, inputs, attributes, tuple(made)))
        tensors.update(zip(results, made, strict=True))
    outputs = [tensors[result] for root in roots for result in _results(root)]
    return Trace(tuple(ops), tuple(outputs))


def _results(u: UOp) -> list[UOp]:
    """The values that a node has: those of a FUNCTION are the elements of its TUPLE."""
    if u.op is not Op.FUNCTION:
        return [u]
    return [UOp(Op.GETTUPLE, u, arg=GetTupleArg(k)) for k in range(len(u.src[0].src))]


def _body(body: UOp, names: dict[UOp, str], texts: dict[str, Trace]) -> str:
    """The name of the trace of a body; those of the functions that it calls come first."""
    if body not in names:
        found = _traced([*body.src], names, texts)
        names[body] = f"f{len(names)}"
        texts[names[body]] = found
    return names[body]


def _inputs(u: UOp) -> tuple[UOp, ...]:
    """The nodes whose tensors an op takes: those of the call that made it, if there was one."""
    call = call_of(u)
    if call is not None:
        return call.inputs
    return tuple([s for s in outside_bodies(u) if in_place(s) is None])


def _described(u: UOp) -> tuple[str, dict[str, Attribute]]:
    """The name and the attributes of the op that made a node."""
    call, name = call_of(u), NAMES.get(u.op, u.op.name.lower())
    if call is not None:
        return call.name, call.attributes
    if u.op is Op.CONST or held_by(u) is not None:
        return "storage", stored(_data(u), u)
    is_named = u.op in (Op.WHERE, Op.CAST, Op.MULACC, Op.THREEFRY)
    if u.declaration.is_elementwise and not is_named:
        kind = Word(f"Kind.{KINDS.get(u.op, u.op.name)}")
        return ("unaryelementwise" if len(u.src) == 1 else "binaryelementwise"), {"kind": kind}
    if u.op is Op.REDUCE and not u.src[1:]:
        fold = arg_of(u, ReduceArg)
        kinds = (kind for kind, op in FOLDS.items() if op is fold.op)
        kind = Word(f"Kind.{next(kinds, fold.op.name)}")
        return name, {"kind": kind, "axes": fold.axes, "keepdims": True}
    return name, {**_in_place(u), **_fields(u.arg)}


def _in_place(u: UOp) -> dict[str, Attribute]:
    """The operands that are shapes and indices: no tensors, but attributes by their names."""
    names = u.declaration.src
    found: dict[str, Attribute] = {}
    for k, s in enumerate(u.src[: len(names)]):
        name = OPERANDS.get(names[k].rstrip("*?"), names[k].rstrip("*?"))
        if names[k].endswith("*") and any(in_place(t) for t in u.src[k:]):
            found[name] = tuple([_in_text(t) for t in u.src[k:]])
        elif in_place(s) is not None:
            found[name] = _in_text(s)
    return found


def _in_text(u: UOp) -> Attribute:
    """An index or a shape; anything else is the next of the tensors."""
    if in_place(u) is None:
        return attribute(u)
    if isinstance(u.arg, ConstArg):
        return u.arg.value
    return tuple([_in_text(size) for size in u.src])


def _fields(arg: Arg | None) -> dict[str, Attribute]:
    """The fields of an arg that are set."""
    values = {f.name: getattr(arg, f.name) for f in fields(arg)} if arg is not None else {}
    return {name: _set_field(name, value) for name, value in values.items() if value is not None}


def _set_field(name: str, value: object) -> Attribute:
    if name == "device":
        return device_attribute(cast(Device, value))
    return Word(value.name) if isinstance(value, Enum | Op) else attribute(value)


def _data(u: UOp) -> object:
    """The data of a storage, None for much of it."""
    if isinstance(u.arg, ConstArg):
        return u.arg.value
    held = held_by(u)
    is_short = held is not None and prod(held.shape) <= DATA_LIMIT
    return nested(elements(held), held.shape, list) if held is not None and is_short else None
