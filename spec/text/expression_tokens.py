"""The tokenizer of expressions: numbers, names, strings and marks, each with its column."""

from __future__ import annotations

import re
from typing import NamedTuple

from uop.spec.errors import MalformedError

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
    | (?P<mark>\*\*|//|<<|>>|[=!<>]=|[-+*/%&|^~!<>()\[\],=])
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


def tokens(text: str) -> list[Token]:
    """The tokens of a text, the last of kind `end`; MalformedError for text that is no token."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "bad"
        token = Token(kind, match[kind], match.start(kind) + 1)
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
