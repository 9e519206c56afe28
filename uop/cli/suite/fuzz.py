"""`uop fuzz` judges random programs until the time is over; `uop corpus` keeps what it collects."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uop.cli import Suggesting
from uop.cli import names as listed
from uop.cli.names import BACKEND, NameList
from uop.cli.programs.files import native_option
from uop.cli.suite.known import known_file
from uop.cli.suite.options import (
    begin,
    fail_fast_option,
    file_option,
    format_option,
    options_of,
    profile,
    report_files,
    seconds,
    several,
    timeout_option,
    workers_option,
)
from uop.cli.suite.outcome import exit_code, gravest, shown
from uop.conformance.checks import OptionError, writable
from uop.conformance.run import Exit

if TYPE_CHECKING:
    from uop.conformance.fuzz.corpus import Corpus
    from uop.conformance.run.options import Options

MINUTE = 60.0
MOST_LINES = 20
LOGS = ("distributed", "distributed.client")
"""The loggers of Dask in this process that have a level of their own."""
NO_FOLDER = Path()
"""The folder of repros where a store gets them."""


class Place(click.Path):
    """A folder, or a URL that fsspec reads."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | Path:
        from uop.conformance.fuzz.folders import URL

        if isinstance(value, str) and URL in value:
            return value
        return Path(os.fsdecode(super().convert(value, param, ctx)))


FOLDER = Place(exists=True, file_okay=False)


@click.command("fuzz")
@click.argument("backends", nargs=-1, required=True, type=BACKEND, metavar="BACKEND...")
@click.option(
    "--time",
    "seconds",
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
    callback=profile,
    help="The profile to demand, as for `uop conform`.",
)
@report_files
@file_option("--known", help="The file of known failures, by default uop-known.toml if it exists.")
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
def fuzz(
    backends: tuple[str, ...],
    against: str | None,
    scheduler: str | None,
    known: Path | None,
    form: str,
    output: str,
    folder: str | Path | None,
    **chosen: Any,
) -> int:
    """Judge random programs on a backend, or several, until the time is over.

    Every run draws other programs; --seed repeats a run. Each cause of failure is shrunk and
    written as a file for `uop replay`. Several backends get the same programs, one backend after
    the other; the case of each cause is judged on all of them, and a line says which backend
    differs from the others.

    `uop conform BACKEND --last-failed REPORT.json` judges again what failed in the report of a
    run, also of one with --shard.
    """
    from uop.conformance.fuzz.folders import URL

    begin(None, *backends)
    if folder is not None:
        require_writable(folder)
    shard, seed = chosen["shard"], chosen["seed"]
    if shard and seed is None:
        raise OptionError("--shard: expected --seed: shards of one run draw by the same seed")
    chosen |= {
        "seed": secrets.randbelow(1 << 31) if seed is None else seed,
        "seconds": chosen["seconds"] or MINUTE,
        "output": Path(output),
        "known": known_file(known, False, backends[0]),
    }
    options = options_of(backends[0], chosen)
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
    for option, value in given.items():
        if value:
            raise OptionError(f"{option}: expected {expected}")


def on_several(options: Options, backends: tuple[str, ...], form: str) -> int:
    """Fuzz one backend after the other, then report which differs from the others."""
    from uop.conformance.fuzz.several import fuzz_all
    from uop.conformance.run.conform import folder_of

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
        pool = last.enter_context(Pool.start(options.checked()))
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
    from uop.conformance.fuzz.folders import URL, Store

    store = Store.at(output, "--output") if URL in output else None
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


@click.group("corpus", cls=Suggesting)
def corpus() -> None:
    """Join or thin out the programs that `uop fuzz --corpus` keeps.

    Each file is one program with its inputs, and its name the sha256 of its text.
    """


@corpus.command("merge")
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="FOLDER...")
@click.option(
    "--output",
    type=Place(),
    required=True,
    metavar="FOLDER",
    help="Where the programs of all are written; it may have some already.",
)
@native_option
def merge(folders: tuple[str | Path, ...], output: str | Path, native: bool) -> int:
    """Write the programs of all folders to one. Each may be a URL, such as s3://bucket/corpus."""
    from uop.conformance.fuzz.corpus import merge

    require_writable(output)
    merged = merge(folders, output, native=native)
    for line in left_alone(merged):
        click.echo(line, err=True)
    click.echo(f"{len(merged.programs):,} programs in {output}, {merged.added:,} of them new")
    return Exit.OK


@corpus.command("minimize")
@click.argument("folder", type=FOLDER)
@click.argument("backend", required=False, type=BACKEND)
@native_option
def minimize(folder: str | Path, backend: str | None, native: bool) -> int:
    """Remove the programs that reach nothing but what the others reach.

    With a BACKEND the rules that its compiler fires count too, so that programs which alone fire
    one stay.
    """
    from uop.conformance.fuzz.corpus import Corpus, minimize
    from uop.conformance.fuzz.reached import rules_on

    corpus = Corpus.read(folder, native=native)
    for line in left_alone(corpus):
        click.echo(line, err=True)
    with rules_on(backend) as fired:
        removed = minimize(corpus, fired)
    left = len(corpus.programs) - removed
    click.echo(f"{left:,} of {len(corpus.programs):,} programs reach what all of them reach")
    return Exit.OK


def require_writable(place: str | Path) -> None:
    """OptionError unless a folder takes programs; whether a URL does shows when it gets one."""
    if isinstance(place, Path):
        writable(place / "program.uop")


def left_alone(corpus: Corpus) -> Iterator[str]:
    """A line for each file that is no program of a corpus, and what became of it."""
    yield from (f"left alone: {line}" for line in corpus.left_alone[:MOST_LINES])
    if more := corpus.left_alone[MOST_LINES:]:
        yield f"left alone: {len(more):,} more files"
