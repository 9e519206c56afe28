"""`uop fuzz`: judges random programs until the time is over."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uop.cli import names as listed
from uop.cli.names import BACKEND, NameList
from uop.cli.programs.files import native_option
from uop.cli.suite.corpus import Place, left_alone, require_writable
from uop.cli.suite.debugging import begin, words
from uop.cli.suite.known import known_file
from uop.cli.suite.options import (
    fail_fast_option,
    format_option,
    report_files,
    seconds,
    several,
    timeout_option,
    workers_option,
)
from uop.cli.suite.outcome import exit_code, gravest, shown

if TYPE_CHECKING:
    from uop.conformance.fuzz.corpus import Corpus
    from uop.conformance.run.options import Options

MINUTE = 60.0
LOGS = ("distributed", "distributed.client")
"""The loggers of Dask in this process that have a level of their own."""
NO_FOLDER = Path()
"""The folder of repros where a store gets them."""


@click.command("fuzz")
@click.argument("backends", nargs=-1, required=True, type=BACKEND, metavar="BACKEND...")
@click.option(
    "--time",
    "duration",
    metavar="TIME",
    callback=seconds,
    help="How long to fuzz: 30s, 5m, 48h; starting and shrinking included. Several backends share "
    "it.  [default: 60s]",
)
@click.option(
    "--against",
    type=BACKEND,
    metavar="OLD",
    help="Count only failures that this backend, such as the build before, does not share, and "
    "that repeat three times alone. Both are judged by the profile of OLD.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Spread the run over the processes of this Dask scheduler, such as tcp://host:8786; each "
    "must have the same uop and the backend.",
)
@click.option("--seed", type=int, help="Chooses the programs; by default another one each time.")
@click.option(
    "--shard",
    default="",
    metavar="K/N",
    help="Be the K-th of N machines, each with a stream of programs of its own; expects the --seed "
    "that all have. `uop merge` joins the N reports.",
)
@several("--skip-op", NameList(listed.ops), "Draw no programs with these ops.")
@several("--skip-dtype", NameList(listed.dtypes), "Draw no programs with these dtypes.")
@several("--level", NameList(listed.drawn, shown=True), "Only these levels, separated by commas.")
@fail_fast_option
@timeout_option
@workers_option
@click.option(
    "--profile",
    metavar="PROFILE",
    help="The profile to demand, as for `uop conform`.",
)
@report_files
@click.option(
    "--known",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file of known failures, by default uop-known.toml if it exists.",
)
@format_option
@click.option(
    "--output",
    default="uop-failures",
    show_default=True,
    metavar="FOLDER",
    help="Where failing programs are written; with --scheduler also a URL such as s3://bucket/x, "
    "which gets the report of each shard too.",
)
@click.option(
    "--corpus",
    "folder",
    type=Place(),
    metavar="FOLDER",
    help="Judge the programs of this folder, or URL such as s3://bucket/corpus, first, and add "
    "those that reach something new.",
)
@native_option
def command(
    backends: tuple[str, ...],
    duration: float | None,
    against: str | None,
    scheduler: str | None,
    seed: int | None,
    shard: str,
    skip_ops: tuple[str, ...] | None,
    skip_dtypes: tuple[str, ...] | None,
    levels: tuple[str, ...] | None,
    fail_fast: bool,
    timeout: float | None,
    workers: int | None,
    profile: str | None,
    json: Path | None,
    junit: Path | None,
    html: Path | None,
    known: Path | None,
    form: str,
    output: str,
    folder: str | Path | None,
    native: bool,
) -> int:
    """Judge random programs on a backend, or several, until the time is over.

    Every run draws other programs; --seed repeats a run. Each cause of failure is shrunk and
    written as a file for `uop replay`. Several backends get the same programs, one backend after
    the other; the case of each cause is judged on all of them, and a line says which backend
    differs from the others.

    `uop conform BACKEND --last-failed REPORT.json` judges again what failed in the report of a
    run, also of one with --shard.
    """
    from uop.conformance.checks import OptionError, cores
    from uop.conformance.fuzz.folders import URL
    from uop.conformance.run.options import Options, profile_named
    from uop.conformance.suite.case import LEVELS

    begin(None, *backends)
    if folder is not None:
        require_writable(folder)
    options = Options(
        backends[0],
        secrets.randbelow(1 << 31) if seed is None else seed,
        levels or LEVELS,
        shard=shard,
        skip_ops=skip_ops or (),
        skip_dtypes=skip_dtypes or (),
        seconds=duration or MINUTE,
        timeout=timeout,
        profile="" if profile is None else profile_named(profile),
        known=known_file(known, False, backends[0]),
        workers=cores() if workers is None else workers,
        json=json,
        fail_fast=fail_fast,
        output=Path(output),
        junit=junit,
        html=html,
        native=native,
        command=words(),
    )
    if shard and seed is None:
        raise OptionError("--shard: expected --seed: shards of one run draw by the same seed")
    alone = {"--against": against, "--shard": shard}
    if len(backends) > 1:
        found = ", ".join(backends)
        others = {"--corpus": folder, "--scheduler": scheduler}
        require_none({**alone, **others}, f"one backend, found {found}")
    if scheduler is not None:
        require_none(alone, "no --scheduler: it is for one machine")
        return on_cluster(scheduler, options, output, folder, form)
    if URL in output:
        raise OptionError(f"--output: expected a folder, or --scheduler too; found {output!r}")
    if len(backends) > 1:
        return on_several(options, backends, form)
    return on_this_machine(options, against, folder, form)


def require_none(given: Mapping[str, object], expected: str) -> None:
    """OptionError where one of the options is given."""
    from uop.conformance.checks import OptionError

    for option, value in given.items():
        if value:
            raise OptionError(f"{option}: expected {expected}")


def on_several(options: Options, backends: tuple[str, ...], form: str) -> int:
    """Fuzz one backend after the other, then report which differs from the others."""
    from uop.conformance.fuzz.several import fuzz_all
    from uop.conformance.run.voting import folder_of

    for backend in backends:
        for line in of_repros(folder_of(backend, options)):
            click.echo(line)
    with shown(form) as display:
        poll = fuzz_all(options, backends, display)
    return gravest(poll)


def on_this_machine(
    options: Options, against: str | None, folder: str | Path | None, form: str
) -> int:
    """Fuzz with processes of this machine."""
    from uop.conformance.run.pool import Pool

    with ExitStack() as last:
        pool = Pool.start(options.checked())
        last.callback(pool.end)
        # Imported late: it takes as long to load as a backend takes to start.
        from uop.conformance.fuzz.against import Baseline
        from uop.conformance.fuzz.fuzz import fuzz

        corpus = read_corpus(folder, native=options.native)
        for line in (*of_repros(options.output), *of_corpus(corpus)):
            click.echo(line)
        display = last.enter_context(shown(form))
        if corpus is not None:
            last.callback(say_added, corpus)
        old = None if against is None else Baseline.started(against, options)
        baseline = None if old is None else last.enter_context(old)
        return exit_code(fuzz(options, display(), pool, baseline, corpus))


def read_corpus(folder: str | Path | None, *, native: bool) -> Corpus | None:
    from uop.conformance.fuzz.corpus import Corpus

    return None if folder is None else Corpus.read(folder, native=native)


def of_repros(output: Path) -> Iterator[str]:
    """A line that says what earlier runs have found, also those that were killed."""
    from uop.conformance.report.model import counted

    if repros := len(list(output.glob("*.uop"))):
        yield f"of earlier runs: {counted(repros, 'repro')} in {output}"


def of_corpus(corpus: Corpus | None) -> Iterator[str]:
    """Lines that say what is in a corpus."""
    from uop.conformance.report.model import counted

    if corpus is not None and corpus.programs:
        yield f"of earlier runs: {counted(len(corpus.programs), 'program')} in {corpus.folder}"
    if corpus is not None:
        yield from left_alone(corpus)


def say_added(corpus: Corpus) -> None:
    from uop.conformance.report.model import counted

    added, held = counted(corpus.added, "program"), len(corpus.programs) - corpus.unwritten
    click.echo(f"corpus: {added} added, {held:,} in {corpus.folder}")


def on_cluster(
    scheduler: str, options: Options, output: str, folder: str | Path | None, form: str
) -> int:
    """Fuzz on a cluster. UnsupportedError without the extra."""
    from uop.compiler.runtime.device import require

    require("distributed", "cluster")
    # What it would log of a lost scheduler is a traceback; the run says it in one line.
    for name in LOGS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    from uop.conformance.fuzz.cluster import fuzz_on
    from uop.conformance.fuzz.folders import URL
    from uop.conformance.fuzz.store import Store

    store = Store.at(output) if URL in output else None
    options = options if store is None else replace(options, output=NO_FOLDER)
    corpus = read_corpus(folder, native=options.native)
    for line in of_corpus(corpus):
        click.echo(line)
    with ExitStack() as last:
        display = last.enter_context(shown(form))
        if corpus is not None:
            last.callback(say_added, corpus)
        say = partial(click.echo, err=True)
        report = fuzz_on(scheduler, options.checked(), display(), say, store, corpus)
        return exit_code(report)
