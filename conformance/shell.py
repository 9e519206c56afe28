"""The commands that are told to a reader, as a shell takes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from uop.conformance.options import KNOWN_FILE


def uop_command(*words: object) -> str:
    """A command line of `uop`, each word quoted where it has to be."""
    return shlex.join(["uop", *map(str, words)])


def conform_command(options: Mapping[str, Any], *words: object) -> str:
    """`uop conform` on the backend of a report, by what was demanded in its run."""
    told: list[object] = []
    if options.get("profile"):
        told += ["--profile", options["profile"]]
    if options.get("timeout") is not None:
        told += ["--timeout", f"{options['timeout']:.10g}"]
    if options.get("known") not in (None, str(KNOWN_FILE)):
        told += ["--known", options["known"]]
    return uop_command("conform", options["backend"], *words, *told)
