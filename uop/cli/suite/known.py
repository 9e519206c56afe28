"""`uop known`, and the file of known failures in other commands: which one is read, its update."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uop.cli import Suggesting
from uop.cli.names import BACKEND
from uop.cli.programs.files import native_option
from uop.cli.suite.options import file_option
from uop.cli.suite.outcome import CODES, exit_code, shown
from uop.conformance.checks import KNOWN_FILE, OptionError, writable
from uop.conformance.run import Exit

if TYPE_CHECKING:
    from uop.conformance.report.model import Report
    from uop.conformance.run.options import Options


@click.group("known", cls=Suggesting)
def known() -> None:
    """Keep a file of known failures up to date."""


@known.command("migrate")
@click.argument("backend", type=BACKEND)
@file_option("--known", help="The file, by default uop-known.toml.")
@native_option
def migrate(backend: str, known: Path | None, native: bool) -> int:
    """Give lines about a backend the signatures that this release of uop makes.

    The program of each line is judged. Where its failure has another signature today, that is
    rewritten; the reason, link, expiry, comments and order stay. Lines whose program passes or is
    not judged are named and left alone, and so are two that would have one signature then.
    """
    from uop.conformance.run.known_update import migrate

    done, problem = migrate(known or KNOWN_FILE, backend, native=native)
    for entry, why in done.left.items():
        click.echo(f"left alone: {done.path}:{entry.line}: {entry.signature}: {why}")
    if problem:
        raise OptionError(problem)
    for entry, signature in done.renamed.items():
        click.echo(f"{entry.signature} -> {signature}")
    click.echo(
        f"{done.path}, signatures of version {done.version}: {len(done.renamed)} changed, "
        f"{done.same} as before, {len(done.left)} left alone, {done.others} about other backends"
    )
    return Exit.OK


def known_file(known: Path | None, is_written: bool, backend: str) -> Path | None:
    """The file of known failures that a run reads; a file named by the option must exist.

    Says where its signatures are of an older version.
    """
    from uop.conformance.run.known import old_line, read_known

    path = known or KNOWN_FILE
    if not path.is_file() and (known is None or is_written):
        return None
    file = read_known(path)
    if file.is_old:
        click.echo(old_line(file, backend), err=True)
    return path


def update(options: Options, form: str, known: Path) -> Exit:
    """Run the suite, then update the file of known failures."""
    from uop.conformance.run.conform import conform
    from uop.conformance.run.known_update import require_editable

    writable(known)
    require_editable(known)
    with shown(form) as display:
        return updated(conform(options, display()), options, known)


def updated(report: Report, options: Options, known: Path) -> Exit:
    """Enter the failures of a run in the file of known failures; the exit code follows from it."""
    from uop.conformance.run.known_update import by_updated, write_known
    from uop.conformance.suite.case import ALL_LEVELS

    if report.summary.interrupted or report.summary.lost:
        click.echo(f"{known} stays as it is: the run did not end", err=True)
        return exit_code(report)
    done = write_known(known, report, options.backend)
    if done.problems:
        raise OptionError("\n".join(done.problems))
    for failure in report.failures:
        if failure.level not in ALL_LEVELS:
            click.echo(f"not written: {failure.signature}: declare a profile")
    for key in done.joined:
        click.echo(f"joined: {key}")
    for key in done.removed:
        click.echo(f"removed, passes now: {key}")
    click.echo(f"written: {known}")
    return CODES[by_updated(report)]
