"""How a command compiles a program: target, optimizations, and inputs that the file lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from uop.cli import names as listed
from uop.cli.names import Name

if TYPE_CHECKING:
    from collections.abc import Callable

    from uop.compiler.stages.stage import Sequences
    from uop.interpreter.numeric.storage import Array
    from uop.spec.case import FileCase
    from uop.spec.uop import UOp

    Draw = Callable[[UOp, int], Array | None]
    """Draws the input in a slot, or leaves it out."""

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
    from uop.spec.kernel.optimization import parse_optimizations

    inputs, _ = inputs_of(case, root, within_bounds)
    found = Search(root, inputs, backend, beam).run()
    options = " ".join(f"--opt '{text}'" for text in found.sequences)
    tried = f"{found.tried} tried, {found.failed} failed" if found.tried else "kept on disk"
    click.echo(f"{options}: {found.seconds * 1e6:.3g} us, {tried}", err=True)
    return tuple(map(parse_optimizations, found.sequences))


def read_optimizations(texts: tuple[str, ...]) -> Sequences | None:
    """The sequence of each kernel, None where there are none; OptionError for other text."""
    from uop.conformance.checks import OptionError
    from uop.spec.errors import MalformedError
    from uop.spec.kernel.optimization import parse_optimizations

    try:
        return tuple(map(parse_optimizations, texts)) or None
    except MalformedError as error:
        raise OptionError(f"--opt: {error.message}, column {error.column}") from error


def inputs_of(case: FileCase, root: UOp, draw: Draw) -> tuple[dict[int, Array], list[int]]:
    """The inputs of a case, and drawn ones for those that it lacks, with their slots. A variable
    that it lacks is the largest number of its range.
    """
    import numpy as np

    from uop.cli.programs.run import arrays
    from uop.spec.args import ParamArg, arg_of
    from uop.spec.graph import slots_of
    from uop.spec.properties.symbolic import bind, is_variable

    found = arrays(case, root, {})
    missing = {slot: u for slot, u in slots_of(root).items() if slot not in found}
    sizes = {u: slot for slot, u in slots_of(root).items() if is_variable(u)}
    for u, slot in sizes.items():
        if slot in missing:
            found[slot] = np.array(arg_of(u, ParamArg).max)
    numbers = {u: int(found[slot]) for u, slot in sizes.items()}
    leaves = {slot: bind(u, numbers) for slot, u in missing.items() if slot not in found}
    data = {slot: draw(leaf, slot) for slot, leaf in leaves.items()}
    drawn = {slot: array for slot, array in data.items() if array is not None}
    return found | drawn, sorted(missing.keys() & (found | drawn).keys())


def ordinary(u: UOp, slot: int) -> Array | None:
    """Ordinary values of the suite for an input; None for a BUFFER, which may hold anything."""
    from uop.conformance.suite.values import draw_ordinary
    from uop.spec.ops.names import Op
    from uop.spec.properties.shape import size

    if u.op is Op.BUFFER:
        return None
    return draw_ordinary(u.dtype, size(u.shape), slot).reshape(u.shape)


def within_bounds(u: UOp, slot: int) -> Array:
    """Numbers for an input: an integer may be an index, and 0 and 1 lie in nearly all memory."""
    import numpy as np

    from uop.interpreter.numeric.storage import np_dtype

    random = np.random.default_rng(slot)
    numbers = (
        random.standard_normal(u.shape) if u.dtype.is_float else random.integers(0, 2, u.shape)
    )
    return np.asarray(numbers).astype(np_dtype(u.dtype))
