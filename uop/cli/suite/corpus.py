"""`uop corpus`: joins and thins out the programs that `uop fuzz --corpus` keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uop.cli import Suggesting
from uop.cli.names import BACKEND
from uop.cli.programs.files import native_option
from uop.conformance.run.exits import Exit

if TYPE_CHECKING:
    from uop.conformance.fuzz.corpus import Corpus

MOST_LINES = 20


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


@click.group("corpus", cls=Suggesting)
def command() -> None:
    """Join or thin out the programs that `uop fuzz --corpus` keeps.

    Each file is one program with its inputs, and its name the sha256 of its text.
    """


@command.command("merge")
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


@command.command("minimize")
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
    from uop.conformance.checks import writable

    if isinstance(place, Path):
        writable(place / "program.uop")


def left_alone(corpus: Corpus) -> Iterator[str]:
    """A line for each file that is no program of a corpus, and what became of it."""
    yield from (f"left alone: {line}" for line in corpus.left_alone[:MOST_LINES])
    if more := corpus.left_alone[MOST_LINES:]:
        yield f"left alone: {len(more):,} more files"
