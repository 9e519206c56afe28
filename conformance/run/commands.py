"""The commands that are told to a reader, as a shell takes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from uop.conformance.backends import COMMAND
from uop.conformance.checks import KNOWN_FILE, STRICT
from uop.conformance.suite.case import EFFORTS

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


def lost_command(options: Mapping[str, Any]) -> str:
    """What shows on which program the backend of a report is lost; its choices are not observed."""
    if CORPUS in options:
        return files_command(options)
    backend, limit = options["backend"], timeout_words(options)
    if backend.startswith(COMMAND):
        words = shlex.split(backend.removeprefix(COMMAND))
        return uop_command("worker", "check", *limit, "--", *words)
    cases = [word for id in options.get("cases") or () for word in ("--case", id)]
    seed = ["--seed", options["seed"]] if cases else []
    asked = {**options, "profile": options.get("profile") or STRICT}
    return conform_command(asked, *seed, *cases)


def more_command(options: Mapping[str, Any]) -> str:
    """What checks more programs: by the next effort, or by the next seed where there is none."""
    *_, most = EFFORTS
    if options["effort"] == most:
        return conform_command(options, "--effort", most, "--seed", options["seed"] + 1)
    return conform_command(options, "--effort", EFFORTS[EFFORTS.index(options["effort"]) + 1])


def files_command(options: Mapping[str, Any]) -> str:
    """What judges the files of outputs of a report again."""
    return uop_command("judge", options[CORPUS], options["outputs"])


def conform_command(options: Mapping[str, Any], *words: object) -> str:
    """`uop conform` on the backend of a report, by what was demanded in its run."""
    told: list[object] = []
    if options.get("profile"):
        told += ["--profile", options["profile"]]
    told += timeout_words(options)
    if options.get("folder"):
        told += ["--cases", options["folder"]]
    if options.get("known") not in (None, str(KNOWN_FILE)):
        told += ["--known", options["known"]]
    return uop_command("conform", options["backend"], *words, *told)


def timeout_words(options: Mapping[str, Any]) -> list[str]:
    """The option of the timeout that a run was given."""
    if options.get("timeout") is None:
        return []
    return ["--timeout", f"{options['timeout']:.10g}"]
