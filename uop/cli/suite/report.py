"""`uop report`: prints a failure as a bug report for the maintainers of a backend."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli.names import BACKEND
from uop.cli.programs.files import native_option
from uop.conformance.run.exits import Exit


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
def command(cause: str, backend: str | None, report: Path | None, native: bool) -> int:
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
