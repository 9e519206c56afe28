"""Parses and prints programs, one node per line. Law: `parse(print_program(u)) is u`.

    %0 = PARAM [2,3] {slot=0, dtype=float32} : float32[2,3]
    %1 = PERMUTE %0 {order=(1,0)} : float32[3,2]      ; a comment

The part after the colon is derived: it may be left out, but must not differ from what the rules
derive. An optional tag ends the line: `!"tag"`.

An operand may be a number, which stands for a CONST. An integer is of dtype index. One with a point
or an exponent, inf or nan has the float dtype of the other operands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from reprlib import repr as _repr
from typing import TypeVar

from uop.spec.args import Arg, ConstArg
from uop.spec.conditions.labels import invalid
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, MalformedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Operands
from uop.spec.text.codec import decode_fields, decode_scalar, op_named, shown
from uop.spec.text.literal import Line, Literal, Quoted, Token, Word, print_literal
from uop.spec.text.printer import Printer, derived, print_node, print_tag
from uop.spec.uop import UOp, checked_root, dims, index_const

T = TypeVar("T")


def print_program(root: UOp) -> str:
    """The text of a program, one line for each node that is not written in place."""
    return "\n".join(Printer().print([checked_root(root)])) + "\n"


def lines_by_node(root: UOp) -> dict[UOp, str]:
    """The line of each node that has one in the text of a program, in order."""
    scope, lines = Scope(), print_program(root).splitlines()
    for number, line in enumerate(lines, 1):
        scope.read_text(line, number)
    return {scope.nodes[number]: line for number, line in enumerate(lines)}


def print_unbuilt(node: Unbuilt) -> str:
    """The text of a program with an unchecked last node."""
    printer = Printer()
    lines = printer.print(printer.operands(node.src))
    written = print_node(node.op.name, [printer.operand(s) for s in node.src], node.arg)
    return "\n".join([*lines, f"%{len(lines)} = {written}{print_tag(node.tag)}"]) + "\n"


def parse(text: str, path: str = "") -> UOp:
    """The root of a program.

    MalformedError for other text, InvalidError for a node that breaks a constraint.
    """
    if not isinstance(text, str):
        raise invalid("TEXT.c1", "parse", _repr(text))
    scope = Scope(path)
    for number, line in enumerate(text.split("\n"), 1):
        scope.read_text(line, number)
    return scope.root()


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """A node that was read but not checked: the last node of a must-reject case."""

    op: Op
    src: tuple[UOp, ...]
    arg: Arg | None = None
    tag: str | None = None

    def build(self) -> UOp:
        return UOp(self.op, *self.src, arg=self.arg, tag=self.tag)


class Scope:
    """The numbered nodes of a program that is being read.

    A subclass defines other op names: their operands, the type of their arg, the node they build,
    and words of its own for the values of fields.
    """

    __slots__ = ("_path", "_place", "_used", "nodes")

    def __init__(self, path: str = "") -> None:
        self.nodes: dict[int, UOp] = {}
        self._path = path
        self._used: set[int] = set()
        self._place: dict[int, tuple[int, int]] = {}

    def read_text(self, text: str, number: int) -> None:
        """Read the text of a line."""
        if self.__class__ is not Scope or not self._read_printed(text, number):
            self.read(Line(text, number, self._path))

    def _read_printed(self, text: str, number: int) -> bool:
        """Read a line as it is printed, without its tokens; False, and nothing is read, for any
        other line, and for one that is wrong. The derived part may be left out.
        """
        head, mark, stated = text.partition(" : ")
        printed = PRINTED.fullmatch(head)
        if printed is None:
            return False
        defined, name, nodes = int(printed[1]), printed[2], self.nodes
        operands = printed[3].split(", ") if printed[3] else []
        try:
            src = [nodes[int(o[1:])] if o[0] == "%" else _operand_in_place(o) for o in operands]
            u = UOp(Op[name], *src, arg=_printed_arg(name, printed[4]))
        except (KeyError, MalformedError, InvalidError, UnsupportedError, ValueError):
            return False
        if defined in nodes or (mark and derived(u)[2:] != stated):
            return False
        self.nodes[defined], self._place[defined] = u, (number, 1)
        self._used.update(int(o[1:]) for o in operands if o[0] == "%")
        return True

    def read(self, line: Line) -> None:
        """Read one line: a node, or only a comment."""
        if line.peek().kind == "end":
            return
        start = line.peek()
        number, name, src, arg = self._define(line)
        u = self._build(name, src, arg, None, line, start.column)
        if line.at(":"):
            _check_derived(self, line, u)
        tag = read_tag(line)
        line.need_end()
        if tag is not None:
            u = self._build(name, src, arg, tag, line, start.column)
        self.nodes[number] = u

    def read_unbuilt(self, line: Line) -> Unbuilt:
        """Read a node without building it. The line has no derived part."""
        _, name, src, arg = self._define(line)
        node = Unbuilt(Op[name], src, arg, read_tag(line))
        line.need_end()
        self._check_used(None)
        return node

    @property
    def names(self) -> Collection[str]:
        """The names of the ops."""
        return [op.name for op in DECLARATIONS]

    def operands(self, name: str) -> Operands:
        """The names of the operands of an op; MalformedError for an unknown name."""
        return op_named(name)

    def spelled(self, fields: Mapping[str, Literal]) -> Mapping[str, Literal]:
        """The fields of an arg in the words of the core."""
        return fields

    def arg_type(self, name: str) -> type[Arg] | None:
        """The arg type of the op of this name; MalformedError for an unknown name."""
        return op_named(name).arg

    def build(self, name: str, src: tuple[UOp, ...], arg: Arg | None, tag: str | None) -> UOp:
        """Build the node of an op name."""
        return UOp(Op[name], *src, arg=arg, tag=tag)

    @property
    def lines(self) -> dict[UOp, int]:
        """The line of each node, the first one for a node with several."""
        found: dict[UOp, int] = {}
        for number, u in self.nodes.items():
            found.setdefault(u, self._place[number][0])
        return found

    def root(self, line: int = 1) -> UOp:
        """The last node. MalformedError for an unused other node, or at `line` without any node."""
        if not self.nodes:
            raise MalformedError("no program: expected a node", line, 1, self._path)
        self._check_used(self._last_number())
        return self.nodes[self._last_number()]

    def _last_number(self) -> int:
        return next(reversed(self.nodes))

    def _check_used(self, root: int | None) -> None:
        for number in self.nodes:
            if number not in self._used and number != root:
                raise MalformedError(
                    f"%{number} is used by no node and is not the last",
                    *self._place[number],
                    self._path,
                )

    def _define(self, line: Line) -> tuple[int, str, tuple[UOp, ...], Arg | None]:
        """Parse the part of a line before the derived part."""
        token = line.need_kind("node", "%N")
        number = int(token.text[1:])
        if number in self.nodes:
            raise line.fail(f"{token.text} is defined twice", token)
        self._place[number] = (line.number, token.column)
        line.need("=")
        name = line.need_kind("word", "the name of an op")
        try:
            kind = self.arg_type(name.text)
        except MalformedError as error:
            raise line.fail(error.message, name) from None
        except UnsupportedError as error:
            raise UnsupportedError(f"{_place(line, name.column)}: {error}") from None
        src = self._operands(line)
        brace = line.peek()
        fields = read_fields(line)
        try:
            spelled = None if fields is None else self.spelled(fields)
            arg = decode_fields(name.text, kind, spelled)
        except MalformedError as error:
            raise line.fail(error.message, brace) from None
        except InvalidError as error:
            raise error.at(_place(line, token.column)) from None
        if not (line.at(":") or line.at("!")):
            line.need_end()
        return number, name.text, src, arg

    def _operands(self, line: Line) -> tuple[UOp, ...]:
        """Parse the operands. A float in place has the one float dtype of the others."""
        found: list[UOp | Token] = []
        while line.take(",") if found else _is_operand_next(line):
            found.append(line.next() if line.at_float() else self.operand(line))
        known = {u.dtype: None for u in found if isinstance(u, UOp)}
        return tuple([u if isinstance(u, UOp) else _float_const(u, known, line) for u in found])

    def operand(self, line: Line) -> UOp:
        """Read an operand that is no float: a node by its number, an integer, or integers in
        brackets.
        """
        token = line.peek()
        if token.kind == "node":
            return self.numbered(int(line.next().text[1:]), line, token)
        try:
            if token.kind == "int":
                return index_const(line.integer())
            if line.at("["):
                return dims(_bracketed(line, line.integer))
        except ValueError as error:
            raise line.fail(str(error), token) from None
        raise line.fail(f"expected an operand: %N, a number or [...], found {token}")

    def numbered(self, number: int, line: Line, token: Token | None = None) -> UOp:
        """A node by its number, as an operand."""
        if number not in self.nodes:
            raise line.fail(f"%{number} is not defined before this line", token)
        self._used.add(number)
        return self.nodes[number]

    def _build(
        self,
        name: str,
        src: tuple[UOp, ...],
        arg: Arg | None,
        tag: str | None,
        line: Line,
        column: int,
    ) -> UOp:
        try:
            return self.build(name, src, arg, tag)
        except InvalidError as error:
            raise error.at(_place(line, column)) from None
        except UnsupportedError as error:
            raise UnsupportedError(f"{_place(line, column)}: {error}") from None


PRINTED = re.compile(
    r"""%([0-9]{1,9})[ ]=[ ]([A-Z][A-Z0-9_]*)
    (?:[ ](OPERAND(?:,[ ]OPERAND)*))?
    (?:[ ](\{[^"]*\}))?""".replace("OPERAND", r"(?:%[0-9]{1,9}|[0-9]{1,9}|\[[0-9,]*\])"),
    re.VERBOSE,
)
"""A line as it is printed, without its derived part: number, op, operands, fields."""
CACHED = 2048
"""The size of each cache: of args and of operands in place."""


@lru_cache(CACHED)
def _printed_arg(name: str, fields: str | None) -> Arg | None:
    """The arg of an op by the text of its fields; raises as `decode_fields` does."""
    line = Line(fields or "")
    arg = decode_fields(name, op_named(name).arg, read_fields(line))
    line.need_end()
    return arg


@lru_cache(CACHED)
def _operand_in_place(text: str) -> UOp:
    """An operand that is written in place: an integer, or integers in brackets."""
    line = Line(text)
    found = index_const(line.integer()) if text[0] != "[" else dims(_bracketed(line, line.integer))
    line.need_end()
    return found


def read_fields(line: Line) -> dict[str, Literal] | None:
    """Parse the fields of an arg in braces; None if no brace is next."""
    if not line.take("{"):
        return None
    fields: dict[str, Literal] = {}
    while not line.at("}"):
        token = line.need_kind("word", "the name of a field")
        if token.text in fields:
            raise line.fail(f"the field {token.text!r} stands twice", token)
        line.need("=")
        fields[token.text] = line.literal()
        if not line.take(","):
            break
    line.need("}")
    return fields


def read_tag(line: Line) -> str | None:
    if not line.take("!"):
        return None
    tag = line.literal()
    if not isinstance(tag, Quoted):
        raise line.fail(f"expected a tag in quotes, found {shown(tag)}")
    return str(tag)


def _is_operand_next(line: Line) -> bool:
    return line.peek().kind in ("node", "int", "string") or line.at("[") or line.at_float()


def _float_const(token: Token, known: Collection[DType], line: Line) -> UOp:
    """The constant of a float that stands as an operand; the other operands have these dtypes."""
    dtype, *others = [d for d in known if d.is_float] or [dtypes.void]
    if others or dtype is dtypes.void:
        names = ", ".join(d.name for d in known) or "none"
        raise line.fail(f"expected other operands of one float dtype, found {names}", token)
    try:
        bits = decode_scalar(Word(token.text.lower()), dtype)
    except MalformedError as error:
        raise line.fail(error.message, token) from None
    return UOp(Op.CONST, arg=ConstArg(bits, dtype))


def _bracketed(line: Line, read: Callable[[], T]) -> list[T]:
    line.need("[")
    found: list[T] = []
    while not line.at("]"):
        found.append(read())
        if not line.take(","):
            break
    line.need("]")
    return found


def _size(line: Line) -> str:
    """Parse a size in a derived part: an integer, or the word of a symbolic one."""
    return line.next().text if line.peek().kind == "word" else str(line.integer())


def _check_derived(scope: Scope, line: Line, u: UOp) -> None:
    line.need(":")
    start = line.peek()
    dtype = line.need_kind("word", "a dtype").text
    dtype = str(scope.spelled({"dtype": Word(dtype)})["dtype"])
    text = f": {dtype}[{','.join(_bracketed(line, partial(_size, line)))}]"
    if line.take("@"):
        text += f" @{print_literal(line.literal())}"
    if line.take("&"):
        text += f" &{line.need_kind('word', 'an addrspace').text}"
    if text != derived(u):
        raise line.fail(f"expected {derived(u)[2:]}, found {text[2:]}", start)


def _place(line: Line, column: int) -> str:
    if line.path:
        return f"{line.path}:{line.number}:{column}"
    return f"line {line.number}, column {column}"
