"""Reads and writes the files that commands name; every error about one is a single line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import click

from uop.cli import names as listed
from uop.cli import together
from uop.cli.names import Name
from uop.spec.errors import LabelledError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from uop.spec.case import FileCase
    from uop.spec.uop import UOp

ARCHIVE = b"PK"
"""How an archive of arrays begins."""
edition_option = click.option(
    "--edition",
    type=Name(listed.editions, shown=True),
    default="",
    help="Read programs in the words of this edition, as if its first line were `edition NAME`.",
)
program_options = together(
    click.argument(
        "file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE.uop",
    ),
    click.option(
        "--case", "case_id", metavar="ID", help="Which case, where the file holds several."
    ),
    edition_option,
)
"""Which program: its file, the case in it, and the words that it is written in."""
native_option = click.option(
    "--native",
    is_flag=True,
    help="Run native code that a file holds: machine code (BINARY), a SOURCE that uop does not "
    "render of its LINEAR, a CUSTOM or INS that is not registered. For files that you trust.",
)


@contextmanager
def one_line_errors(doing: str, path: Path) -> Iterator[None]:
    """Turn an OSError into one line that names the file."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"cannot {doing} {path}: {error.strerror or error}") from error


def read_case(path: Path, case_id: str | None, edition: str) -> tuple[FileCase, UOp]:
    """The case of this id in a file, or the only one, with its program."""
    from uop.spec.text.uop_file import read_file

    with one_line_errors("read", path):
        cases = {case.id: case for case in read_file(path, edition).cases}
    if case_id is None and len(cases) > 1:
        raise click.UsageError(
            f"{path} holds {len(cases)} cases: choose one with --case {_some(cases)}"
        )
    if case_id is not None and case_id not in cases:
        raise click.UsageError(f"{path} holds no case {case_id!r}, but {_some(cases)}")
    case = next(iter(cases.values())) if case_id is None else cases[case_id]
    if case.root is None:
        raise click.UsageError(f"a program to be rejected with {case.invalid}: use `uop replay`")
    return case, case.root


def case_to_run(
    path: Path, case_id: str | None, edition: str, *, native: bool
) -> tuple[FileCase, UOp]:
    """The same, of a case that will run: NativeError for native code that is not allowed."""
    from uop.conformance.native import check_native

    case, root = read_case(path, case_id, edition)
    check_native([case], native=native)
    return case, root


@contextmanager
def errors_by_line(case: FileCase) -> Iterator[None]:
    """Give errors about nodes the lines of the nodes in the file, not a line of Python code."""
    try:
        yield
    except LabelledError as error:
        error.where = case.place_of(error.subjects)
        raise


def read_array(path: Path, storage: np.dtype[Any]) -> NDArray[Any]:
    """The array of a .npy file, in native byte order.

    A .npy file has no dtypes for small floats but raw bytes, which are read as `storage` if the
    size fits. It may have as many bytes as the values of the interpreter may need.
    """
    from uop.interpreter.footprint import limit

    with one_line_errors("read", path), path.open("rb") as file:
        try:
            array = _array_in(file, limit())
        except (ValueError, EOFError, ArithmeticError, RecursionError) as error:
            raise click.ClickException(f"cannot read {path}: {error}") from error
    if array.dtype.kind == "V" and array.dtype.itemsize == storage.itemsize:
        return array.view(storage)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _array_in(file: BufferedReader, most: int) -> NDArray[Any]:
    """The array of a .npy file, of at most so many bytes. ValueError for anything else."""
    import numpy as np
    from numpy.lib import format

    heads = {(1, 0): format.read_array_header_1_0, (2, 0): format.read_array_header_2_0}
    if file.peek(len(ARCHIVE)).startswith(ARCHIVE):
        raise ValueError("an archive, not one array")
    try:
        version = format.read_magic(file)
        shape, in_columns, dtype = heads[version](file)
    except (ValueError, LookupError, SyntaxError, TokenError, MemoryError) as error:
        raise ValueError("not a .npy array") from error
    size = prod(shape) * dtype.itemsize
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"not a .npy array of numbers: {dtype}, shape {shape}")
    if size > most:
        raise ValueError(f"expected an array of at most {most:,} bytes, found {size:,}")
    data = file.read(size)
    if len(data) < size:
        raise ValueError(f"not a .npy array of {size:,} bytes: it is cut off")
    flat: NDArray[Any] = np.frombuffer(bytearray(data), dtype, prod(shape))
    return flat.reshape(shape[::-1]).T if in_columns else flat.reshape(shape)


def make_folder(path: Path) -> None:
    """Make a writable folder, before the work that fills it."""
    with one_line_errors("write to", path):
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".uop"
        probe.touch()
        probe.unlink()


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write a .npy file."""
    import numpy as np

    with one_line_errors("write", path):
        np.save(path, array, allow_pickle=False)


def _some(names: dict[str, FileCase]) -> str:
    """The first of many names, for a message."""
    shown = [name or "one without an id" for name in list(names)[:5]]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "")
