"""`uop judge`: judges output files by an exported suite."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli.suite.debugging import words
from uop.cli.suite.options import report_files
from uop.cli.suite.outcome import exit_code

SHOWN = 20
LINES = 60


@click.command("judge")
@click.argument("exported", type=click.Path(path_type=Path))
@click.argument("outputs", type=click.Path(path_type=Path))
@report_files
def command(
    exported: Path,
    outputs: Path,
    json: Path | None,
    junit: Path | None,
    html: Path | None,
) -> int:
    """Judge outputs in files for the cases that `uop export` wrote.

    OUTPUTS/ID/outputs.bin holds the outputs of the case with that id, one after the other. A case
    without such a file is skipped.
    """
    from uop.conformance.checks import OptionError, require_files
    from uop.conformance.exported.score import score
    from uop.conformance.report.files import write_reports
    from uop.conformance.report.text import figures_line, matrix, one_line, verdict_line

    require_files(json, junit, html)
    report = score(exported, outputs, words())
    problems = write_reports(report, json, junit, html)
    verdict = f"verdict: {verdict_line(report)}"
    for line in (verdict, figures_line(report), "", *matrix(report, LINES)):
        click.echo(line)
    for failure in report.failures[:SHOWN]:
        click.echo(one_line(f"FAILED {failure.id}: {failure.message}"))
    if len(report.failures) > SHOWN:
        click.echo(f"... and {len(report.failures) - SHOWN} more")
    if problems:
        raise OptionError("\n".join(problems))
    return exit_code(report)
