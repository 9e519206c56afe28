"""`uop diff`, `uop merge` and `uop report`: what becomes of reports."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli.names import BACKEND
from uop.cli.programs.files import native_option
from uop.cli.suite.options import report_files
from uop.cli.suite.outcome import finished
from uop.conformance.checks import require_files
from uop.conformance.run import Exit

MOST_LINES = 40
"""The most lines each about what is worse, better and neither."""


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path), metavar="A.json")
@click.argument("after", type=click.Path(path_type=Path), metavar="B.json")
def diff(before: Path, after: Path) -> int:
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


MOST_OF_SUMMARY = 60


@click.command("merge")
@click.argument("reports", nargs=-1, required=True, type=click.Path(path_type=Path))
@report_files
def merge(reports: tuple[Path, ...], **files: Path | None) -> int:
    """Join the reports of the shards of a run.

    `uop conform --shard K/N --json FILE` writes them, and `uop fuzz` with the same options;
    `uop fuzz --scheduler` writes them to its store. The verdict and the exit code are those of the
    whole run.
    """
    from uop.conformance.report.format import read_report
    from uop.conformance.report.merge import merged
    from uop.conformance.report.text import summary

    require_files(*files.values())
    report = merged([read_report(path) for path in reports])
    return finished(report, summary(report, MOST_OF_SUMMARY), **files)


@click.command("report")
@click.argument("cause")
@click.argument("backend", type=BACKEND, required=False)
@click.option(
    "--from",
    "report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="REPORT.json",
    help="Take a cause from a report that `uop conform --json` wrote, by signature or case id.",
)
@native_option
def report(cause: str, backend: str | None, report: Path | None, native: bool) -> int:
    """Print a failure as a bug report in Markdown.

    CAUSE is a repro, a file that `uop conform` wrote, which is judged again on BACKEND. The report
    has the values got and the right ones in exact arithmetic, the program, the command that
    reproduces it, and for tinygrad a script that needs tinygrad alone and that was run.

    Of a cause of a report the values are those of the report, unless BACKEND is named.

    \b
    uop report uop-failures/result-IDIV-int8.uop tinygrad:PYTHON
    uop report 'result IDIV int8' --from report.json
    """
    from uop.conformance.bug_report.failing import of_file, of_report
    from uop.conformance.bug_report.markdown import markdown

    if report is None and backend is None:
        raise click.UsageError("expected a BACKEND: a repro does not name one")
    if report is None:
        failing = of_file(Path(cause), backend or "", native=native)
    else:
        failing = of_report(report, cause, backend or "", native=native)
    click.echo(markdown(failing), nl=False)
    return Exit.OK
