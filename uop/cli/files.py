"""The files that commands name: whatever goes wrong with one is said in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PROGRAM = click.Path(exists=True, dir_okay=False, path_type=Path)
"""The type of an argument FILE.uop."""


@contextmanager
def said_plainly(doing: str, path: Path) -> Iterator[None]:
    """Turn the system's refusal into one line that names the file."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"cannot {doing} {path}: {error.strerror or error}") from error


def read_text(path: Path) -> str:
    """A text file."""
    with said_plainly("read", path):
        data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"cannot read {path}: line {line} is not UTF-8 text"
        raise click.ClickException(message) from error


def read_array(path: Path, storage: np.dtype[Any]) -> NDArray[Any]:
    """The array of a .npy file, in native byte order.

    A file does not name the small floats: it holds them as raw bytes, which are taken for `storage`
    where the size fits.
    """
    import numpy as np

    with said_plainly("read", path):
        try:
            array: NDArray[Any] = np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise click.ClickException(f"cannot read {path}: not a .npy array") from error
    if not isinstance(array, np.ndarray):
        raise click.ClickException(f"cannot read {path}: an archive, not one array")
    if array.dtype.kind == "V" and array.dtype.itemsize == storage.itemsize:
        return array.view(storage)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def make_folder(path: Path) -> None:
    """A folder that can be written to; said before the work that fills it."""
    with said_plainly("write to", path):
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".uop"
        probe.touch()
        probe.unlink()


def write_array(path: Path, array: NDArray[Any]) -> None:
    """A .npy file."""
    import numpy as np

    with said_plainly("write", path):
        np.save(path, array, allow_pickle=False)
