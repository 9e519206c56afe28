"""Where PoCL keeps the kernels that it has built; without such a place it builds none."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

VARIABLE = "POCL_CACHE_DIR"
KERNEL = 1 << 20
"""Bytes that are more than a kernel takes."""


def use_cache_dir(folder: Path) -> None:
    """Keep PoCL's compiled kernels in `folder`: processes that share one wait for each other.

    PoCL reads the variable once, so this comes before the first device of the process is opened.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[VARIABLE] = str(folder)


def why_it_keeps_nothing() -> str:
    """Why PoCL cannot keep kernels where it is told to; "" where it can.

    Where the user names no folder and that of the home cannot be written, one of this process is
    used.
    """
    if named := os.environ.get(VARIABLE, ""):
        refusal = refusal_of(Path(named))
        return f"{VARIABLE}={named}: {refusal}" if refusal else ""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not refusal_of(Path(folder, "pocl", "kcache")):
        return ""
    try:
        own = _own()
    except OSError as error:
        return f"kernels cannot be kept: {error}"
    os.environ[VARIABLE] = own.name
    refusal = refusal_of(Path(own.name))
    return f"kernels cannot be kept in {own.name}: {refusal}" if refusal else ""


def refusal_of(folder: Path) -> str:
    """What the system says to a kernel in the folder; "" where it can be kept."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(KERNEL))
    except OSError as error:
        return error.strerror or str(error)
    return ""


@cache
def _own() -> TemporaryDirectory[str]:
    """A folder that is removed when this process ends."""
    return TemporaryDirectory(prefix="uop-kernels-", ignore_cleanup_errors=True)
