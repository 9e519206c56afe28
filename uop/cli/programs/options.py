"""The option --opt of commands that compile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from uop.spec.kernel.optimization import Optimization

optimizations_option = click.option(
    "--opt",
    "sequences",
    multiple=True,
    metavar="SEQUENCE",
    help="The optimizations of a kernel, as 'SPLIT(0, 4, LOCAL, INNER); PADTO(1, 8)': the first "
    "option is for the first kernel, and so on. By default the compiler chooses.",
)


def optimizations_in(texts: Sequence[str]) -> list[tuple[Optimization, ...]] | None:
    """The sequences of the options --opt; None without one: then the compiler chooses."""
    from uop.conformance.checks import OptionError
    from uop.spec.errors import MalformedError
    from uop.spec.kernel.optimization import parse_optimizations

    if not texts:
        return None
    try:
        return [parse_optimizations(text) for text in texts]
    except MalformedError as error:
        raise OptionError(f"--opt: {error}") from None
