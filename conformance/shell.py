"""The commands that are told to a reader, as a shell takes them."""

from __future__ import annotations

import shlex


def uop_command(*words: object) -> str:
    """A command line of `uop`, each word quoted where it has to be."""
    return shlex.join(["uop", *map(str, words)])
