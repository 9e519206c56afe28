"""Builds the command lines that a report suggests to its reader, quoted for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import fields, replace

from uop.conformance.checks import COMMAND, KNOWN_FILE, STRICT
from uop.conformance.report.options import ReportedOptions, in_words
from uop.conformance.suite.case import EFFORTS, FUZZ

OPTIONS = {
    "levels": "--level",
    "ops": "--op",
    "dtypes": "--dtype",
    "skip_ops": "--skip-op",
    "skip_dtypes": "--skip-dtype",
    "seed": "--seed",
    "examples": "--examples",
    "effort": "--effort",
    "seconds": "--time",
}
"""The options of the command line, by their fields."""
SELECTING = (*OPTIONS, "cases", "folder")
"""The fields of the options of a report that choose its cases."""


def uop_command(*words: object) -> str:
    """A command line of `uop`, quoted for a shell."""
    return shlex.join(["uop", *map(str, words)])


def case_command(options: ReportedOptions, id: str) -> str:
    """The command that judges a case of a report again."""
    if options.exported is not None:
        return files_command(options)
    return conform_command(options, "--seed", options.seed, "--case", id)


def repro_command(options: ReportedOptions, repro: str) -> str:
    """The command that judges the repro of a failure again."""
    if options.exported is not None:
        return files_command(options)
    return uop_command("replay", repro, options.backend)


def lost_command(options: ReportedOptions) -> str:
    """The command that shows on which program the backend is lost, without probing its choices."""
    if options.exported is not None:
        return files_command(options)
    if options.backend.startswith(COMMAND):
        words = shlex.split(options.backend.removeprefix(COMMAND))
        return uop_command("worker", "check", *_timeout(options), "--", *words)
    cases = [word for id in options.cases for word in ("--case", id)]
    seed = ["--seed", options.seed] if cases else []
    with_profile = replace(options, profile=options.profile or STRICT)
    return conform_command(with_profile, *seed, *cases)


def more_command(options: ReportedOptions) -> str:
    """The command that checks more programs: the next effort, or after the last the next seed."""
    if options.effort == FUZZ:
        again = ("fuzz", options.backend, "--seed", options.seed + 1)
        return uop_command(*again, "--time", f"{options.seconds or 0:g}s")
    *_, most = EFFORTS
    chosen = ("--with", ",".join(options.with_ops)) if options.with_ops else ()
    if options.effort == most:
        return conform_command(options, *chosen, "--effort", most, "--seed", options.seed + 1)
    higher = EFFORTS[EFFORTS.index(options.effort) + 1]
    return conform_command(options, *chosen, "--effort", higher)


def files_command(options: ReportedOptions) -> str:
    """The command that judges the output files of a report again."""
    return uop_command("judge", options.exported, options.outputs)


def conform_command(options: ReportedOptions, *words: object) -> str:
    """`uop conform` on the backend of a report, with the options of its run."""
    run_options: list[object] = []
    if options.profile:
        run_options += ["--profile", options.profile]
    run_options += _timeout(options)
    if options.folder:
        run_options += ["--cases", options.folder]
        run_options += ["--edition", options.edition] if options.edition else []
    for option, names in (("--skip-op", options.skip_ops), ("--skip-dtype", options.skip_dtypes)):
        run_options += [option, ",".join(names)] if names else []
    run_options += [word for cause in options.skip_causes for word in ("--skip-cause", cause)]
    if options.known not in (None, KNOWN_FILE):
        run_options += ["--known", options.known]
    return uop_command("conform", options.backend, *words, *run_options)


def _timeout(options: ReportedOptions) -> list[str]:
    """The option --timeout, if the run had one."""
    return [] if options.timeout is None else ["--timeout", f"{options.timeout:.10g}"]


def compare_command(names: Iterable[str], options: ReportedOptions) -> str:
    """The command that judges these backends again by the same cases."""
    plain = {field.name: field.default for field in fields(ReportedOptions)}
    values = {name: getattr(options, name) for name in OPTIONS}
    chosen = {name: value for name, value in values.items() if value != plain[name]}
    words = (word for name, value in chosen.items() for word in (OPTIONS[name], in_words(value)))
    return uop_command("compare", *names, *words)
