"""The literals of the text form, and the tokenizer and parser of one line.

A literal is the untyped value of an arg field or a data directive, which a codec decodes. Text and
JSON share literals: the text distinguishes bare and quoted words, a JSON string may be either.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from uop.spec.errors import MalformedError


class Word(str):
    """A bare word of the text: an enum, a dtype, a float, bytes."""

    __slots__ = ()


class Quoted(str):
    """A quoted string of the text."""

    __slots__ = ()


Literal = bool | int | float | str | tuple["Literal", ...] | None
"""float and None come from JSON alone; in text a float is a Word, and None is left out."""

_TOKEN = re.compile(
    r"""[ \t\r]*(?:
      (?P<node>%[0-9]{1,18}(?![A-Za-z0-9_.]))
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<word>
          (?:fill|range):[-+.:\w]*
        | nan:0x[0-9a-fA-F]+ | hex:[0-9a-fA-F]* | base64:[A-Za-z0-9+/=]*
        | zlib:[A-Za-z0-9+/=:]*
        | [-+]?0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?[pP][-+]?[0-9]+
        | [-+]?[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)
        | [-+]?[A-Za-z_][A-Za-z0-9_.]*
      )
    | (?P<int>[-+]?[0-9]+(?![A-Za-z0-9_.]))
    | (?P<mark>[=,{}\[\]():@&!|])
    | (?P<end>;.*|$)
    | (?P<bad>[A-Za-z0-9_.]+|.)
    )""",
    re.VERBOSE | re.ASCII,
)
_BOOLS = {"true": True, "false": False}
_FLOATS = ("nan", "inf", "+inf", "-inf")
"""Floats that are words, which may be in any case of letters."""
_FLOAT = re.compile(r"[-+]?(?:[0-9].*|inf)|nan(?::.*)?", re.IGNORECASE)
"""A word that is a float, or is meant as one."""

MOST_TOKENS = 1 << 22
"""The most tokens of a line: larger data stand in one word, `base64:` or `zlib:`."""
MOST_SHOWN = 80
"""The most characters of a token in a message."""


class Token(NamedTuple):
    """A token of a line: its kind (a group of the pattern), its text and its column from 1.

    A NamedTuple is faster than a dataclass, and a long program has a million tokens.
    """

    kind: str
    text: str
    column: int

    def __str__(self) -> str:
        return "the end of the line" if self.kind == "end" else _quoted(self.text)


class Line:
    """A cursor over the tokens of one line; its methods raise MalformedError with the column."""

    __slots__ = ("_position", "_tokens", "number", "path")

    def __init__(self, text: str, number: int = 1, path: str = "") -> None:
        self.number, self.path = number, path
        self._position = 0
        self._tokens = []
        if len(text) > MOST_TOKENS and sum(map(text.count, ",([")) > MOST_TOKENS // 2:
            raise self._too_long(1)
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or "bad"
            self._tokens.append(Token(kind, match[kind], match.start(kind) + 1))
            if kind == "bad":
                raise self.fail(
                    "a string without end"
                    if match[kind] == '"'
                    else f"unexpected {_quoted(match[kind])}",
                    self._tokens[-1],
                )
            if kind == "end":
                break
            if len(self._tokens) > MOST_TOKENS:
                raise self._too_long(self._tokens[-1].column)

    def fail(self, message: str, token: Token | None = None) -> MalformedError:
        """The error at a token, by default at the next one."""
        column = (token or self.peek()).column
        return MalformedError(message, self.number, column, self.path)

    def _too_long(self, column: int) -> MalformedError:
        message = f"expected at most {MOST_TOKENS:,} tokens in a line, found more: use base64:"
        return MalformedError(message, self.number, column, self.path)

    def peek(self) -> Token:
        return self._tokens[self._position]

    def next(self) -> Token:
        token = self._tokens[self._position]
        if token.kind != "end":
            self._position += 1
        return token

    def rest(self) -> list[Token]:
        """The tokens from here on, the last of kind `end` with the comment."""
        return self._tokens[self._position :]

    def at(self, mark: str) -> bool:
        token = self.peek()
        return token.kind == "mark" and token.text == mark

    def take(self, mark: str) -> bool:
        """Skip a mark if it is next; return whether it was."""
        found = self.at(mark)
        self._position += found
        return found

    def at_float(self) -> bool:
        """Whether a float is next: an integer has no point, no exponent, and is another token."""
        token = self.peek()
        return token.kind == "word" and _FLOAT.fullmatch(token.text) is not None

    def need(self, mark: str) -> None:
        if not self.take(mark):
            raise self.fail(f"expected {mark!r}, found {self.peek()}")

    def need_kind(self, kind: str, what: str) -> Token:
        if self.peek().kind != kind:
            raise self.fail(f"expected {what}, found {self.peek()}")
        return self.next()

    def need_end(self) -> None:
        if self.peek().kind != "end":
            raise self.fail(f"expected the end of the line, found {self.peek()}")

    def integer(self) -> int:
        token = self.need_kind("int", "an integer")
        return self._integer(token)

    def literal(self, brackets: str = "()") -> Literal:
        """Parse a leaf or a nested list of leaves in these brackets."""
        opening, closing = brackets[0], brackets[1]
        open_lists: list[list[Literal]] = []
        while True:
            if self.take(opening):
                open_lists.append([])
                if not self.at(closing):
                    continue
                self.next()
                value: Literal = tuple(open_lists.pop())
            else:
                value = self._leaf()
            while open_lists:
                open_lists[-1].append(value)
                if self.take(",") and not self.at(closing):
                    break
                self.need(closing)
                value = tuple(open_lists.pop())
            else:
                return value

    def _leaf(self) -> Literal:
        token = self.peek()
        if token.kind == "int":
            return self._integer(self.next())
        if token.kind == "word":
            self.next()
            small = token.text.lower()
            text = small if small in _FLOATS else token.text
            return _BOOLS[text] if text in _BOOLS else Word(text)
        if token.kind == "string":
            self.next()
            try:
                return Quoted(json.loads(token.text))
            except ValueError:
                raise self.fail("a string that is no JSON string", token) from None
        raise self.fail(f"expected a value, found {token}")

    def _integer(self, token: Token) -> int:
        try:
            return int(token.text)
        except ValueError:
            raise self.fail("an integer with too many digits", token) from None


def _quoted(text: str) -> str:
    """A token in a message, its first characters where it is long."""
    if len(text) <= MOST_SHOWN:
        return repr(text)
    return f"{text[:MOST_SHOWN]!r}... ({len(text):,} characters)"


def print_literal(literal: Literal, brackets: str = "()") -> str:
    """The text of a literal."""
    match literal:
        case bool():
            return str(literal).lower()
        case int():
            return str(literal)
        case Word():
            return literal
        case str():
            return json.dumps(literal)
        case tuple():
            inner = ",".join(print_literal(item, brackets) for item in literal)
            return f"{brackets[0]}{inner}{brackets[1]}"
    raise TypeError(f"no text for {literal!r}")
