"""The cache folders of uop and of PoCL's kernels: where they are, and how files are written."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory, TemporaryFile

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


POCL_VARIABLE = "POCL_CACHE_DIR"
KERNEL_SIZE = 1 << 20
"""The size of the test file: larger than any kernel."""


def why_it_keeps_nothing() -> str:
    """Why PoCL cannot write its kernel cache; empty if it can.

    If the user names no folder and the one in the home is not writable, a temporary folder is set.
    """
    if named := os.environ.get(POCL_VARIABLE, ""):
        refusal = refusal_of(Path(named))
        return f"{POCL_VARIABLE}={named}: {refusal}" if refusal else ""
    if not refusal_of(user_caches() / "pocl" / "kcache"):
        return ""
    try:
        own = _own()
    except OSError as error:
        return f"kernels cannot be kept: {error}"
    os.environ[POCL_VARIABLE] = own.name
    refusal = refusal_of(Path(own.name))
    return f"kernels cannot be kept in {own.name}: {refusal}" if refusal else ""


def refusal_of(folder: Path) -> str:
    """The error of writing a kernel to the folder; empty for none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(KERNEL_SIZE))
    except OSError as error:
        return error.strerror or str(error)
    return ""


@cache
def _own() -> TemporaryDirectory[str]:
    """A folder that is removed when this process ends."""
    return TemporaryDirectory(prefix="uop-kernels-", ignore_cleanup_errors=True)
