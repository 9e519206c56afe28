"""Options that several commands of the suite have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uop.cli import F, together
from uop.cli import names as listed
from uop.cli.names import Name, NameList
from uop.conformance.checks import parse_duration, require_lines

if TYPE_CHECKING:
    from uop.conformance.run.options import Options

REPORT_FILES = {
    "--json": "Write the report.",
    "--junit": "Write it as JUnit XML.",
    "--html": "Write it as one page of HTML.",
}


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
    return None if given is None else parse_duration(given, option.opts[0])


def profile(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """Knobs, `strict` or `observed`, or what a file says; None without the option."""
    from uop.conformance.run.options import profile_named

    return None if given is None else profile_named(given)


def options_of(backend: str, chosen: Mapping[str, Any]) -> Options:
    """The options of a run by their names in `Options`; None leaves the default."""
    from uop.conformance.run.options import Options

    given = {name: value for name, value in chosen.items() if value is not None}
    return Options(backend, command=words(), **given)


def words() -> tuple[str, ...]:
    """The words of the command line."""
    return tuple(click.get_current_context().obj or ())


def begin(log: Path | None, *backends: str) -> None:
    """Use the cache until the command ends, and start the log of messages if the option is set."""
    from uop.conformance.protocol.log import begin_log
    from uop.conformance.run.cache import cache_in_use

    click.get_current_context().with_resource(cache_in_use())
    for backend in backends:
        require_lines(log, backend)
    if log is not None:
        begin_log(log, words())


def file_option(name: str, *other: str, help: str, metavar: str = "FILE") -> Callable[[F], F]:
    """An option for a file or a folder, with another name of its parameter where there is one."""
    path = click.Path(path_type=Path)
    return click.option(name, *other, type=path, metavar=metavar, help=help)


timeout_option = click.option(
    "--timeout",
    metavar="TIME",
    callback=seconds,
    help="How long a start or one program may take: 10s, 2m.",
)


fail_fast_option = click.option(
    "--fail-fast", is_flag=True, help="Stop judging at the first failure, and find its cause."
)


workers_option = click.option(
    "-n", "workers", type=int, metavar="N", help="Processes; by default one per core."
)


output_option = click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("uop-failures"),
    show_default=True,
    metavar="FOLDER",
    help="Where failing programs are written.",
)


log_option = file_option(
    "--log-protocol",
    "log",
    help="Log every line to and from command:PROGRAM, each with its time and direction.",
)


format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github"]),
    default="text",
    show_default=True,
    help="Print lines only, or also annotations and a summary for GitHub.",
)


def several(name: str, kind: NameList, help: str) -> Callable[[F], F]:
    """An option for names, which may be repeated or separated by commas."""
    metavar = None if kind.shown else name.rpartition("-")[2].upper()
    plural = name.removeprefix("--").replace("-", "_") + "s"
    return click.option(
        name, plural, multiple=True, type=kind, callback=names, metavar=metavar, help=help
    )


selection = together(
    several("--op", NameList(listed.ops), "Only these ops, separated by commas."),
    several("--dtype", NameList(listed.dtypes), "Only these dtypes, separated by commas."),
    several(
        "--level", NameList(listed.levels, shown=True), "Only these levels, separated by commas."
    ),
    several(
        "--skip-op",
        NameList(listed.ops),
        "Leave out these ops: cases that need one are skipped, and random programs do not use it.",
    ),
    several("--skip-dtype", NameList(listed.dtypes), "Leave out these dtypes, in the same way."),
)
"""What a run is about."""
amount = together(
    click.option("--seed", type=int, default=0, show_default=True, help="Chooses the cases."),
    click.option("--examples", type=int, metavar="N", help="At most N cases of each kind."),
    click.option(
        "--effort",
        type=Name(listed.efforts, shown=True),
        default="default",
        show_default=True,
        help="How many cases.",
    ),
    click.option(
        "--time",
        "seconds",
        metavar="TIME",
        callback=seconds,
        help="Judge for this time, and stop: 30s, 5m, 1h. Levels, ops and dtypes share it from the "
        "start, those cases first that tell most; what is judged at its end does not count.",
    ),
)
"""How many cases it has, and which."""


report_files = together(*(file_option(name, help=help) for name, help in REPORT_FILES.items()))
"""The files of a report."""
