"""Options that several commands of the suite have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from uop.cli.names import NameList

REPORT_FILES = {
    "--json": "Write the report.",
    "--junit": "Write it as JUnit XML.",
    "--html": "Write it as one page of HTML.",
}
F = TypeVar("F", bound=Callable[..., object])


def names(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Names from repeated options or separated by commas; None without the option."""
    found = tuple(name for text in given for name in text.split(",") if name)
    if given and not found:
        raise click.BadParameter("expected a name, found none", context, option)
    return found or None


def seconds(context: click.Context, option: click.Parameter, given: str | None) -> float | None:
    """A duration in seconds; None without the option."""
    from uop.conformance.checks import parse_duration

    return None if given is None else parse_duration(given, option.opts[0])


timeout_option = click.option(
    "--timeout",
    metavar="TIME",
    callback=seconds,
    help="How long a start or one program may take: 10s, 2m.",
)


fail_fast_option = click.option(
    "--fail-fast", is_flag=True, help="Stop judging at the first failure, and find its cause."
)


format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github"]),
    default="text",
    show_default=True,
    help="Print lines only, or also annotations and a summary for GitHub.",
)


def report_files(command: F) -> F:
    """The options for the files of a report."""
    for name, help in reversed(REPORT_FILES.items()):
        path = click.Path(path_type=Path)
        command = click.option(name, type=path, metavar="FILE", help=help)(command)
    return command


def several(name: str, kind: NameList, help: str) -> Callable[[F], F]:
    """An option for names, which may be repeated or separated by commas."""
    metavar = None if kind.shown else name.rpartition("-")[2].upper()
    plural = name.removeprefix("--").replace("-", "_") + "s"
    return click.option(
        name, plural, multiple=True, type=kind, callback=names, metavar=metavar, help=help
    )
