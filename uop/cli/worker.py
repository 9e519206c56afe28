"""`uop worker check`: what an executable does otherwise than the protocol of workers says."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from uop.cli.conform import seconds
from uop.conformance.exits import Exit
from uop.conformance.shell import uop_command


@click.group("worker")
def command() -> None:
    """Check that an executable keeps to the protocol for backends.

    Such a worker answers lines of JSON; `uop conform command:./worker` judges it.
    """


@command.command("check")
@click.argument("executable")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--timeout",
    default="10s",
    show_default=True,
    metavar="TIME",
    callback=seconds,
    help="How long a reply may take.",
)
def check(executable: str, arguments: tuple[str, ...], timeout: float) -> int:
    """Send a worker fixed messages, and print a line for each deviation from the protocol.

    Put `--` before arguments of the worker that begin with a dash.
    """
    import shlex

    from uop.conformance.sessions import COMMAND
    from uop.conformance.worker_check import check as checked
    from uop.conformance.workers import Allowance

    allowance = Allowance.within(timeout)
    name = COMMAND + shlex.join([executable.removeprefix(COMMAND), *arguments])
    with TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as folder:
        found = checked(name, Path(folder), allowance)
    for line in found.notes:
        click.echo(line)
    for line in found.deviations:
        click.echo(f"deviates: {line}")
    if found.deviations:
        click.echo(f"deviations: {len(found.deviations)}; the protocol: docs/worker-protocol.md")
        return Exit.FAILED
    click.echo(f"no deviation; next: {uop_command('conform', name)}")
    return Exit.OK
