"""The cache folder of uop: where it is, and how its files are written."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

VARIABLE = "UOP_CACHE"
"""The environment variable that names the folder."""
DRIVERS, KERNELS = "drivers", "kernels"
"""Folders in it: results of trials, and kernels by processor."""


def cache_folder() -> Path:
    """The folder that `UOP_CACHE` names, else `uop` among the user's caches."""
    named = os.environ.get(VARIABLE, "")
    return Path(named).absolute() if named else user_caches() / "uop"


def user_caches() -> Path:
    """The user's cache folder, which all programs share."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


def keep(path: Path, text: str) -> None:
    """Write a file, unless its folder is full or cannot be written.

    The file is replaced atomically, since other processes read it.
    """
    with suppress(OSError), ExitStack() as last:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
            last.callback(Path(file.name).unlink, missing_ok=True)
            file.write(text)
        os.replace(file.name, path)
