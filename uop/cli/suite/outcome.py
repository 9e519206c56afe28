"""What a run shows while it lasts, and its exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uop.conformance.checks import OptionError
from uop.conformance.run import Exit

if TYPE_CHECKING:
    from uop.conformance.report.model import Report
    from uop.conformance.report.terminal import Display
    from uop.conformance.run.conform import Poll

CODES = {
    "conforms": Exit.OK,
    "does not conform": Exit.FAILED,
    "inconclusive": Exit.INCONCLUSIVE,
}
"""The exit code of each verdict."""
BRIEF = "brief"
"""The form of a run whose result is shown elsewhere."""
GRAVITY = (
    Exit.INTERRUPTED,
    Exit.USAGE,
    Exit.FAILED,
    Exit.NO_BACKEND,
    Exit.INCONCLUSIVE,
    Exit.OK,
)
"""The order of precedence among several exit codes."""


@contextmanager
def shown(form: str) -> Iterator[Callable[[], Display]]:
    """A factory of displays of runs; restores the terminal at the end.

    Raises OSError at the end if a display could not print.
    """
    from rich.console import Console

    from uop.conformance.report.ci import GitHub
    from uop.conformance.report.terminal import Brief, Lasting, Log, Screen

    console, screens, made = Console(), ExitStack(), list[Lasting]()

    def display() -> Display:
        if form == BRIEF:
            return Brief(click.echo)
        if form == "github":
            summary = os.environ.get("GITHUB_STEP_SUMMARY")
            return GitHub(click.echo, Path(summary) if summary else None)
        if not console.is_terminal:
            return Log(click.echo)
        screen = Screen(console)
        screens.callback(screen.stop)
        return screen

    def lasting() -> Display:
        made.append(Lasting(display()))
        return made[-1]

    with screens:
        yield lasting
    for one in made:
        if one.refused is not None:
            raise one.refused


def finished(report: Report, lines: Iterable[str], **files: Path | None) -> Exit:
    """Write the files of a report and print lines about it; the exit code of its run."""
    from uop.conformance.report.files import write_reports

    problems = write_reports(report, **files)
    for line in lines:
        click.echo(line)
    if problems:
        raise OptionError("\n".join(problems))
    return exit_code(report)


def exit_code(report: Report) -> Exit:
    """The exit code of a run."""
    return Exit.INTERRUPTED if report.summary.interrupted else CODES[report.conclusion]


def gravest(poll: Poll) -> Exit:
    """The exit code of runs on several backends; prints the votes and what went wrong."""
    from uop.conformance.report.vote import vote_lines

    assert poll.report.vote is not None
    for line in vote_lines(poll.report.vote):
        click.echo(line)
    for problem in poll.problems:
        click.echo(f"error: {problem}", err=True)
    codes = set(map(exit_code, poll.report.every))
    codes |= {Exit.INTERRUPTED} if poll.interrupted else set()
    codes |= {Exit.USAGE} if poll.problems else set()
    codes |= {Exit.NO_BACKEND} if poll.report.vote.missing else set()
    return next(code for code in GRAVITY if code in codes)
