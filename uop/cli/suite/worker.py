"""`uop worker check`: checks an executable against the worker protocol."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli import Suggesting
from uop.cli.suite.options import begin, log_option, seconds
from uop.conformance.checks import COMMAND
from uop.conformance.run import Exit
from uop.conformance.run.commands import uop_command


@click.group("worker", cls=Suggesting)
def worker() -> None:
    """Check that an executable keeps to the protocol for backends.

    Such a worker answers lines of JSON; `uop conform command:./worker` judges it.
    """


@worker.command("check")
@click.argument("executable")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--timeout",
    metavar="TIME",
    callback=seconds,
    help="How long a reply may take by the clock. Without it: 10 s in which no process of the "
    "worker waits for a processor.",
)
@log_option
def check(
    executable: str, arguments: tuple[str, ...], timeout: float | None, log: Path | None
) -> int:
    """Send a worker fixed messages and print each deviation.

    For a program that fails it prints the program, its input, what came, what is accepted and the
    command that judges it again. A worker that gives no reply to a program receives nothing more.

    Put `--` before arguments of the worker that begin with a dash.
    """
    import shlex

    from uop.conformance.protocol.check import check as checked
    from uop.conformance.protocol.log import ProtocolLog
    from uop.conformance.workers.processes import workplace
    from uop.conformance.workers.transport import Allowance

    quick = Allowance(start_seconds=10.0, batch_seconds=10.0, program_seconds=0.0)
    allowance = quick if timeout is None else Allowance.within(timeout)
    name = COMMAND + shlex.join([executable.removeprefix(COMMAND), *arguments])
    with workplace() as place:
        begin(log, name)
        lines = None if log is None else ProtocolLog(log)
        found = checked(name, place, allowance, lines)
    for line in found.notes:
        click.echo(line)
    for deviation in found.deviations:
        click.echo(f"deviates: {deviation.text}")
        width = max((len(name) for name, _ in deviation.shown), default=0)
        for name, text in deviation.shown:
            click.echo(f"    {name:{width}}  {text}")
    if found.deviations:
        click.echo(f"deviations: {len(found.deviations)}; the protocol: docs/worker-protocol.md")
        return Exit.FAILED
    click.echo(f"no deviation; next: {uop_command('conform', name)}")
    return Exit.OK
