"""`uop compare`: shows backends side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from uop.cli.names import BACKEND
from uop.cli.programs.files import native_option
from uop.cli.suite.options import (
    amount,
    begin,
    file_option,
    options_of,
    output_option,
    selection,
    timeout_option,
    workers_option,
)
from uop.cli.suite.outcome import BRIEF, shown
from uop.conformance.checks import OptionError
from uop.conformance.run import Exit


@click.command("compare")
@click.argument("sources", nargs=-1, required=True, type=BACKEND, metavar="BACKEND|REPORT.json...")
@selection
@amount
@timeout_option
@workers_option
@file_option("--html", help="Write one page of HTML.")
@file_option("--markdown", help="Write it as Markdown, which a forge shows.")
@file_option(
    "--json", help="Write the reports on all in one file, which `uop compare` reads again."
)
@file_option("--badges", help="Write a badge NAME.svg for each backend.", metavar="FOLDER")
@native_option
@output_option
def compare(
    sources: tuple[str, ...],
    html: Path | None,
    markdown: Path | None,
    json: Path | None,
    badges: Path | None,
    **chosen: Any,
) -> int:
    """Judge several backends, and show them side by side.

    Each is judged as `uop conform BACKEND` does, one after the other, by the profile that it
    declares or shows. Then each program that fails on one of them runs on all. REPORT.json is a
    report of `uop conform --json`, or of an earlier comparison: its backends are not judged again,
    and its options choose the cases of the others.

    A backend that does not start has a column that says why. The exit code is 0 once everything is
    written, whatever the verdicts, and 3 if none could be started.
    """
    from uop.conformance.compare.files import Files, lines_of
    from uop.conformance.compare.gather import compare, is_report

    reports = list(filter(is_report, sources))
    if reports:
        require_default(reports[0])
    files = Files(json, html, markdown, badges)
    files.require()
    begin(None, *sources)
    with shown(BRIEF) as display:
        poll = compare(sources, options_of(sources[0], chosen), display)
    problems = [*poll.problems, *files.write(poll.report)]
    for line in lines_of(poll.report, files):
        click.echo(line)
    if problems:
        raise OptionError("\n".join(problems))
    return Exit.INTERRUPTED if poll.interrupted else Exit.OK


def require_default(report: str) -> None:
    """OptionError where an option chooses other cases than the report has."""
    from uop.conformance.run.commands import OPTIONS

    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.opts[0] in OPTIONS.values() and source is ParameterSource.COMMANDLINE:
            raise OptionError(f"{parameter.opts[0]}: expected no such option beside {report}, "
                              "which says which cases are judged")  # fmt: skip
