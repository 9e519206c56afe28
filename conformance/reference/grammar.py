"""Writes the TextMate grammar of `.uop` files: the ops, dtypes and directives, coloured.

A rule is a regular expression and the name of what it matches, as editors know these names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from uop.spec.dtype import DTYPES
from uop.spec.editions import EDITIONS
from uop.spec.ops.names import Op
from uop.spec.text.expression import CHOICES
from uop.spec.text.uop_file import DIRECTIVES

GRAMMAR = "editors/vscode/uop.tmLanguage.json"
"""The path of the grammar in docs/."""
NUMBER = (
    r"[-+]?(?:0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?[pP][-+]?[0-9]+"
    r"|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|(?i:inf)\b)"
    r"|\bnan:0x[0-9a-fA-F]+|\b(?i:nan)\b"
)


def grammar() -> str:
    """The grammar as JSON. The first rule that matches at a place wins."""
    ops = {op.name for op in Op} | {word for e in EDITIONS.values() for word in e.words}
    rules = (
        ("comment.line.semicolon", r";.*$"),
        ("string.quoted.double", r'"(?:[^"\\]|\\.)*"'),
        ("string.unquoted", r"\b(?:base64|zlib|hex|fill|range):\S*"),
        ("keyword.control", rf"^\s*(?:{_any(['edition', *DIRECTIVES])})(?!\S)"),
        ("variable.other", r"%[0-9]+"),
        ("variable.parameter", r"\b[a-z_]+(?=\s*=)"),
        ("constant.numeric", NUMBER),
        ("constant.language", rf"\b(?:{_any(['any', 'true', 'false'])})\b"),
        ("storage.type", rf"\b(?:{_any(DTYPES)})\b"),
        ("support.function", rf"\b(?:{_any(ops)})\b"),
        ("constant.other", rf"\b(?:{_any(CHOICES - ops)})\b"),
    )
    written = {
        "name": "UOp",
        "scopeName": "source.uop",
        "fileTypes": ["uop"],
        "patterns": [{"name": f"{name}.uop", "match": match} for name, match in rules],
    }
    return json.dumps(written, indent=2) + "\n"


def _any(words: Iterable[str]) -> str:
    """A choice of words, the longest first."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))
