"""Reads and writes `.uop` files: programs with their inputs and expected results.

    edition NAME                first: the programs of the file are in the words of this edition
    case ID                     opens a case; a file of one case needs none. %N is scoped to a case
    profile KNOBS               the profile it is judged by
    %N = ...                    the program; the lines below stand after it
    input SLOT = VALUES         nested lists of values; fill:1 for all elements, range:0:2 for 0, 2,
                                4, ...; or little-endian bytes: base64:..., of more than 64 KiB
                                compressed, with their sum: zlib:SHA256:...
    expect OUTPUT = VALUES      bits, where every NaN stands for any NaN
    accept OUTPUT = SET, ...    one set per element, or one for all: parts joined by |
    undefined LABEL             the program has no meaning on these inputs; a label may say why
    invalid LABEL               the next node is the last, and breaks this constraint

A SET is the union of its parts: values, `[lo,hi]`, `nan` (any NaN), `nan:0x7fc00001` (these bits),
`any`. An OUTPUT is 0 for a value, a position for a TUPLE, a slot for effects. Sets of more than 64
KiB are their text, compressed in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from uop.spec.case import ElementSet, FileCase, UopFile, decode_set, encode_set, outputs
from uop.spec.conditions.clauses import undefined_labels
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.graph import slot_of, slots_of
from uop.spec.latitude import STRICT
from uop.spec.nearest import did_you_mean
from uop.spec.properties.symbolic import bind, is_variable, variables
from uop.spec.registry import labels
from uop.spec.text.array import (
    COMPRESSED_FROM,
    PREFIX,
    RECIPES,
    compress,
    decode_array,
    decompress,
    encode_array,
)
from uop.spec.text.codec import shown
from uop.spec.text.literal import Line, Literal, Token, print_literal
from uop.spec.text.profile_text import ProfileError, parse_profile
from uop.spec.text.program import Scope
from uop.spec.text.reading import read_bytes
from uop.spec.uop import UOp


def read_file(path: str | Path, edition: str = "") -> UopFile:
    """Read a file. The errors of `read_text` and of `parse_file`."""
    return parse_file(read_text(path), str(path), edition)


def read_text(path: str | Path) -> str:
    """The text of a file. OSError if it cannot be opened, MalformedError if it is no UTF-8 or has
    more than `MOST_BYTES`.
    """
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        data = error.object
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise MalformedError("expected UTF-8 text", line, column, str(path)) from None


def write_file(path: str | Path, file: UopFile) -> None:
    """Write a file; `read_file` returns an equal one."""
    Path(path).write_text(print_file(file), encoding="utf-8", newline="\n")


def parse_file(text: str, path: str = "", edition: str = "") -> UopFile:
    """The cases of a text, in the words of an edition as if its first line named it.

    MalformedError for other text and for a text that names another edition, InvalidError for an
    invalid node outside a must-reject case.
    """
    reader = _Reader(path, edition)
    for number, line in enumerate(text.split("\n"), 1):
        reader.read(line, number)
    return reader.file()


def print_file(file: UopFile) -> str:
    """The inverse of `parse_file`."""
    blocks = [_comment(file.comment)] if file.comment else []
    return "\n".join(blocks + [_print_case(case) for case in file.cases])


def _comment(text: str) -> str:
    return "".join(f"; {line}".rstrip() + "\n" for line in text.split("\n"))


def _print_case(case: FileCase) -> str:
    text = f"case {case.id}\n" if case.id else ""
    if case.comment:
        text += _comment(case.comment)
    if case.profile != STRICT:
        text += f"profile {case.profile}\n"
    if case.invalid is not None:
        nodes = case.text.splitlines(keepends=True)
        return text + "".join([*nodes[:-1], f"invalid {case.invalid}\n", nodes[-1]])
    text += case.text
    for name, arrays in (("input", case.inputs), ("expect", case.expect)):
        for key, array in arrays.items():
            text += f"{name} {key} = {print_literal(encode_array(array), '[]')}\n"
    for key, sets in case.accept.items():
        text += f"accept {key} = {_print_sets(case, key, sets)}\n"
    return text + (f"undefined {case.undefined_label}".rstrip() + "\n" if case.undefined else "")


def _print_sets(case: FileCase, key: int, sets: tuple[ElementSet, ...]) -> str:
    assert case.root is not None
    dtype = outputs(case.root)[key].dtype
    shown = sets[:1] if len(set(sets)) == 1 else sets
    text = ", ".join(encode_set(one, dtype) for one in shown)
    return text if len(text) <= COMPRESSED_FROM else compress(text.encode())


MOST_DATA = 1 << 28
"""The most bytes of the inputs and results of a file: a small file may unpack to many."""
SIZE_OF_SET, POINTER = 256, 8
"""The bytes that a set takes, and that an element takes for the set that it has."""
LONGEST_SET = 200
"""The most characters of the text of a set: four values and their punctuation."""
DIRECTIVE = re.compile(r"\s*([a-z]+)(?:\s+|$)(.*)", re.DOTALL)
"""A line that is no node: its word and the rest."""
DIRECTIVES = ("case", "profile", "input", "expect", "accept", "undefined", "invalid")
"""The words of these lines, in their order, after the edition."""
_OPENS = ("case", "edition")


class _Open:
    """The case that is being read."""

    __slots__ = ("case", "comment", "is_commentable", "line", "scope")

    def __init__(self, name: str, line: int, scope: Scope, path: str) -> None:
        self.case = FileCase(name, path=path)
        self.line, self.scope = line, scope
        self.comment: list[str] = []
        self.is_commentable = True

    def set(self, **said: Any) -> None:
        self.case = replace(self.case, **said)

    def root(self, line: int) -> UOp:
        """The root, which ends the program."""
        if self.case.root is None:
            self.set(root=self.scope.root(line))
        return cast(UOp, self.case.root)

    def close(self) -> FileCase:
        invalid = self.case.invalid
        if invalid is None:
            self.root(self.line)
        elif self.case.rejected is None:
            message = f"expected the node that breaks {invalid}"
            raise MalformedError(message, self.line, 1, self.case.path)
        return replace(self.case, comment="\n".join(self.comment), lines=self.scope.lines)


class _Reader:
    """Reads a file line by line."""

    def __init__(self, path: str, edition: str = "") -> None:
        self._path = path
        self._edition = edition
        self._cases: dict[str, FileCase] = {}
        self._head: list[str] = []
        self._open: _Open | None = None
        self._scope = scope_of(edition)
        self._is_named = False
        self._data_left = MOST_DATA

    def read(self, text: str, number: int) -> None:
        stripped = text.strip()
        if not stripped or stripped.startswith(";"):
            self._read_comment(stripped)
            return
        match = DIRECTIVE.fullmatch(text)
        if match is not None and match[1] in _OPENS:
            name, column = match[2].partition(";")[0].strip(), match.start(1) + 1
            if name.split() != [name]:
                what = "ID" if match[1] == "case" else "NAME"
                raise MalformedError(f"expected {match[1]} {what}", number, column, self._path)
            (self._read_case if match[1] == "case" else self._read_edition)(name, number, column)
            return
        if self._open is None:
            self._open = _Open("", number, self._scope(self._path), self._path)
        self._open.is_commentable = False
        if match is None:
            self._read_node(self._open, text, number)
        elif match[1] == "profile":
            self._read_profile(self._open, match, number)
        else:
            self._read_directive(self._open, Line(text, number, self._path))

    def file(self) -> UopFile:
        self._close()
        if not self._cases:
            raise MalformedError("no program: expected a node", 1, 1, self._path)
        return UopFile(tuple(self._cases.values()), "\n".join(self._head))

    def _close(self) -> None:
        if self._open is not None:
            case = self._open.close()
            self._cases[case.id] = case
            self._open = None

    def _read_comment(self, stripped: str) -> None:
        text = stripped.removeprefix(";").strip()
        if self._open is None:
            self._head += [text] if stripped else []
        elif self._open.is_commentable:
            self._open.comment += [text] if stripped else []

    def _read_case(self, name: str, number: int, column: int) -> None:
        self._close()
        if name in self._cases or "" in self._cases:
            found = f"the case {name} stands twice" if name in self._cases else "a case without ID"
            raise MalformedError(found, number, column, self._path)
        self._open = _Open(name, number, self._scope(self._path), self._path)

    def _read_edition(self, name: str, number: int, column: int) -> None:
        if self._open is not None or self._cases or self._is_named:
            message = "expected the edition once, before the first case"
            raise MalformedError(message, number, column, self._path)
        if self._edition not in ("", name):
            message = f"expected edition {self._edition}, which was asked for, found {name}"
            raise MalformedError(message, number, column, self._path)
        self._is_named = True
        try:
            self._scope = scope_of(name)
        except MalformedError as error:
            raise MalformedError(error.message, number, column, self._path) from None

    def _read_node(self, opened: _Open, text: str, number: int) -> None:
        found, case = "", opened.case
        if case.rejected is not None:
            found = f"expected the end of the case after the node that breaks {case.invalid}"
        elif case.root is not None:
            found = "expected no node after input, expect and accept"
        if found:
            raise MalformedError(found, number, len(text) - len(text.lstrip()) + 1, self._path)
        if case.invalid is None:
            opened.scope.read_text(text, number)
        else:
            opened.set(rejected=opened.scope.read_unbuilt(Line(text, number, self._path)))

    def _read_profile(self, opened: _Open, match: re.Match[str], number: int) -> None:
        try:
            opened.set(profile=parse_profile(match[2].partition(";")[0]))
        except ProfileError as error:
            raise MalformedError(str(error), number, match.start(2) + 1, self._path) from None

    def _read_directive(self, opened: _Open, line: Line) -> None:
        word = line.next()
        if word.text in ("input", "expect", "accept"):
            self._data_left -= _read_data(opened, word.text, line, self._data_left)
        elif word.text == "undefined":
            opened.set(undefined=True)
            if line.peek().kind == "word":
                opened.set(undefined_label=_known_label(line, undefined_labels()))
        elif word.text == "invalid":
            opened.set(invalid=_known_label(line, labels()))
        else:
            known = f"{', '.join(DIRECTIVES[:-1])} or {DIRECTIVES[-1]}"
            raise line.fail(f"expected %N, {known}, found {word}", word)
        line.need_end()


def scope_of(edition: str) -> Callable[[str], Scope]:
    """The reader of programs in the words of an edition; empty for the core.

    MalformedError for the name of no edition.
    """
    from uop.spec.editions import EDITIONS  # these read lines of programs as this file does

    if not edition:
        return Scope
    if edition not in EDITIONS:
        known = f"expected one of {', '.join(EDITIONS)}{did_you_mean(edition, EDITIONS)}"
        raise MalformedError(f"no edition {edition}: {known}")
    return EDITIONS[edition].scope


def _known_label(line: Line, known: Container[str]) -> str:
    label = line.need_kind("word", "a label")
    if label.text not in known:
        raise line.fail(f"unknown label {label.text!r}", label)
    return label.text


def _read_data(opened: _Open, name: str, line: Line, left: int) -> int:
    """Read `input`, `expect` or `accept`, with the dtype and shape of its node.

    Returns its bytes. MalformedError where these are more than are left for the file.
    """
    token = line.peek()
    key = line.integer()
    line.need("=")
    root = opened.root(line.number)
    known = slots_of(root) if name == "input" else outputs(root)
    if key not in known:
        what = "PARAM or BUFFER in slot" if name == "input" else "output"
        raise line.fail(f"the program has no {what} {key}", token)
    field = "inputs" if name == "input" else name
    seen = getattr(opened.case, field)
    if key in seen:
        raise line.fail(f"{name} {key} stands twice", token)
    start, u = line.peek(), known[key]
    if variables(u) and not is_variable(u):
        u = _sized(opened.case, u, line)
    is_packed = start.text.startswith((PREFIX, *RECIPES))
    size = math.prod(u.shape) * (POINTER if name == "accept" else u.dtype.itemsize)
    if is_packed:
        _check_size(size, left, line, start)
    try:
        if name == "accept":
            is_compressed = start.text.startswith(PREFIX)
            sets = (
                _compressed_sets(line.next().text, u, left) if is_compressed else _read_sets(line)
            )
            size += len(sets) * SIZE_OF_SET
            if len(sets) == 1:
                _check_size(size, left, line, start)
            data: object = _sets(sets, u)
        else:
            data = decode_array(line.literal("[]"), u.dtype, u.shape)
    except MalformedError as error:
        raise error if error.line else line.fail(error.message, start) from None
    _check_size(size, left, line, start)
    opened.set(**{field: {**seen, key: data}})
    return size


def _check_size(size: int, left: int, line: Line, token: Token) -> None:
    """MalformedError where data take more bytes than are left for the file."""
    if size > left:
        said = f"expected at most {MOST_DATA:,} bytes for all inputs and results of the file"
        raise line.fail(f"{said}, found {shown(size)} here and {MOST_DATA - left:,} above", token)


def _sized(case: FileCase, u: UOp, line: Line) -> UOp:
    """A node with symbolic sizes, bound to the variables' values in the inputs above."""
    values = {}
    for variable in variables(u):
        slot = slot_of(variable)
        if slot not in case.inputs:
            raise line.fail(f"its sizes need the input of slot {slot} above it")
        values[variable] = int.from_bytes(case.inputs[slot].data, "little", signed=True)
    try:
        return bind(u, values)
    except InvalidError as error:
        raise line.fail(f"sizes that are none, {error.label}: found {error.found}") from None


def _compressed_sets(word: str, u: UOp, left: int) -> list[list[Literal]]:
    """Decompress a word to the text of sets, of the bytes that are left for the file."""
    text = decompress(word, min(LONGEST_SET * math.prod(u.shape), left))
    try:
        line = Line(text.decode("ascii"))
        sets = _read_sets(line)
        line.need_end()
    except UnicodeDecodeError:
        raise MalformedError("expected sets in the compressed data, found no text") from None
    except MalformedError as error:
        where = f"column {error.column} of the compressed text"
        raise MalformedError(f"{where}: {error.message}") from None
    return sets


def _read_sets(line: Line) -> list[list[Literal]]:
    """Sets separated by commas, each the parts between bars; none for an output of size 0."""
    if line.peek().kind == "end":
        return []
    sets = [[line.literal("[]")]]
    while line.at(",") or line.at("|"):
        if line.take("|"):
            sets[-1].append(line.literal("[]"))
        else:
            line.need(",")
            sets.append([line.literal("[]")])
    return sets


def _sets(found: list[list[Literal]], u: UOp) -> tuple[ElementSet, ...]:
    size = math.prod(u.shape)
    sets = [decode_set(parts, u.dtype) for parts in found]
    if len(sets) not in (1, size):
        raise MalformedError(f"expected 1 set or {shown(size)}, found {len(sets)}")
    return tuple(sets * size if len(sets) == 1 else sets)
