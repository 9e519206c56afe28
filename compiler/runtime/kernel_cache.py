"""The folder of PoCL's kernel cache; PoCL builds no kernel without a writable one."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from uop.compiler.runtime.cache import user_caches

VARIABLE = "POCL_CACHE_DIR"
KERNEL = 1 << 20
"""The size of the test file: larger than any kernel."""


def use_cache_dir(folder: Path) -> None:
    """Set PoCL's kernel cache to `folder`; processes may share it.

    Call it before the first device is opened: PoCL reads the variable once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[VARIABLE] = str(folder)


def why_it_keeps_nothing() -> str:
    """Why PoCL cannot write its kernel cache; empty if it can.

    If the user names no folder and the one in the home is not writable, a temporary folder is set.
    """
    if named := os.environ.get(VARIABLE, ""):
        refusal = refusal_of(Path(named))
        return f"{VARIABLE}={named}: {refusal}" if refusal else ""
    if not refusal_of(user_caches() / "pocl" / "kcache"):
        return ""
    try:
        own = _own()
    except OSError as error:
        return f"kernels cannot be kept: {error}"
    os.environ[VARIABLE] = own.name
    refusal = refusal_of(Path(own.name))
    return f"kernels cannot be kept in {own.name}: {refusal}" if refusal else ""


def refusal_of(folder: Path) -> str:
    """The error of writing a kernel to the folder; empty for none."""
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
