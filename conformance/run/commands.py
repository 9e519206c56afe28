"""The commands that are given to a reader, as a shell takes them."""

from __future__ import annotations

import shlex
from dataclasses import replace

from uop.conformance.backends import COMMAND
from uop.conformance.checks import KNOWN_FILE, STRICT
from uop.conformance.report.asked import Asked
from uop.conformance.suite.case import EFFORTS


def uop_command(*words: object) -> str:
    """A command line of `uop`, each word quoted where it has to be."""
    return shlex.join(["uop", *map(str, words)])


def case_command(options: Asked, id: str) -> str:
    """What judges a whole case of a report again."""
    if options.corpus is not None:
        return files_command(options)
    return conform_command(options, "--seed", options.seed, "--case", id)


def repro_command(options: Asked, repro: str) -> str:
    """What judges the repro of a failure of a report again."""
    if options.corpus is not None:
        return files_command(options)
    return uop_command("replay", repro, options.backend)


def lost_command(options: Asked) -> str:
    """What shows on which program the backend of a report is lost; its choices are not observed."""
    if options.corpus is not None:
        return files_command(options)
    if options.backend.startswith(COMMAND):
        words = shlex.split(options.backend.removeprefix(COMMAND))
        return uop_command("worker", "check", *_timeout(options), "--", *words)
    cases = [word for id in options.cases for word in ("--case", id)]
    seed = ["--seed", options.seed] if cases else []
    asked = replace(options, profile=options.profile or STRICT)
    return conform_command(asked, *seed, *cases)


def more_command(options: Asked) -> str:
    """What checks more programs: by the next effort, or by the next seed where there is none."""
    *_, most = EFFORTS
    if options.effort == most:
        return conform_command(options, "--effort", most, "--seed", options.seed + 1)
    return conform_command(options, "--effort", EFFORTS[EFFORTS.index(options.effort) + 1])


def files_command(options: Asked) -> str:
    """What judges the files of outputs of a report again."""
    return uop_command("judge", options.corpus, options.outputs)


def conform_command(options: Asked, *words: object) -> str:
    """`uop conform` on the backend of a report, by what was demanded in its run."""
    given: list[object] = []
    if options.profile:
        given += ["--profile", options.profile]
    given += _timeout(options)
    if options.folder:
        given += ["--cases", options.folder]
    if options.known not in (None, KNOWN_FILE):
        given += ["--known", options.known]
    return uop_command("conform", options.backend, *words, *given)


def _timeout(options: Asked) -> list[str]:
    """The option of the timeout that a run was given."""
    return [] if options.timeout is None else ["--timeout", f"{options.timeout:.10g}"]
