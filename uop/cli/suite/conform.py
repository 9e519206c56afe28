"""`uop conform`: judges a backend by the conformance suite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uop.cli import names as listed
from uop.cli.names import BACKEND, Name, NameList
from uop.cli.programs.files import native_option
from uop.cli.suite.known import known_file, update
from uop.cli.suite.options import (
    amount,
    begin,
    fail_fast_option,
    file_option,
    format_option,
    log_option,
    names,
    options_of,
    output_option,
    profile,
    report_files,
    selection,
    timeout_option,
    workers_option,
)
from uop.cli.suite.outcome import exit_code, gravest, shown
from uop.conformance.checks import KNOWN_FILE, OptionError
from uop.conformance.run import Exit

if TYPE_CHECKING:
    from uop.conformance.report.model import Report
    from uop.conformance.run.options import Options


@click.command("conform")
@click.argument("backends", nargs=-1, required=True, type=BACKEND, metavar="BACKEND...")
@selection
@click.option(
    "--with",
    "with_ops",
    multiple=True,
    type=NameList(listed.ops),
    callback=names,
    metavar="OP",
    help="Only the cases whose programs hold one of these ops: what a change of an op may break. "
    "--op selects the cases that are about an op.",
)
@click.option(
    "--skip-cause",
    "skip_causes",
    multiple=True,
    metavar="SIGNATURE",
    help="Failures of this signature do not fail the run; may be given several times. The report "
    "lists them as a skipped cause.",
)
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="ID",
    help="Only the case of this id; may be given several times.",
)
@file_option(
    "--cases",
    "folder",
    metavar="DIR",
    help="Judge the cases of your own .uop files too, as level `cases`; their ids are "
    "cases/FILE/CASE. A case may state its profile and what it accepts; where it does not, the "
    "profile of the run and the spec decide.",
)
@click.option(
    "--edition",
    type=Name(listed.editions, shown=True),
    default="",
    help="Read the files of --cases in the words of this edition, as if each named it.",
)
@native_option
@file_option(
    "--list",
    "report",
    metavar="REPORT",
    help="Draw random programs from the ops and dtypes that this JSON report lists, as the ids in "
    "it need; by default from those that the backend lists.",
)
@file_option(
    "--last-failed",
    metavar="REPORT",
    help="Only the cases that failed in this JSON report, which may be one of `uop fuzz`, with its "
    "seed and its list.",
)
@amount
@click.option(
    "--shard",
    default="",
    metavar="K/N",
    help="Judge the K-th of N parts of the cases; `uop merge` joins the reports of all parts.",
)
@fail_fast_option
@timeout_option
@workers_option
@click.option(
    "--profile",
    metavar="PROFILE",
    callback=profile,
    help="The profile to demand: strict, observed, knobs such as 'max_nan=number', or a file.toml "
    "that `uop profile init` wrote. By default what the backend declares, else what is observed.",
)
@click.option(
    "--mutant",
    metavar="NAMES",
    help="Put seeded faults, separated by commas, into the backend: uop mutants --list.",
)
@click.option(
    "--sanitize", is_flag=True, help="Run opencl on a simulator that watches memory (Oclgrind)."
)
@click.option(
    "--in-process",
    is_flag=True,
    help="Judge a module:Class in this process, for a debugger: breakpoints work, nothing is "
    "timed, a crash or an exception ends the run. No known failures are read.",
)
@log_option
@report_files
@file_option(
    "--known",
    help="The file of known failures, by default uop-known.toml if it exists. They do not fail the "
    "run; a line whose program passes or is not judged, or that has expired, fails it.",
)
@click.option(
    "--update-known",
    is_flag=True,
    help="After the run, add the failures to that file and remove the lines whose programs pass. "
    "The exit code is that of a run with the edited file.",
)
@format_option
@output_option
def conform(
    backends: tuple[str, ...],
    report: Path | None,
    last_failed: Path | None,
    mutant: str | None,
    sanitize: bool,
    in_process: bool,
    known: Path | None,
    update_known: bool,
    form: str,
    **chosen: Any,
) -> int:
    """Judge a backend, or several, by the conformance suite.

    BACKEND is a name that `uop backends` lists, module:Class, or command:PROGRAM for an executable
    that answers lines of JSON (docs/worker-protocol.md); quote it where the program has options.

    The verdict is one of: conforms, does not conform, inconclusive. Each cause of failure is shrunk
    and written as a file for `uop replay`. Several backends are judged on the same cases; for each
    case that fails on one of them, a line says which backend differs from the others.
    """
    from uop.conformance.report.format import failed_in, listed_in

    if last_failed is not None:
        report, failed = last_failed, failed_in(last_failed)
        chosen |= {"cases": (*chosen["cases"], *failed.cases), "seed": failed.seed}
    backends = tuple(variant(backend, mutant, sanitize) for backend in backends)
    begin(chosen["log"], *backends)
    options = replace(
        options_of(backends[0], chosen),
        known=known_file(known, update_known, backends[0]),
        vocabulary=None if report is None else listed_in(report),
    )
    if in_process:
        if len(backends) > 1 or update_known:
            raise OptionError("--in-process: expected one backend, and no --update-known")
        return exit_code(judge_here(replace(options, known=known, workers=1), form))
    if update_known:
        if len(backends) > 1:
            raise OptionError("--update-known: expected one backend")
        return update(options, form, known or KNOWN_FILE)
    return judge(options, form) if len(backends) == 1 else vote(options, backends, form)


def variant(backend: str, mutant: str | None, sanitize: bool) -> str:
    """The backend, with mutants or on the simulator; OptionError if it has no such variant."""
    from uop.conformance.backends import MUTANT
    from uop.conformance.mutants.catalogue import JUDGE, find_mutants

    if sanitize:
        if backend != "opencl" or mutant is not None:
            raise OptionError("--sanitize: only opencl runs on a simulator, and without a mutant")
        return "oclgrind"
    if mutant is None:
        return backend
    for one in find_mutants(mutant):
        if one.backend == JUDGE:
            name = one.name
            raise OptionError(f"--mutant: {name} is a fault of the suite: `uop mutants {name}`")
        if one.backend != backend:
            raise OptionError(f"--mutant: {one.name} is a fault of {one.backend}, not of {backend}")
    return MUTANT + mutant


def judge(options: Options, form: str = "text") -> Exit:
    """Run the suite, with a live display on a terminal and plain lines elsewhere."""
    from uop.conformance.run.pool import Pool
    from uop.conformance.run.selection import groups_of

    options = options.checked()
    if not options.cases:
        # The run needs the groups, and its processes, which are forks of this one, then have them.
        groups_of(options)
    pool = Pool.start(options)
    # Imported late: it takes as long to load as a backend takes to start.
    from uop.conformance.run.conform import conform

    with shown(form) as display:
        return exit_code(conform(options, display(), pool))


def judge_here(options: Options, form: str) -> Report:
    """Run the suite in this process, with plain lines: the debugger needs the terminal."""
    from uop.conformance.report.ci import GitHub
    from uop.conformance.report.terminal import Log
    from uop.conformance.run.conform import conform
    from uop.conformance.workers.in_process import WARNING, InProcess, require_in_process

    require_in_process(options)
    pool = InProcess(options.checked())
    click.echo(WARNING, err=True)
    display = GitHub(click.echo, None) if form == "github" else Log(click.echo)
    return conform(options, display, pool)


def vote(options: Options, backends: tuple[str, ...], form: str) -> Exit:
    """Run the suite on each backend, then report which backend differs from the others."""
    from uop.conformance.run.conform import conform_all

    with shown(form) as display:
        poll = conform_all(options, backends, display)
    return gravest(poll)
