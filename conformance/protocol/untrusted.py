"""Sanitizes text of a backend: it can forge no line of a report and control no terminal."""

from __future__ import annotations

import re

CONTINUED = "  | "
"""The prefix of each line but the first, which follows words of the suite."""
MARKS = (".", ":", ";", ",", "!", "?", "(", "[", "{")
CI_COMMAND = re.compile(r"##(?=\w*\[)")
"""The start of a command that a CI runner obeys anywhere in a line, such as `##[error]`.

A command that counts only at the start of a line, such as `::error::`, never gets there.
"""


def sanitized(text: str) -> str:
    """Escape control characters, and prefix every line but the first.

    A sanitized text stays the same.
    """
    spelled = text if text.isprintable() else "".join(map(_spelled, text))
    first, *more = CI_COMMAND.sub(r"#\\x23", spelled).split("\n")
    return "\n".join([first, *(CONTINUED + line.removeprefix(CONTINUED) for line in more)])


def in_one_line(text: str) -> str:
    """Join the lines of a message, by semicolons where a line ends without a mark."""
    lines = (" ".join(line.removeprefix(CONTINUED).split()) for line in text.splitlines())
    whole = ""
    for line in filter(None, lines):
        whole += f"{' ' if whole.endswith(MARKS) else '; '}{line}" if whole else line
    return whole


def _spelled(character: str) -> str:
    is_kept = character.isprintable() or character in "\n\t"
    return character if is_kept else ascii(character)[1:-1]
