"""Suggestions for mistyped names in error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 3
LIKE = 0.6
"""The least similarity of a suggestion, from 0 to 1."""


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """`; did you mean ADD?`, or an empty string if no known name is similar. Ignores case."""
    by_fold = {name.casefold(): name for name in known}
    near = [by_fold[fold] for fold in get_close_matches(found.casefold(), by_fold, MOST, LIKE)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
