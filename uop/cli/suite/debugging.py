"""Options to debug a backend: a log of its messages, and a run inside this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from uop.conformance.report.model import Report
    from uop.conformance.run.options import Options

log_option = click.option(
    "--log-protocol",
    "log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Log every line to and from command:PROGRAM, each with its time and direction.",
)


def begin(log: Path | None, *backends: str) -> None:
    """Use the cache until the command ends, and start the log of messages if the option is set."""
    from uop.conformance.checks import require_lines
    from uop.conformance.protocol.log import begin_log
    from uop.conformance.run.cache import cache_in_use

    click.get_current_context().with_resource(cache_in_use())
    for backend in backends:
        require_lines(log, backend)
    if log is not None:
        begin_log(log, words())


def words() -> tuple[str, ...]:
    """The words of the command line."""
    return tuple(click.get_current_context().obj or ())


def judge_here(options: Options, form: str) -> Report:
    """Run the suite in this process, with plain lines: the debugger needs the terminal."""
    from uop.conformance.report.github import GitHub
    from uop.conformance.report.terminal import Log
    from uop.conformance.run.conform import conform
    from uop.conformance.workers.in_process import WARNING, InProcess, require_in_process

    require_in_process(options)
    pool = InProcess(options.checked())
    click.echo(WARNING, err=True)
    display = GitHub(click.echo, None) if form == "github" else Log(click.echo)
    return conform(options, display, pool)
