"""`uop diff`: what is better and what is worse in one report than in another."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli import Exit

MOST_LINES = 40
"""Lines about what is worse, and as many about what is better."""


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path), metavar="A.json")
@click.argument("after", type=click.Path(path_type=Path), metavar="B.json")
def command(before: Path, after: Path) -> int:
    """Say what is better and what is worse in one report than in another.

    From A to B, both written by `uop conform --json`. Compared are the verdict, each level, op and
    dtype, the causes of failure, the largest errors and what was skipped. The exit code is 1 where
    something got worse.
    """
    from uop.conformance.report.diff import changes, notes
    from uop.conformance.report.reading import read_report

    a, b = read_report(before), read_report(after)
    for note in notes(a, b):
        click.echo(f"note: not the same {note}")
    found = changes(a, b)
    worse = [change.text for change in found if not change.is_better]
    better = [change.text for change in found if change.is_better]
    for word, lines in (("worse", worse), ("better", better)):
        for line in lines[:MOST_LINES]:
            click.echo(f"{word}: {line}")
        if len(lines) > MOST_LINES:
            click.echo(f"... and {len(lines) - MOST_LINES} more {word}")
    click.echo(f"{len(worse)} worse, {len(better)} better")
    return Exit.FAILED if worse else Exit.OK
