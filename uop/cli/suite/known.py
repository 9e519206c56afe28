"""The file of known failures on the command line: which one is read, and how it is updated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uop.cli.suite.outcome import CODES, exit_code, shown
from uop.conformance.run.exits import Exit

if TYPE_CHECKING:
    from uop.conformance.report.model import Report
    from uop.conformance.run.options import Options


def known_file(known: Path | None, is_written: bool) -> Path | None:
    """The file of known failures that a run reads; a file named by the option must exist."""
    from uop.conformance.checks import KNOWN_FILE

    path = known or KNOWN_FILE
    return path if path.is_file() or (known is not None and not is_written) else None


def update(options: Options, form: str, known: Path) -> Exit:
    """Run the suite, then update the file of known failures."""
    from uop.conformance.checks import writable
    from uop.conformance.run.conform import conform
    from uop.conformance.run.known_update import require_editable

    writable(known)
    require_editable(known)
    with shown(form) as display:
        return updated(conform(options, display()), options, known)


def updated(report: Report, options: Options, known: Path) -> Exit:
    """Enter the failures of a run in the file of known failures; the exit code follows from it."""
    from uop.conformance.checks import OptionError
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
