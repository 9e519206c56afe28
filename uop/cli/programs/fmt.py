"""`uop fmt`: writes `.uop` files in their canonical form."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli.programs.files import edition_option, one_line_errors
from uop.conformance.run import Exit

STDIN = Path("-")


@click.command("fmt")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE.uop...",
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; name the files that would change, and exit with 1.",
)
@edition_option
def fmt(files: tuple[Path, ...], check: bool, edition: str) -> int:
    """Format files of programs: spaces, empty lines, derived parts.

    Comments, the numbers of nodes and the spelling of literals stay, and so does a program in the
    words of an edition. A file with an error is not touched, nor are those behind it. For `-` the
    text comes from stdin and goes to stdout.

    \b
    uop fmt examples/*.uop
    uop fmt --check examples/*.uop
    uop fmt - < program.uop
    """
    changed = False
    for path in files:
        old, new = formatted(path, edition)
        if path == STDIN and not check:
            click.echo(new, nl=False)
        elif old != new:
            changed = True
            click.echo(f"{path} is not formatted" if check else f"{path}")
            if not check:
                save(path, new)
    return Exit.FAILED if check and changed else Exit.OK


def formatted(path: Path, edition: str) -> tuple[str, str]:
    """The text of a file, and its canonical form."""
    from uop.spec.text.format import format_file
    from uop.spec.text.uop_file import read_text

    with one_line_errors("read", path):
        text = read_text("/dev/stdin" if path == STDIN else path)
    return text, format_file(text, str(path), edition)


def save(path: Path, text: str) -> None:
    """Write a file at once, so that an interruption leaves the old one or the new one."""
    from uop.conformance.report.files import write_file

    if problem := write_file(path, text):
        raise click.ClickException(problem)
