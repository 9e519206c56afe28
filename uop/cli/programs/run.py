"""`uop run`: runs a program on its inputs, by the interpreter or a backend."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uop.cli.names import BACKEND
from uop.cli.programs.files import (
    case_to_run,
    errors_by_line,
    make_folder,
    native_option,
    program_options,
    read_array,
    write_array,
)
from uop.cli.suite.options import timeout_option

if TYPE_CHECKING:
    from uop.interpreter.numeric.storage import Array
    from uop.interpreter.values import Observer, Value
    from uop.spec.case import FileCase
    from uop.spec.uop import UOp


INTERPRETER = "interpreter"


def slot_files(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[int, Path]:
    """Parse options SLOT=FILE.npy into files by slot."""
    found: dict[int, Path] = {}
    for text in texts:
        slot, _, path = text.partition("=")
        if not slot.isdecimal() or not path:
            raise click.BadParameter(f"expected SLOT=FILE.npy, a number as SLOT; found {text!r}")
        if int(slot) in found:
            raise click.BadParameter(f"slot {int(slot)} is given twice")
        found[int(slot)] = Path(path)
    return found


@click.command("run")
@program_options
@click.option(
    "--input",
    "inputs",
    multiple=True,
    callback=slot_files,
    metavar="SLOT=FILE.npy",
    help="The array of a slot, in place of the one in the file.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write the results as .npy files into a folder.",
)
@click.option(
    "--backend", type=BACKEND, default=INTERPRETER, show_default=True, help="What runs it."
)
@click.option(
    "--memory",
    type=click.FloatRange(min=0, min_open=True),
    metavar="GIB",
    help="Memory for the values of the interpreter, without masks and what is computed in between; "
    "by default an eighth of what is free.",
)
@timeout_option
@native_option
@click.option("--trace", is_flag=True, help="Print the value of every node.")
def run(
    file: Path,
    case_id: str | None,
    edition: str,
    inputs: dict[int, Path],
    output: Path | None,
    backend: str,
    memory: float | None,
    timeout: float | None,
    native: bool,
    trace: bool,
) -> None:
    """Run a program and print its results.

    The results are numbered: a value is 0, the members of a TUPLE count from 0, a buffer that a
    SINK writes has the number of its slot. --output writes each as N.npy, and a mask
    N.invalid.npy or N.unspecified.npy if elements are absent or unspecified.
    """
    if trace and backend != INTERPRETER:
        raise click.UsageError("--trace is for the interpreter: a backend gives its results only")
    if timeout is not None and backend == INTERPRETER:
        raise click.UsageError("--timeout is for a backend: the interpreter does not hang")
    case, root = case_to_run(file, case_id, edition, native=native)
    if output is not None:
        make_folder(output)
    with errors_by_line(case), memory_of(memory):
        results = results_of(root, arrays(case, root, inputs), backend, trace, timeout)
    for number, value in results.items():
        report(number, value, output)


def memory_of(gib: float | None) -> AbstractContextManager[None]:
    """The memory limit of the interpreter; None without the option."""
    from uop.interpreter.footprint import at_most

    return nullcontext() if gib is None else at_most(int(gib * (1 << 30)))


def results_of(
    root: UOp, inputs: dict[int, Array], backend: str, trace: bool, timeout: float | None
) -> dict[int, Value]:
    """Run a program by the interpreter or a backend; return the results by number."""
    if backend == INTERPRETER:
        return interpret(root, inputs, trace)
    from uop.conformance.workers.single import run_on

    return run_on(backend, root, inputs, timeout)


def arrays(case: FileCase, root: UOp, files: dict[int, Path]) -> dict[int, Array]:
    """The inputs by slot; the interpreter refuses slots that the program does not have."""
    import numpy as np

    from uop.conformance.judging.storage import from_literal
    from uop.interpreter.numeric.storage import np_dtype
    from uop.spec.graph import slots_of

    storage = {slot: np_dtype(u.dtype) for slot, u in slots_of(root).items()}
    inputs = {slot: from_literal(a) for slot, a in case.inputs.items()}
    for slot, path in files.items():
        inputs[slot] = read_array(path, storage.get(slot, np.dtype(np.uint8)))
    return inputs


def interpret(root: UOp, inputs: dict[int, Array], trace: bool) -> dict[int, Value]:
    """Run the interpreter, with a check of every value on the way."""
    from uop.conformance.judging.storage import numbered
    from uop.interpreter.evaluate import check_of, evaluate_full
    from uop.interpreter.inputs import with_numbers

    root, values = with_numbers(root, inputs)
    check = check_of(root)
    return numbered(evaluate_full(root, values, traced(root, check) if trace else check))


def traced(root: UOp, check: Observer) -> Observer:
    """Print every node with its value as the interpreter reaches it, then check it."""
    from uop.interpreter.show import show_value
    from uop.spec.text.program import lines_by_node

    by_node = lines_by_node(root)

    def show(u: UOp, value: Value) -> None:
        if u in by_node:
            click.echo(by_node[u])
            click.echo(show_value("    = ", value))
        check(u, value)

    return show


def report(number: int, value: Value, folder: Path | None) -> None:
    """Print a result, and write it to the folder if there is one."""
    from uop.interpreter.numeric.storage import STORED
    from uop.interpreter.show import show_value

    shape = ",".join(map(str, value.data.shape))
    click.echo(show_value(f"{number} : {STORED[value.data.dtype].name}[{shape}] = ", value))
    if folder is None:
        return
    masks = {"": value.data, ".invalid": value.invalid, ".unspecified": value.unspecified}
    for kind, array in masks.items():
        if array is not None:
            write_array(folder / f"{number}{kind}.npy", array)
