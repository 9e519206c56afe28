"""The commands that are told to a reader, as a shell takes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from uop.conformance.options import KNOWN_FILE

CORPUS = "corpus"
"""The option that a report on files of outputs has, and one on a backend has not."""


def uop_command(*words: object) -> str:
    """A command line of `uop`, each word quoted where it has to be."""
    return shlex.join(["uop", *map(str, words)])


def case_command(options: Mapping[str, Any], id: str) -> str:
    """What judges a whole case of a report again."""
    if CORPUS in options:
        return files_command(options)
    return conform_command(options, "--seed", options["seed"], "--case", id)


def repro_command(options: Mapping[str, Any], repro: str) -> str:
    """What judges the repro of a failure of a report again."""
    if CORPUS in options:
        return files_command(options)
    return uop_command("replay", repro, options["backend"])


def files_command(options: Mapping[str, Any]) -> str:
    """What judges the files of outputs of a report again."""
    return uop_command("judge", options[CORPUS], options["outputs"])


def conform_command(options: Mapping[str, Any], *words: object) -> str:
    """`uop conform` on the backend of a report, by what was demanded in its run."""
    told: list[object] = []
    if options.get("profile"):
        told += ["--profile", options["profile"]]
    if options.get("timeout") is not None:
        told += ["--timeout", f"{options['timeout']:.10g}"]
    if options.get("folder"):
        told += ["--cases", options["folder"]]
    if options.get("known") not in (None, str(KNOWN_FILE)):
        told += ["--known", options["known"]]
    return uop_command("conform", options["backend"], *words, *told)
