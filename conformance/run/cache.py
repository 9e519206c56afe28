"""The cache folder in a run: its processes keep kernels there, and at its end it is bounded.

PoCL crashes where a kernel that it kept is cut off. So a run notes the digests of all kernels at
its end, and the next one begins without those that are not noted or differ. A lock says which runs
use the folder: what another run uses is not removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import IO

from uop.compiler.runtime.cache import DRIVERS, KERNELS, VARIABLE, cache_folder, keep, refusal_of
from uop.compiler.runtime.cache import POCL_VARIABLE as KERNELS_VARIABLE
from uop.compiler.runtime.trials import processor
from uop.conformance.checks import OptionError

SIZE_VARIABLE = "UOP_CACHE_SIZE"
DEFAULT = "1G"
SIZE = re.compile(r"(?P<number>\d+)(?P<unit>[KMG]?)")
UNITS = {"": 0, "K": 10, "M": 20, "G": 30}
LAST_USED = "last_accessed"
"""The file of a kernel that PoCL touches when it uses it."""
DIGITS = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """What is removed as a whole: a file, or a folder with all files of some kernels."""

    path: Path
    size: int
    used: float
    """When it was used last."""

    @classmethod
    def at(cls, path: Path) -> Entry:
        states = [file.lstat() for file in (path, *path.rglob("*"))]
        return cls(path, sum(s.st_size for s in states), max(s.st_mtime for s in states))


@contextmanager
def cache_in_use() -> Iterator[None]:
    """Use the cache folder, and remove at the end what was used longest ago until it fits.

    Where `UOP_CACHE` is set, the processes that are started inside keep PoCL's kernels in it,
    unless the user names another folder for them. A folder that cannot be written keeps nothing.
    OptionError for a wrong `UOP_CACHE_SIZE`.
    """
    most, cache = most_bytes(), cache_folder()
    with ExitStack() as last:
        with suppress(OSError):
            if keeps_kernels := bool(os.environ.get(VARIABLE)):
                cache.mkdir(parents=True, exist_ok=True)
            lock = last.enter_context((cache / "lock").open("a"))
            last.callback(_shrink, lock, cache, most)
            if keeps_kernels and not os.environ.get(KERNELS_VARIABLE):
                # PoCL itself distinguishes fewer processors.
                digest = sha256("\n".join(processor()).encode()).hexdigest()[:DIGITS]
                _use_kernels(cache / KERNELS / digest, lock, last)
        yield


def most_bytes() -> int:
    """The size that the cache may have; OptionError for wrong text."""
    text = os.environ.get(SIZE_VARIABLE) or DEFAULT
    parsed = SIZE.fullmatch(text)
    if parsed is None:
        expected = "expected a number of bytes such as 500M or 2G"
        raise OptionError(f"{SIZE_VARIABLE}: {expected}, found {text!r}")
    return int(parsed["number"]) << UNITS[parsed["unit"]]


def _use_kernels(kernels: Path, lock: IO[str], last: ExitStack) -> None:
    """Have processes keep kernels in a folder until the end. OSError where it cannot be locked."""
    if refusal_of(kernels):
        return
    if _is_alone(lock):
        _remove_damaged(kernels)
    fcntl.flock(lock, fcntl.LOCK_SH)
    os.environ[KERNELS_VARIABLE] = str(kernels)
    last.callback(_note, kernels)
    last.callback(os.environ.pop, KERNELS_VARIABLE, None)


def _is_alone(lock: IO[str]) -> bool:
    """Whether no other run uses the cache; then none begins before the lock is shared."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _shrink(lock: IO[str], cache: Path, most: int) -> None:
    """Remove what was used longest ago until the rest fits."""
    if not _is_alone(lock):
        return
    entries: list[Entry] = []
    folders = [cache / DRIVERS, *_inside(cache / KERNELS)]
    for path in (path for folder in folders for path in _entries(folder)):
        with suppress(OSError):
            entries.append(Entry.at(path))
    size = sum(entry.size for entry in entries)
    for entry in sorted(entries, key=lambda entry: entry.used):
        if size <= most:
            return
        _remove(entry.path)
        size -= entry.size


def _remove_damaged(kernels: Path) -> None:
    """Remove what is not as the last run that ended has noted it."""
    noted: object = None
    with suppress(OSError, ValueError):
        noted = json.loads(_notes(kernels).read_text("utf-8"))
    known = noted if isinstance(noted, dict) else {}
    for path in _entries(kernels):
        if not (digest := _digest(path)) or known.get(_name(path)) != digest:
            _remove(path)


def _note(kernels: Path) -> None:
    noted = {_name(path): digest for path in _entries(kernels) if (digest := _digest(path))}
    keep(_notes(kernels), json.dumps(noted))


def _notes(kernels: Path) -> Path:
    return kernels.with_suffix(".json")


def _name(entry: Path) -> str:
    return f"{entry.parent.name}/{entry.name}"


def _digest(entry: Path) -> str:
    """A hash of the files of some kernels; empty for what is none or cannot be read."""
    if not entry.is_dir():
        return ""
    found = sha256()
    try:
        for path in sorted(p for p in entry.rglob("*") if p.is_file() and p.name != LAST_USED):
            found.update(f"{path.relative_to(entry)}\0{path.stat().st_size}\0".encode())
            found.update(path.read_bytes())
    except OSError:
        return ""
    return found.hexdigest()


def _entries(folder: Path) -> Iterator[Path]:
    """The entries of a folder: its files, and in each folder in it what stands there.

    So PoCL arranges kernels: XX/YYYY has all files of one source.
    """
    for path in _inside(folder):
        yield from _inside(path) if path.is_dir() and not path.is_symlink() else [path]


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _remove(path: Path) -> None:
    """Remove an entry, of which another process may have removed something."""
    if path.is_dir() and not path.is_symlink():
        rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
