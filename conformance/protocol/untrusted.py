"""Text of a backend, made fit to be printed: it may forge no line of ours and steer no terminal."""

from __future__ import annotations

import re

CONTINUED = "  | "
"""What stands before each line of such a text but the first, which stands behind words of ours."""
MARKS = (".", ":", ";", ",", "!", "?", "(", "[", "{")
CI_COMMAND = re.compile(r"##(?=\w*\[)")
"""How a command to a CI runner begins that is obeyed anywhere in a line, as `##[error]`.

One that counts at the beginning of a line alone, as `::error::`, cannot stand there.
"""


def sanitized(text: str) -> str:
    """The text with every control character spelled, and no line that begins as it wants.

    What is sanitized stays as it is.
    """
    spelled = text if text.isprintable() else "".join(map(_spelled, text))
    first, *more = CI_COMMAND.sub(r"#\\x23", spelled).split("\n")
    return "\n".join([first, *(CONTINUED + line.removeprefix(CONTINUED) for line in more)])


def in_one_line(text: str) -> str:
    """The lines of a message as one, joined by semicolons where they end without a mark."""
    lines = (" ".join(line.removeprefix(CONTINUED).split()) for line in text.splitlines())
    whole = ""
    for line in filter(None, lines):
        whole += f"{' ' if whole.endswith(MARKS) else '; '}{line}" if whole else line
    return whole


def _spelled(character: str) -> str:
    is_kept = character.isprintable() or character in "\n\t"
    return character if is_kept else ascii(character)[1:-1]
