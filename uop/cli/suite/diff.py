"""`uop diff`: compares two reports."""

from __future__ import annotations

from pathlib import Path

import click

from uop.conformance.run.exits import Exit

MOST_LINES = 40
"""The most lines each about what is worse, better and neither."""


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path), metavar="A.json")
@click.argument("after", type=click.Path(path_type=Path), metavar="B.json")
def command(before: Path, after: Path) -> int:
    """Compare two reports: what is better now, and what is worse.

    A is the older report, B the newer one, both written by `uop conform --json`. It compares the
    verdict, the causes of failure, each level, op and dtype, the largest errors and the skipped
    cases. Where a run ended early, by --time or Ctrl-C, only the cases that both have judged count.
    A failure that became known, or is no longer known, counts as neither. It exits with 1 if
    something is worse.
    """
    from uop.conformance.report.diff import Turn, changes, notes
    from uop.conformance.report.format import read_report

    a, b = read_report(before), read_report(after)
    for note in notes(a, b):
        click.echo(f"note: {note}")
    found = changes(a, b)
    by_turn = {turn: [change.text for change in found if change.turn is turn] for turn in Turn}
    for turn, lines in by_turn.items():
        for line in lines[:MOST_LINES]:
            click.echo(f"{turn.value}: {line}")
        if len(lines) > MOST_LINES:
            click.echo(f"... and {len(lines) - MOST_LINES} more {turn.value}")
    click.echo(", ".join(f"{len(lines)} {turn.value}" for turn, lines in by_turn.items()))
    return Exit.FAILED if by_turn[Turn.WORSE] else Exit.OK
