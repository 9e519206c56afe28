"""`uop merge`: joins the reports of the shards of a run."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli.suite.options import report_files
from uop.cli.suite.outcome import exit_code

LINES = 60


@click.command("merge")
@click.argument("reports", nargs=-1, required=True, type=click.Path(path_type=Path))
@report_files
def command(
    reports: tuple[Path, ...], json: Path | None, junit: Path | None, html: Path | None
) -> int:
    """Join the reports of the shards of a run.

    `uop conform --shard K/N --json FILE` writes them, and `uop fuzz` with the same options;
    `uop fuzz --scheduler` writes them to its store. The verdict and the exit code are those of the
    whole run.
    """
    from uop.conformance.checks import OptionError, require_files
    from uop.conformance.report.files import write_reports
    from uop.conformance.report.format import read_report
    from uop.conformance.report.merge import merged
    from uop.conformance.report.text import summary

    require_files(json, junit, html)
    report = merged([read_report(path) for path in reports])
    problems = write_reports(report, json, junit, html)
    for line in summary(report, LINES):
        click.echo(line)
    if problems:
        raise OptionError("\n".join(problems))
    return exit_code(report)
