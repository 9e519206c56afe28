"""How a command compiles a program: target and optimizations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from uop.cli import names as listed
from uop.cli.names import Name
from uop.conformance.checks import OptionError
from uop.spec.errors import MalformedError

if TYPE_CHECKING:
    from uop.compiler.stages.stage import Sequences
    from uop.spec.case import FileCase
    from uop.spec.uop import UOp

target_option = click.option(
    "--target",
    type=Name(listed.targets, shown=True),
    default="opencl",
    show_default=True,
    help="The language of the source.",
)
optimizations_option = click.option(
    "--opt",
    "optimizations",
    multiple=True,
    metavar="SEQUENCE",
    help="Optimizations of a kernel, as 'SPLIT(0, 4, UPCAST); SWAP(0, 1)', or '' for none: the "
    "first of these options is for the first kernel, the second for the second, the rest has none. "
    "Without this option the compiler chooses.",
)
beam_option = click.option(
    "--beam",
    type=int,
    metavar="N",
    help="Search the optimizations of each kernel on the device here: of all sequences that are "
    "one longer keep the N fastest, as long as that helps. Each counts only with results that the "
    "spec accepts. A search takes a minute at most. What was found is kept on disk.",
)


def chosen(
    texts: tuple[str, ...], beam: int | None, case: FileCase, root: UOp, backend: str
) -> Sequences | None:
    """The sequence of each kernel: those of --opt, those that --beam finds, else None."""
    if beam is None or texts:
        if beam is not None:
            raise click.UsageError("--beam searches what --opt says: use one of them")
        return read_optimizations(texts)
    from uop.conformance.search import Search
    from uop.conformance.suite.levels.written import inputs_and_drawn, within_bounds
    from uop.spec.kernel.optimization import parse_optimizations

    inputs, _ = inputs_and_drawn(case, root, within_bounds)
    found = Search(root, inputs, backend, beam).run()
    options = " ".join(f"--opt '{text}'" for text in found.sequences)
    tried = f"{found.tried} tried, {found.failed} failed" if found.tried else "kept on disk"
    click.echo(f"{options}: {found.seconds * 1e6:.3g} us, {tried}", err=True)
    return tuple(map(parse_optimizations, found.sequences))


def read_optimizations(texts: tuple[str, ...]) -> Sequences | None:
    """The sequence of each kernel, None where there are none; OptionError for other text."""
    from uop.spec.kernel.optimization import parse_optimizations

    try:
        return tuple(map(parse_optimizations, texts)) or None
    except MalformedError as error:
        raise OptionError(f"--opt: {error.message}, column {error.column}") from error
