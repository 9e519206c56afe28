"""Formats `.uop` files: spaces, derived parts and empty lines as the printer writes them.

Comments, numbers of nodes, the spelling of literals and the programs of editions stay as they are.
Laws: a formatted file holds the same cases, is its own format, and what is printed stays as it is.
"""

from __future__ import annotations

from uop.spec.text.literal import Line, Token
from uop.spec.text.printer import derived, print_tag
from uop.spec.text.program import Scope
from uop.spec.text.uop_file import DIRECTIVE, parse_file

OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")


def format_file(text: str, path: str = "", edition: str = "") -> str:
    """The text of a file in its canonical form. The errors of `parse_file` for one that is none."""
    parse_file(text, path, edition)
    formatter = _Formatter(in_core=not edition)
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        written = formatter.line(line, number)
        before = lines[-1] if lines else ""
        if written.startswith("case ") and before and not before.startswith(";"):
            lines.append("")
        if written or before:
            lines.append(written)
    return "\n".join(lines).rstrip("\n") + "\n"


class _Formatter:
    """Formats the lines of a file without errors, in their order."""

    def __init__(self, *, in_core: bool) -> None:
        self._in_core = in_core
        self._scope = Scope()
        self._is_rejected = False

    def line(self, text: str, number: int) -> str:
        stripped = text.strip()
        if not stripped or stripped.startswith(";"):
            return _comment(stripped)
        match = DIRECTIVE.fullmatch(text)
        name = match[1] if match is not None else ""
        if name in ("case", "edition", "profile"):
            words, mark, comment = stripped.partition(";")
            if name != "profile":
                self._scope, self._is_rejected = Scope(), False
                self._in_core = self._in_core and name == "case"
            return _joined(" ".join(words.split()), mark + comment)
        if match is None and not self._in_core:
            return text.rstrip()
        self._is_rejected = self._is_rejected or name == "invalid"
        *tokens, end = Line(text).rest()
        if match is None:
            return _joined(self._node(text, number, tokens), end.text)
        return _joined(_spaced(tokens, is_data=True), end.text)

    def _node(self, text: str, number: int, tokens: list[Token]) -> str:
        """A node with its derived part; one that must be rejected has none."""
        at = next((k for k, t in enumerate(tokens) if t.text in (":", "!")), len(tokens))
        if self._is_rejected:
            return _spaced(tokens)
        self._scope.read_text(text, number)
        u = self._scope.nodes[int(tokens[0].text[1:])]
        return f"{_spaced(tokens[:at])} {derived(u)}{print_tag(u.tag)}"


def _comment(text: str) -> str:
    """A comment with a space after its mark; further spaces stay."""
    body = text.removeprefix(";").rstrip()
    return f"; {body}" if body and not body[0].isspace() else text


def _joined(text: str, comment: str) -> str:
    comment = _comment(comment.rstrip())
    return text if comment in ("", ";") else f"{text}  {comment}"


def _spaced(tokens: list[Token], *, is_data: bool = False) -> str:
    """Tokens with the printer's spaces: one between operands and fields, none in a list. Lists of
    data may have one: the printer writes none, people do.
    """
    parts: list[str] = []
    is_open: list[str] = []
    before, end = "", 0
    for token in tokens:
        mark = token.text if token.kind == "mark" else ""
        if mark in CLOSING:
            is_open.pop()
        inner = is_open[-1] if is_open else ""
        tight = before in ("", *OPENING, "!") or mark in (",", *CLOSING)
        tight |= "=" in (mark, before) and inner == "{"
        tight |= before == "," and inner in ("(", "[") and not (is_data and token.column > end)
        parts += [token.text] if tight else [" ", token.text]
        if mark in OPENING:
            is_open.append(mark)
        before, end = mark or "a word", token.column + len(token.text)
    return "".join(parts)
