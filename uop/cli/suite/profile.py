"""`uop profile`: observes what a backend does where the spec leaves a choice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uop.cli import Suggesting
from uop.cli.names import BACKEND
from uop.cli.suite.options import timeout_option
from uop.conformance.checks import PROFILE_SUFFIX, OptionError, writable
from uop.conformance.run import Exit
from uop.conformance.run.commands import uop_command

if TYPE_CHECKING:
    from uop.conformance.profile.card import Card
    from uop.conformance.protocol.types import Hello


@click.group("profile", cls=Suggesting)
def profile() -> None:
    """Show or write what a backend does where the spec leaves a choice.

    Such choices are the knobs of a profile (`uop explain KNOB`), and results without a value:
    payloads of NaNs, shift counts and casts out of range, division by zero.
    """


@profile.command("show")
@click.argument("backend", type=BACKEND)
@timeout_option
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
def show(backend: str, timeout: float | None, as_json: bool) -> int:
    """Print the card: each choice, what was observed, and the programs that showed it.

    Exits with 1 if the backend declares no profile and does two things at one knob.
    """
    from json import dumps

    from uop.conformance.protocol.codec import to_json

    hello, card = observed(backend, timeout)
    code = Exit.FAILED if card.twofold and not hello.profile else Exit.OK
    if as_json:
        click.echo(dumps(to_json(card)["entries"], indent=1))
        return code
    click.echo(f"backend: {hello.name} {hello.version} on {hello.device}")
    for entry in card.entries:
        mark = "" if entry.consistent else "  (two things)"
        click.echo(f"\n{entry.point}: {entry.observed}{mark}")
        for line in entry.evidence:
            click.echo(f"    {line}")
    click.echo(f"\nas a profile: {card.profile}; declared: {hello.profile or 'none'}")
    for entry in card.twofold:
        click.echo(f"two things at {entry.point}: {entry.observed}")
    click.echo(f"next: {uop_command('profile', 'init', backend)}")
    return code


@profile.command("init")
@click.argument("backend", type=BACKEND)
@timeout_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.toml",
    help="Where to write it; by default it is printed. An existing file is never overwritten.",
)
def init(backend: str, timeout: float | None, output: Path | None) -> int:
    """Write the observed profile as TOML, with the evidence, to edit and commit.

    The file has a key for its schema and one for every knob: a word, true or false, or a list of
    names.

    \b
    uop profile init opencl --output opencl.toml
    uop conform opencl --profile opencl.toml
    """
    from uop.conformance.profile.file import profile_text
    from uop.conformance.report.files import write_file

    if output is not None:
        if output.suffix != PROFILE_SUFFIX:
            said = f"expected a name that ends with {PROFILE_SUFFIX}, found {output}"
            raise OptionError(f"--output: {said}")
        if output.exists():
            raise OptionError(f"--output: {output} exists; it may hold edits")
        writable(output)
    hello, card = observed(backend, timeout)
    text = profile_text(card, hello, backend)
    if output is None:
        click.echo(text, nl=False)
        return Exit.OK
    if problem := write_file(output, text):
        raise OptionError(problem)
    for entry in card.twofold:
        click.echo(f"two things at {entry.point}: {entry.observed}")
    click.echo(f"wrote {output}; next: {uop_command('conform', backend, '--profile', output)}")
    return Exit.OK


def observed(backend: str, timeout: float | None) -> tuple[Hello, Card]:
    """Start a backend as a run would, and observe its choices."""
    from uop.conformance.run.options import Options
    from uop.conformance.run.pool import Pool
    from uop.conformance.run.tasks import Observe
    from uop.conformance.workers.sessions import known

    known(backend)
    with Pool.start(Options(backend, timeout=timeout)) as pool:
        return pool.hello(1), pool.ask(Observe())
