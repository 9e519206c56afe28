"""The names that a mistyped one is near to."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 3
LIKE = 0.6
"""How alike two names have to be, from 0 to 1."""


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """`; did you mean ADD?`, or nothing where no name is near. Capital letters do not count."""
    by_fold = {name.casefold(): name for name in known}
    near = [by_fold[fold] for fold in get_close_matches(found.casefold(), by_fold, MOST, LIKE)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
